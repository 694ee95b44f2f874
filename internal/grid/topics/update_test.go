package topics

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/testkit"
)

func change(f func(*Settings)) func(*Settings) error {
	return func(s *Settings) error {
		f(s)
		return nil
	}
}

// G6, G10: settings may be changed, one at a time, and nothing else changes with them.
func TestUpdate(t *testing.T) {
	y := newYard(t)
	asked := &endpoint{}
	k := y.open(t, Config{Validate: asked}, "orders")
	mustPublish(t, k, "orders", "x")
	s := with(func(s *Settings) { s.Headers = []Header{{Name: "a", Value: "b"}} })
	made := mustCreate(t, k, topic("orders"), "mailer", s)
	mustPublish(t, k, "orders", "y")
	before := k.Snapshot()

	changed, err := k.Update(t.Context(), topic("orders"), "mailer", change(func(s *Settings) {
		s.Filter.EventTypes, s.Retry.MaxAttempts, s.Headers[0].Value = []string{"placed"}, 5, "c"
	}))
	testkit.Must(t, err)
	if changed.ID != made.ID || !changed.Created.Equal(made.Created) || !changed.Updated.After(made.Updated) || changed.State != Active ||
		!slices.Equal(changed.Starts, made.Starts) || changed.Retry.MaxAttempts != 5 || changed.Headers[0].Value != "c" {
		t.Errorf("changed %+v", changed)
	}
	if old := before.Subscriptions.Get(made.ID); old.Retry.MaxAttempts != 0 || old.Headers[0].Value != "b" || before.BySource[made.SourceID][0] != old {
		t.Errorf("an old snapshot was changed: %+v", old)
	}
	testkit.Equal(t, asked.count(), 1, "the endpoint was asked")
	no := errors.New("no")
	testkit.ErrorIs(t, testkit.Err(k.Update(t.Context(), topic("orders"), "mailer", func(s *Settings) error { s.MaxEvents = 7; return no })), no)
	wantError(t, testkit.Err(k.Update(t.Context(), topic("orders"), "mailer", change(func(s *Settings) { s.MaxEvents = 5001 }))), ErrInvalid, "1 to 5000")
	wantFound(t, k, topic("orders"), "mailer", func(s Subscription) bool { return s.Settings.equal(changed.Settings) })
	watched := 0
	defer k.OnChange(func() { watched++ })()
	if _, err := k.Update(t.Context(), topic("orders"), "mailer", change(func(*Settings) {})); err != nil || watched != 0 {
		t.Errorf("nothing to change: %v, told %d times", err, watched)
	}
}

func TestPauseAndGoOn(t *testing.T) {
	k := newYard(t).open(t, Config{}, "orders")
	s := with(func(s *Settings) { s.Paused = true })
	if made := mustCreate(t, k, topic("orders"), "mailer", s); made.State != Paused || !slices.Equal(made.Starts, []int64{0}) {
		t.Errorf("made %+v", made)
	}
	mustPublish(t, k, "orders", "x")
	for _, paused := range []bool{false, true, false} {
		changed, err := k.Update(t.Context(), topic("orders"), "mailer", change(func(s *Settings) { s.Paused = paused }))
		want := Active
		if paused {
			want = Paused
		}
		if err != nil || changed.State != want || changed.Starts[0] != 0 {
			t.Errorf("got %+v, %v", changed, err)
		}
	}
}

