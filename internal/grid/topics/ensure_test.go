package topics

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/testkit"
)

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
			y.hub(t, "sensors", 1)
			k := y.open(t, Config{})
			mustTopic(t, k, "orders")
			s := hook(example)
			s.Keys = []signature.Key{newKey(t)}
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
		k := y.open(t, Config{})
		mustTopic(t, k, "orders")
		s := hook(example)
		s.Keys = []signature.Key{newKey(t)}
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
		dying := d.open(t, Config{Meta: faultyStore{d.store, f}, Validate: d.listener})
		if _, err := dying.Ensure(t.Context(), topic("orders"), "mailer", hook(example)); !errors.Is(err, errCrashed) {
			t.Fatalf("got %v", err)
		}
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

// The same where it awaits the link from the beginning: no start asks again.
func TestEnsureOneThatWaits(t *testing.T) {
	d := newDoorstep(t)
	d.listener.says(Agreement{Awaiting: true})
	for range 3 {
		s, err := d.Ensure(t.Context(), topic("orders"), "mailer", hook(example))
		if err != nil || s.State != Pending || d.listener.count() != 1 {
			t.Errorf("it is %s, %v, asked %d times", s.State, err, d.listener.count())
		}
	}
}
