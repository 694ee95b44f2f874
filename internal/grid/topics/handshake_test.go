package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// doorstep is a yard whose endpoint a test plays.
type doorstep struct {
	*yard
	*Registry
	listener *endpoint
}

func newDoorstep(t testing.TB) *doorstep {
	y, listener := newYard(t), &endpoint{}
	k := y.open(t, Config{Validate: listener, ValidationURL: link}, "orders")
	return &doorstep{y, k, listener}
}

func (d *doorstep) state(t testing.TB) State {
	t.Helper()
	return mustFind(t, d.Registry, topic("orders"), "mailer").State
}

func (d *doorstep) move(t testing.TB, url string) (Subscription, error) {
	return d.Update(t.Context(), topic("orders"), "mailer", change(func(s *Settings) { s.Webhook.URL = url }))
}

// G11: an endpoint that agrees gets events; it is asked before, with all it needs to know.
func TestEndpointAgrees(t *testing.T) {
	d := newDoorstep(t)
	d.listener.answer = func(s Subscription, topic, code, url string) Agreement {
		its, _ := d.Topic("orders")
		there := d.Snapshot().Subscriptions.Get(s.ID)
		if there == nil || there.State != Pending || there.Starts != nil || there.Validation.Code != code {
			t.Errorf("before it is asked it is stored as %+v", there)
		}
		if topic != its.Resource || len(code) != 36 || url != link(s, there.Validation.Token) || s.Webhook.URL != example || s.Name != "mailer" {
			t.Errorf("asked with %q, %q, %q, %+v", topic, code, url, s)
		}
		return Agreement{Agreed: true, Rate: 120}
	}
	made := mustCreate(t, d.Registry, topic("orders"), "mailer", hook(example))
	if made.State != Active || made.Validation.Rate != 120 || made.Validation.Token != "" || made.Why != "" || d.listener.count() != 1 {
		t.Errorf("made %+v", made)
	}
}

// G11: one that refuses gets none, and there is nothing left of it.
func TestEndpointRefuses(t *testing.T) {
	d := newDoorstep(t)
	d.listener.says(Agreement{Why: "it answered 202"})
	wantError(t, testkit.Err(d.Create(t.Context(), topic("orders"), "mailer", hook(example))), ErrHandshake, "it answered 202")
	wantError(t, testkit.Err(d.Find(topic("orders"), "mailer")), ErrNotFound, "mailer")
	d.wantNoSubscriptions(t)
}

// G11: nobody is asked who need not be.
func TestWhoIsNotAsked(t *testing.T) {
	d := newDoorstep(t)
	d.Hub(t, "sensors", 1)
	d.listener.says(Agreement{Why: "no"})
	trusted := with(func(s *Settings) { s.SkipValidation = true })
	for name, s := range map[string]Settings{"trusted": trusted, "to-a-hub": {Hub: "sensors"}, "pulled": {Pull: &Pull{}}} {
		if made := mustCreate(t, d.Registry, topic("orders"), name, s); made.State != Active || len(made.Starts) != 1 {
			t.Errorf("%s: made %+v", name, made)
		}
	}
	testkit.Equal(t, d.listener.count(), 0, "asked times")
}

// G11: one that cannot answer by itself has its owner open a link.
func TestLinkIsOpened(t *testing.T) {
	d := newDoorstep(t)
	var url string
	d.listener.answer = func(_ Subscription, _, _, u string) Agreement {
		url = u
		return Agreement{Awaiting: true}
	}
	made := mustCreate(t, d.Registry, topic("orders"), "mailer", hook(example))
	if made.State != Pending || made.Starts != nil || !strings.Contains(made.Why, "validation link") {
		t.Errorf("made %+v", made)
	}
	for name, bad := range map[string]string{
		"another token": link(made, "x"), "no token": link(made, ""), "another subscription": link(Subscription{ID: newID()}, made.Validation.Token),
	} {
		testkit.ErrorIs(t, testkit.Err(confirm(t, d.Registry, bad, 0)), ErrToken, "%s", name)
	}
	// Any node may be asked.
	other := d.open(t, Config{Validate: d.listener})
	done, err := confirm(t, other, url, 60)
	if err != nil || done.State != Active || done.Validation.Rate != 60 || len(done.Starts) != 1 {
		t.Errorf("confirmed %+v, %v", done, err)
	}
	wantError(t, testkit.Err(confirm(t, d.Registry, url, 0)), ErrToken, "used up")
}