// Configuration files are read at every start: what is as it should be is left alone.
func TestEnsure(t *testing.T) {
	y := newYard(t)
	asked := &endpoint{}
	k := y.open(t, Config{Validate: asked}, "orders")
	settings := func() Settings {
		s := with(func(s *Settings) {
			s.Filter = filter.Config{Advanced: []filter.Condition{{Operator: "NumberIn", Key: "data.n", Values: []byte("[1, 2]")}}}
		})
		s.Expires = time.Date(2199, 1, 1, 12, 0, 0, 0, time.FixedZone("x", 3600))
		s.Labels = []string{}
		return s
	}
	ensure := func(s Settings) Subscription {
		t.Helper()
		made, err := k.Ensure(t.Context(), topic("orders"), "mailer", s)
		testkit.Must(t, err)
		return made
	}
	first := ensure(settings())
	watched := 0
	defer k.OnChange(func() { watched++ })()
	for range 3 {
		k = y.open(t, Config{Validate: asked})
		defer k.OnChange(func() { watched++ })()
		if again := ensure(settings()); again.ID != first.ID || !again.Updated.Equal(first.Updated) {
			t.Errorf("again: %+v", again)
		}
	}
	testkit.Equal(t, asked.count(), 1, "times asked")
	testkit.Equal(t, watched, 0, "times notified")
	other := settings()
	other.MaxEvents = 10
	if changed := ensure(other); changed.ID != first.ID || changed.MaxEvents != 10 || asked.count() != 1 {
		t.Errorf("changed: %+v, asked %d times", changed, asked.count())
	}
	other.Webhook.URL = "https://example.com/other"
	if changed := ensure(other); changed.ID != first.ID || changed.Webhook.URL != other.Webhook.URL || asked.count() != 2 {
		t.Errorf("changed: %+v, asked %d times", changed, asked.count())
	}
	testkit.Must(t, k.DisableAt(t.Context(), first.ID, other.Webhook.URL, "410"))
	testkit.Equal(t, ensure(other).State, Disabled, "a start has enabled it")
	testkit.ErrorIs(t, testkit.Err(k.Ensure(t.Context(), Source{}, "mailer", other)), ErrInvalid)
}

func TestDisableAt(t *testing.T) {
	y := newYard(t)
	k := y.open(t, Config{Validate: &endpoint{}}, "orders")
	made := mustCreate(t, k, topic("orders"), "mailer", hook(example))
	testkit.Must(t, k.DisableAt(t.Context(), made.ID, example, "the endpoint said 410"))
	for _, registry := range []*Registry{k, y.open(t, Config{})} {
		wantFound(t, registry, topic("orders"), "mailer", func(s Subscription) bool { return s.State == Disabled && s.Why == "the endpoint said 410" })
	}
	if updated, err := k.Update(t.Context(), topic("orders"), "mailer", change(func(*Settings) {})); err != nil || updated.State != Active || updated.Why != "" {
		t.Errorf("an update does not enable it: %+v, %v", updated, err)
	}
}

// A verdict on an endpoint that is late does not hit what has taken its place.
func TestDisableAtComesLate(t *testing.T) {
	listener := &endpoint{}
	k := newYard(t).open(t, Config{Validate: listener}, "orders")
	listener.says(Agreement{Awaiting: true})
	made := mustCreate(t, k, topic("orders"), "mailer", hook(example))
	testkit.Must(t, k.DisableAt(t.Context(), made.ID, example, "410"))
	testkit.Equal(t, mustFind(t, k, topic("orders"), "mailer").State, Pending)
}

// A 410 of an endpoint that the subscription has left says nothing about the one that it has now.
func TestOnlyThePresentEndpointCanDisable(t *testing.T) {
	k := newYard(t).open(t, Config{}, "orders")
	made := mustCreate(t, k, topic("orders"), "mailer", hook("https://example.com/old"))
	testkit.Must(t, testkit.Err(k.Update(t.Context(), topic("orders"), "mailer", change(func(s *Settings) { s.Webhook.URL = "https://example.com/new" }))))
	for _, test := range []struct {
		url  string
		want State
	}{{"https://example.com/old", Active}, {"https://example.com/new", Disabled}} {
		testkit.Must(t, k.DisableAt(t.Context(), made.ID, test.url, "410"))
		testkit.Equal(t, mustFind(t, k, topic("orders"), "mailer").State, test.want, "%s made it", test.url)
	}
	wantError(t, k.DisableAt(t.Context(), newID(), "https://example.com/new", ""), ErrNotFound, "id")
}

func TestRotateKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newYard(t).open(t, Config{}, "orders")
		mustCreate(t, k, topic("orders"), "mailer", hook(example))
		rotate := func(overlap time.Duration) []signature.Key {
			t.Helper()
			s, err := k.RotateKey(t.Context(), topic("orders"), "mailer", signature.HMAC, overlap)
			testkit.Must(t, err)
			testkit.Equal(t, s.Updated, now(), "who rotates a key has changed the subscription: updated")
			return s.Keys
		}
		first := rotate(time.Hour)
		if len(first) != 1 || !first[0].Expires.IsZero() {
			t.Fatalf("first: %v", first)
		}
		began := time.Now()
		second := rotate(time.Hour)
		if len(second) != 2 || second[0].Text != first[0].Text || !second[0].Expires.Equal(began.Add(time.Hour).Truncate(time.Microsecond)) || !second[1].Expires.IsZero() {
			t.Errorf("second: %v", second)
		}
		// Configuration has the first key still; the rotation stands.
		s := with(func(s *Settings) { s.Keys = []signature.Key{{Text: first[0].Text}} })
		if ensured, err := k.Ensure(t.Context(), topic("orders"), "mailer", s); err != nil || len(ensured.Keys) != 2 {
			t.Errorf("ensured: %v, %v", ensured.Keys, err)
		}
		time.Sleep(30 * time.Minute)
		if third := rotate(2 * time.Hour); len(third) != 3 || !third[0].Expires.Equal(second[0].Expires) {
			t.Errorf("a key lives longer for a later rotation: %v", third)
		}
		time.Sleep(time.Hour)
		if fourth := rotate(0); len(fourth) != 1 || !fourth[0].Expires.IsZero() {
			t.Errorf("fourth: %v", fourth)
		}
		for range maxKeys - 1 {
			rotate(time.Hour)
		}
		wantError(t, testkit.Err(k.RotateKey(t.Context(), topic("orders"), "mailer", signature.Ed25519, time.Hour)), ErrInvalid, "shorter overlap")
	})
}

func TestRotateKeyRefuses(t *testing.T) {
	y := newYard(t)
	y.Hub(t, "sensors", 1)
	k := y.open(t, Config{}, "orders")
	mustCreate(t, k, topic("orders"), "to-a-hub", Settings{Hub: "Sensors"})
	wantError(t, testkit.Err(k.RotateKey(t.Context(), topic("orders"), "to-a-hub", signature.HMAC, 0)), ErrInvalid, "only webhooks")
	wantError(t, testkit.Err(k.RotateKey(t.Context(), topic("orders"), "to-a-hub", "rot13", 0)), ErrInvalid, "rot13")
	wantError(t, testkit.Err(k.RotateKey(t.Context(), topic("orders"), "to-a-hub", signature.HMAC, -1)), ErrInvalid, "overlap")
	wantError(t, testkit.Err(k.RotateKey(t.Context(), topic("orders"), "nothing", signature.HMAC, 0)), ErrNotFound, "nothing")
}

func TestHubTargetsAreSpelledAsTheHubIs(t *testing.T) {
	y := newYard(t)
	y.Hub(t, "Sensors", 1)
	k := y.open(t, Config{}, "orders")
	if made := mustCreate(t, k, topic("orders"), "to-a-hub", Settings{Hub: "SENSORS"}); made.Hub != "Sensors" || !made.Retry.Resource {
		t.Errorf("made %+v", made)
	}
	if k = y.open(t, Config{}); !mustFind(t, k, Source{}, "to-a-hub").Retry.Resource {
		t.Error("it is not known to be a resource")
	}
}

func ExampleSource_String() {
	fmt.Println(Source{Topic: "orders"}, "and", Source{Hub: "sensors"})
	// Output: topic "orders" and hub "sensors"
}