// G11: who opens the link before its answer has come back is heard, whatever it then answers.
func TestLinkIsOpenedFirst(t *testing.T) {
	for name, answer := range map[string]Agreement{
		"then it agrees": {Agreed: true, Rate: 9}, "then it awaits": {Awaiting: true}, "then it refuses": {Why: "500"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoorstep(t)
			d.listener.answer = func(_ Subscription, _, _, url string) Agreement {
				testkit.Check(t, testkit.Err(confirm(t, d.Registry, url, 77)))
				return answer
			}
			made := mustCreate(t, d.Registry, topic("orders"), "mailer", hook(example))
			testkit.Equal(t, made.State, Active, "made")
			testkit.Equal(t, made.Validation.Rate, 77, "made")
			moved, err := d.move(t, "https://example.com/new")
			if err != nil || moved.State != Active || moved.Webhook.URL != "https://example.com/new" || moved.ID != made.ID {
				t.Errorf("moved %+v, %v", moved, err)
			}
		})
	}
}

// G11: a link that waits to be opened stays good through changes that are none of its endpoint's, which is not
// asked about them; through the asking of one that was not changed, too.
func TestLinkStaysGoodThroughChanges(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Settings)
		asked  int
		answer Agreement
		err    error
		state  State // once the link is opened
	}{
		{"attempts", func(s *Settings) { s.Retry.MaxAttempts = 3 }, 0, Agreement{}, nil, Active},
		{"a pause", func(s *Settings) { s.Paused = true }, 0, Agreement{}, nil, Paused},
		{"nothing", func(*Settings) {}, 1, Agreement{Awaiting: true}, nil, Active},
		{"nothing, and it refuses by now", func(*Settings) {}, 1, Agreement{Why: "500"}, ErrHandshake, Active},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDoorstep(t)
				d.listener.says(Agreement{Awaiting: true})
				made := mustCreate(t, d.Registry, topic("orders"), "mailer", hook(example))
				time.Sleep(time.Minute)
				d.listener.answer = func(s Subscription, _, _, url string) Agreement {
					testkit.Equal(t, url, link(made, made.Validation.Token), "it is asked with")
					return test.answer
				}
				testkit.ErrorIs(t, testkit.Err(d.Update(t.Context(), topic("orders"), "mailer", change(test.change))), test.err)
				testkit.Equal(t, d.listener.count(), 1+test.asked, "asked times")
				found, want := mustFind(t, d.open(t, Config{}), topic("orders"), "mailer"), made.Settings
				test.change(&want)
				testkit.Equal(t, found.State, Pending, "before the link is opened")
				testkit.Equal(t, found.Retry.MaxAttempts, want.Retry.MaxAttempts, "attempts")
				testkit.Equal(t, found.Paused, want.Paused, "paused")
				testkit.Equal(t, found.Validation.Token, made.Validation.Token, "token")
				testkit.That(t, found.Validation.Until.Equal(made.Validation.Until), "it is good until %v, not %v", found.Validation.Until, made.Validation.Until)
				opened, err := confirm(t, d.Registry, link(made, made.Validation.Token), 0)
				testkit.Must(t, err)
				testkit.Equal(t, opened.State, test.state, "opened")
			})
		})
	}
}

// G11: who is asked something else is given another link, and the former is good no more.
func TestAnotherQuestionHasAnotherLink(t *testing.T) {
	for name, how := range map[string]func(*Settings){
		"endpoint": func(s *Settings) { s.Webhook.URL = "https://example.com/new" },
		"schema":   func(s *Settings) { s.Output = schema.CloudEvents },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoorstep(t)
			d.listener.says(Agreement{Awaiting: true})
			made := mustCreate(t, d.Registry, topic("orders"), "mailer", hook(example))
			changed, err := d.Update(t.Context(), topic("orders"), "mailer", change(how))
			testkit.Must(t, err)
			testkit.Equal(t, d.listener.count(), 2, "asked times")
			testkit.That(t, changed.Validation.Token != made.Validation.Token, "it has the former token")
			wantError(t, testkit.Err(confirm(t, d.Registry, link(made, made.Validation.Token), 0)), ErrToken, "asked again")
			testkit.Must(t, testkit.Err(confirm(t, d.Registry, link(changed, changed.Validation.Token), 0)))
		})
	}
}