func newKey(t testing.TB) signature.Key {
	t.Helper()
	key, err := signature.New(signature.HMAC)
	testkit.Must(t, err)
	return key
}

// Configuration may turn a signed webhook into something that cannot be signed.
func TestEnsureAnotherKindOfTarget(t *testing.T) {
	for name, target := range map[string]Settings{"a hub": {Hub: "sensors"}, "pull": {Pull: &Pull{}}} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			y.Hub(t, "sensors", 1)
			k := y.open(t, Config{}, "orders")
			s := with(func(s *Settings) { s.Keys = []signature.Key{newKey(t)} })
			mustCreate(t, k, topic("orders"), "mailer", s)
			ensured, err := k.Ensure(t.Context(), topic("orders"), "mailer", target)
			if err != nil || ensured.Webhook != nil || ensured.Keys != nil {
				t.Errorf("got %+v, %v", ensured, err)
			}
		})
	}
}

// A start does not bring a key back that was rotated out: who has stolen it could sign again, and
// receivers that know only the new one would refuse everything.
func TestEnsureAfterRotations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		k := y.open(t, Config{}, "orders")
		s := with(func(s *Settings) { s.Keys = []signature.Key{newKey(t)} })
		ensure := func(s Settings) []signature.Key {
			t.Helper()
			ensured, err := y.open(t, Config{}).Ensure(t.Context(), topic("orders"), "mailer", s)
			testkit.Must(t, err)
			return ensured.Keys
		}
		ensure(s)
		var newest signature.Key
		for range 3 {
			rotated, err := k.RotateKey(t.Context(), topic("orders"), "mailer", signature.HMAC, time.Hour)
			testkit.Must(t, err)
			newest = rotated.Keys[len(rotated.Keys)-1]
			time.Sleep(2 * time.Hour)
			keys := ensure(s)
			testkit.MustEqual(t, keys[len(keys)-1].Text, newest.Text, "keys are %v", keys)
		}
		// Another key than ever before is meant.
		other := s
		other.Keys = []signature.Key{newKey(t)}
		if keys := ensure(other); len(keys) != 1 || keys[0].Text != other.Keys[0].Text {
			t.Errorf("keys are %v", keys)
		}
		// And so is the first, now that it follows another.
		if keys := ensure(s); len(keys) != 1 || keys[0].Text != s.Keys[0].Text {
			t.Errorf("keys are %v", keys)
		}
	})
}

// G11: a crash while the endpoint was asked leaves something that waits for nobody: the next start
// asks again. One that waits for its link to be opened is left to wait.
func TestEnsureAfterACrashInMidHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorstep(t)
		f := &faults{step: 2} // the first stores what is asked for, the second what is answered
		dying := d.open(t, Config{Meta: f.store(d.Memory), Validate: d.listener})
		testkit.MustErrorIs(t, testkit.Err(dying.Ensure(t.Context(), topic("orders"), "mailer", hook(example))), errCrashed)
		k := d.open(t, Config{Validate: d.listener, ValidationURL: link})
		d.listener.says(Agreement{Awaiting: true})
		ensured, err := k.Ensure(t.Context(), topic("orders"), "mailer", hook(example))
		if err != nil || ensured.State != Pending || d.listener.count() != 2 {
			t.Fatalf("it is %s, %v, asked %d times", ensured.State, err, d.listener.count())
		}
		for range 2 {
			k = d.open(t, Config{Validate: d.listener})
			again, err := k.Ensure(t.Context(), topic("orders"), "mailer", hook(example))
			if err != nil || again.State != Pending || again.Validation.Token != ensured.Validation.Token || d.listener.count() != 2 {
				t.Errorf("again: %+v, %v, asked %d times", again, err, d.listener.count())
			}
		}
		if s, err := confirm(t, k, link(ensured, ensured.Validation.Token), 0); err != nil || s.State != Active {
			t.Errorf("confirmed: %+v, %v", s, err)
		}
	})
}