// G11: the link is opened while the endpoint is asked again: that stands, with whatever it then answers.
func TestLinkIsOpenedWhileTheEndpointIsAskedAgain(t *testing.T) {
	for name, answer := range map[string]Agreement{
		"then it agrees": {Agreed: true}, "then it awaits": {Awaiting: true}, "then it refuses": {Why: "500"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoorstep(t)
			d.listener.says(Agreement{Awaiting: true})
			mustCreate(t, d.Registry, topic("orders"), "mailer", hook(example))
			d.listener.answer = func(_ Subscription, _, _, url string) Agreement {
				testkit.Check(t, testkit.Err(confirm(t, d.Registry, url, 77)))
				return answer
			}
			asked, err := d.Update(t.Context(), topic("orders"), "mailer", change(func(*Settings) {}))
			testkit.Must(t, err)
			testkit.Equal(t, asked.State, Active)
			testkit.Equal(t, asked.Validation.Rate, 77)
		})
	}
}

// G11: a changed endpoint is asked again. Until it has answered the old one goes on; where it
// refuses, it stays.
func TestChangedEndpointIsAsked(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer Agreement
		err    error
		url    string
		state  State
	}{
		{"it agrees", Agreement{Agreed: true}, nil, "https://example.com/new", Active},
		{"it awaits", Agreement{Awaiting: true}, nil, "https://example.com/new", Pending},
		{"it refuses", Agreement{Why: "404"}, ErrHandshake, example, Active},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDoorstep(t)
			made := mustCreate(t, d.Registry, topic("orders"), "mailer", hook(example))
			mustPublish(t, d.Registry, "orders", "x")
			d.listener.answer = func(s Subscription, _, _, _ string) Agreement {
				if now := mustFind(t, d.Registry, topic("orders"), "mailer"); now.Webhook.URL != example || now.State != Active {
					t.Errorf("while it is asked: %+v", now)
				}
				testkit.Equal(t, s.Webhook.URL, "https://example.com/new", "asked")
				testkit.Equal(t, s.ID, made.ID, "asked")
				return test.answer
			}
			testkit.ErrorIs(t, testkit.Err(d.move(t, "https://example.com/new")), test.err)
			found := mustFind(t, d.open(t, Config{}), topic("orders"), "mailer")
			if found.Webhook.URL != test.url || found.State != test.state || !slices.Equal(found.Starts, made.Starts) {
				t.Errorf("found %+v", found)
			}
			if there, _ := d.subscriptions.Get(subscriptionKey(topic("orders"), "mailer")); there.Value.Proposal != nil {
				t.Errorf("left: %+v", there.Value.Proposal)
			}
		})
	}
}

// G11: a link is good for some time; then the subscription has failed, and may be asked for again.
func TestLinkIsNotOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorstep(t)
		defer testkit.Run(t, d.Registry.Run)()
		var url string
		d.listener.answer = func(_ Subscription, _, _, u string) Agreement {
			url = u
			return Agreement{Awaiting: true}
		}
		made := mustCreate(t, d.Registry, topic("orders"), "mailer", hook(example))
		time.Sleep(DefaultValidationWindow - time.Second)
		synctest.Wait()
		testkit.Equal(t, d.state(t), Pending, "too early")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		failed := mustFind(t, d.Registry, topic("orders"), "mailer")
		if failed.State != Failed || !strings.Contains(failed.Why, "create or update it again") || failed.Validation.Token != "" {
			t.Errorf("failed %+v", failed)
		}
		wantError(t, testkit.Err(confirm(t, d.Registry, url, 0)), ErrToken, "too old")

		d.listener.says(Agreement{Agreed: true})
		mustPublish(t, d.Registry, "orders", "x")
		again := mustCreate(t, d.Registry, topic("orders"), "mailer", hook(example))
		if again.State != Active || again.ID == made.ID || again.Starts[0] != 1 {
			t.Errorf("again %+v", again)
		}
	})
}

// G11: a link that is too old is not good, also while nobody has noticed.
func TestLinkIsOpenedTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorstep(t)
		d.listener.says(Agreement{Awaiting: true})
		made := mustCreate(t, d.Registry, topic("orders"), "mailer", hook(example))
		time.Sleep(DefaultValidationWindow)
		wantError(t, testkit.Err(confirm(t, d.Registry, link(made, made.Validation.Token), 0)), ErrToken, "too old")
		testkit.Equal(t, d.state(t), Pending, "it")
	})
}

// G11: an update brings a failed one back, with the same settings too; a configuration file does.
func TestFailedOneIsAskedAgain(t *testing.T) {
	for _, how := range []string{"update", "ensure"} {
		synctest.Test(t, func(t *testing.T) {
			d := newDoorstep(t)
			defer testkit.Run(t, d.Registry.Run)()
			d.listener.says(Agreement{Awaiting: true})
			made := mustCreate(t, d.Registry, topic("orders"), "mailer", hook(example))
			time.Sleep(DefaultValidationWindow + time.Second)
			d.listener.says(Agreement{Agreed: true})
			var err error
			if how == "ensure" {
				_, err = d.Ensure(t.Context(), topic("orders"), "mailer", hook(example))
			} else {
				_, err = d.Update(t.Context(), topic("orders"), "mailer", change(func(*Settings) {}))
			}
			if found := mustFind(t, d.Registry, topic("orders"), "mailer"); err != nil || found.State != Active || found.ID != made.ID || found.Starts == nil {
				t.Errorf("%s: found %+v, %v", how, found, err)
			}
		})
	}
}

// G11: a crash between asking and hearing leaves something that lapses: a new subscription fails,
// an update is forgotten.
func TestCrashWhileTheEndpointIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorstep(t)
		trusted := with(func(s *Settings) { s.SkipValidation = true })
		old := mustCreate(t, d.Registry, topic("orders"), "old", trusted)
		f := &faults{step: 2} // the first stores what is asked for, the second what is answered
		dying := d.open(t, Config{Meta: f.store(d.Memory), Validate: d.listener})
		testkit.MustErrorIs(t, testkit.Err(dying.Create(t.Context(), topic("orders"), "new", hook(example))), errCrashed)
		f.fail(2)
		testkit.MustErrorIs(t, testkit.Err(dying.Update(t.Context(), topic("orders"), "old", change(func(s *Settings) { s.Webhook.URL, s.SkipValidation = "https://example.com/new", false }))), errCrashed)
		k := d.open(t, Config{Validate: d.listener})
		defer testkit.Run(t, k.Run)()
		testkit.Equal(t, mustFind(t, k, topic("orders"), "new").State, Pending, "new")
		time.Sleep(DefaultValidationWindow + time.Second)
		synctest.Wait()
		testkit.Equal(t, mustFind(t, k, topic("orders"), "new").State, Failed, "new")
		wantFound(t, k, topic("orders"), "old", func(s Subscription) bool { return s.State == Active && s.Settings.equal(old.Settings) })
		if there, _ := k.subscriptions.Get(subscriptionKey(topic("orders"), "old")); there.Value.Proposal != nil {
			t.Errorf("left: %+v", there.Value.Proposal)
		}
		mustCreate(t, k, topic("orders"), "new", hook(example))
	})
}

// G11: of two who move an endpoint at once the later counts, and the earlier is told.
func TestUpdatesOvertakeEachOther(t *testing.T) {
	d := newDoorstep(t)
	mustCreate(t, d.Registry, topic("orders"), "mailer", hook(example))
	d.listener.answer = func(s Subscription, _, _, _ string) Agreement {
		if s.Webhook.URL == "https://example.com/first" {
			testkit.Check(t, testkit.Err(d.move(t, "https://example.com/second")))
		}
		return Agreement{Agreed: true}
	}
	_, err := d.move(t, "https://example.com/first")
	wantError(t, err, errSuperseded, "try again")
	if !errors.Is(err, meta.ErrConflict) { // which the listeners know
		t.Errorf("got %v", err)
	}
	testkit.Equal(t, mustFind(t, d.Registry, topic("orders"), "mailer").Webhook.URL, "https://example.com/second")
}

// G11: what changes while an endpoint is asked is not lost when it agrees.
func TestOtherUpdateWhileAnEndpointIsAsked(t *testing.T) {
	d := newDoorstep(t)
	mustCreate(t, d.Registry, topic("orders"), "mailer", hook(example))
	d.listener.answer = func(Subscription, string, string, string) Agreement {
		testkit.Check(t, testkit.Err(d.Update(t.Context(), topic("orders"), "mailer", change(func(s *Settings) { s.MaxEvents = 7 }))))
		testkit.Check(t, testkit.Err(d.RotateKey(t.Context(), topic("orders"), "mailer", "hmac", time.Hour)))
		return Agreement{Agreed: true}
	}
	wantError(t, testkit.Err(d.move(t, "https://example.com/first")), errSuperseded, "try again")
	wantFound(t, d.Registry, topic("orders"), "mailer", func(s Subscription) bool { return s.MaxEvents == 7 && s.Webhook.URL == example && len(s.Keys) == 1 })
	d.listener.answer = func(Subscription, string, string, string) Agreement {
		testkit.Check(t, testkit.Err(d.RotateKey(t.Context(), topic("orders"), "mailer", "hmac", time.Hour)))
		return Agreement{Agreed: true}
	}
	if moved, err := d.move(t, "https://example.com/second"); err != nil || len(moved.Keys) != 2 {
		t.Errorf("a key is lost: %+v, %v", moved, err)
	}
}

// G11: a subscription deleted while its endpoint is asked stays deleted, whatever it answers.
func TestDeletedWhileTheEndpointIsAsked(t *testing.T) {
	for name, a := range map[string]Agreement{"agreed": {Agreed: true}, "awaiting": {Awaiting: true}, "refused": {Why: "no"}} {
		t.Run(name, func(t *testing.T) {
			d := newDoorstep(t)
			d.listener.answer = func(Subscription, string, string, string) Agreement {
				testkit.Check(t, d.Delete(t.Context(), topic("orders"), "mailer"))
				return a
			}
			_, err := d.Create(t.Context(), topic("orders"), "mailer", hook(example))
			if !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrHandshake) || errors.Is(err, meta.ErrNotFound) {
				t.Errorf("got %v", err)
			}
			d.wantNoSubscriptions(t)
		})
	}
}

// G11: what the endpoint said counts, also when nobody waits for it any more.
func TestCallerLeavesWhileTheEndpointIsAsked(t *testing.T) {
	for _, agrees := range []bool{true, false} {
		d := newDoorstep(t)
		ctx, leave := context.WithCancel(t.Context())
		d.listener.answer = func(Subscription, string, string, string) Agreement {
			leave()
			return Agreement{Agreed: agrees}
		}
		_, err := d.Create(ctx, topic("orders"), "mailer", hook(example))
		testkit.Equal(t, agrees, (err == nil), "got %v", err)
		left, _ := d.Memory.List(t.Context(), subscriptionsPrefix)
		testkit.Equal(t, agrees, (len(left) == 1), "left %v", left)
	}
}

// G11: many open one link at once; it is good once.
func TestLinkIsOpenedByMany(t *testing.T) {
	d := newDoorstep(t)
	d.listener.says(Agreement{Awaiting: true})
	made := mustCreate(t, d.Registry, topic("orders"), "mailer", hook(example))
	url := link(made, made.Validation.Token)
	other := d.open(t, Config{})
	var wg sync.WaitGroup
	good := make(chan int, 16)
	for i := range 16 {
		wg.Go(func() {
			k := d.Registry
			if i%2 == 1 {
				k = other
			}
			_, err := confirm(t, k, url, i+1)
			if err == nil {
				good <- i + 1
			} else if !errors.Is(err, ErrToken) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	testkit.MustEqual(t, len(good), 1, "it was good")
	there, err := d.subscriptions.Read(t.Context(), subscriptionKey(topic("orders"), "mailer"))
	if err != nil || there.Value.Validation.Rate != <-good || there.Value.State != Active {
		t.Errorf("stored %+v, %v", there.Value, err)
	}
}

// A subscription ends when it expires, and can be prolonged.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		k := y.open(t, Config{}, "orders")
		expiring := func(in time.Duration) Settings {
			s := with(func(s *Settings) { s.Expires = time.Now().Add(in) })
			return s
		}
		wantError(t, testkit.Err(k.Create(t.Context(), topic("orders"), "too-late", expiring(-time.Second))), ErrInvalid, "in the future")
		for i := range 5 {
			mustCreate(t, k, topic("orders"), fmt.Sprintf("sub-%d", i), expiring(time.Duration(10-i)*time.Minute))
		}
		// Another node lets them lapse; what was noted before Run counts too.
		other := y.open(t, Config{})
		defer testkit.Run(t, k.Run)()
		defer testkit.Run(t, other.Run)()
		time.Sleep(8*time.Minute + time.Second)
		synctest.Wait()
		for i := range 5 {
			s := mustFind(t, k, topic("orders"), fmt.Sprintf("sub-%d", i))
			if expired := i >= 2; expired != (s.State == Expired) || expired != strings.Contains(s.Why, "expired at") {
				t.Errorf("%s is %s, %q", s.Name, s.State, s.Why)
			}
		}
		// What does not touch the time leaves it expired; a later time brings it back.
		s, err := k.Update(t.Context(), topic("orders"), "sub-4", change(func(s *Settings) { s.MaxEvents = 3 }))
		if err != nil || s.State != Expired || s.MaxEvents != 3 {
			t.Errorf("got %+v, %v", s, err)
		}
		s, err = k.Update(t.Context(), topic("orders"), "sub-4", change(func(s *Settings) { s.Expires = time.Now().Add(time.Minute) }))
		if err != nil || s.State != Active {
			t.Errorf("got %+v, %v", s, err)
		}
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		testkit.Equal(t, mustFind(t, other, topic("orders"), "sub-4").State, Expired)
	})
}

// Nodes do not all try at the moment at which something lapses, and none waits for long.
func TestLapsesAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		store := metatest.NewFaulty(y.Memory)
		changes := make(chan time.Time, 10)
		k := y.open(t, Config{Meta: store}, "orders")
		began, spread := time.Now(), time.Duration(0)
		for i := range 5 {
			mustCreate(t, k, topic("orders"), fmt.Sprintf("sub-%d", i), with(func(s *Settings) { s.Expires = began.Add(time.Duration(1+i) * time.Minute) }))
		}
		store.Inject(func(op metatest.Op) error {
			if op.Changes() {
				changes <- time.Now()
			}
			return nil
		})
		defer testkit.Run(t, k.Run)()
		for i := range 5 {
			late := (<-changes).Sub(began.Add(time.Duration(1+i) * time.Minute))
			testkit.That(t, late >= 0 && late < lapseSpread, "it lapses %v late", late)
			spread = max(spread, late)
		}
		testkit.That(t, spread > 0, "all lapse in time")
	})
}

// A lapse that cannot be stored is tried again.
func TestLapseIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorstep(t)
		f := &faults{}
		k := d.open(t, Config{Meta: f.store(d.Memory), Validate: d.listener})
		d.listener.says(Agreement{Awaiting: true})
		mustCreate(t, k, topic("orders"), "mailer", hook(example))
		defer testkit.Run(t, k.Run)()
		f.fail(1) // and all that follow
		time.Sleep(DefaultValidationWindow + 5*time.Second)
		synctest.Wait()
		testkit.Equal(t, mustFind(t, k, topic("orders"), "mailer").State, Pending)
		f.fail(0)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		testkit.Equal(t, mustFind(t, k, topic("orders"), "mailer").State, Failed)
	})
}
