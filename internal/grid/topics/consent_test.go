package topics

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// G11: one that expires before its endpoint has agreed has not agreed by that: it gets nothing
// that is left over. Whoever prolongs it has not agreed for it either: its link stays good, and once that is
// too old it is asked.
func TestExpiryIsNoConsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorstep(t)
		defer testkit.Run(t, d.Registry.Run)()
		d.listener.says(Agreement{Awaiting: true})
		s := with(func(s *Settings) { s.Expires = time.Now().Add(time.Minute) })
		mustCreate(t, d.Registry, topic("orders"), "mailer", s)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := d.state(t); got == Expired {
			t.Errorf("it is %s, in which it is delivered what is left", got)
		}
		later := func() (Subscription, error) {
			return d.Update(t.Context(), topic("orders"), "mailer", change(func(s *Settings) { s.Expires = time.Now().Add(time.Hour) }))
		}
		if s, err := later(); err != nil || s.State != Pending || d.listener.count() != 1 {
			t.Errorf("prolonged: it is %s, asked %d times, %v", s.State, d.listener.count(), err)
		}
		time.Sleep(2 * DefaultValidationWindow)
		synctest.Wait()
		if s, err := later(); err != nil || s.State != Pending || d.listener.count() != 2 {
			t.Errorf("prolonged again: it is %s, asked %d times, %v", s.State, d.listener.count(), err)
		}
	})
}

// G11: the same, where the endpoint of an old one was moved: its backlog waits, and must not go to
// the new endpoint because it expires.
func TestExpiryOfAMovedOneIsNoConsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorstep(t)
		defer testkit.Run(t, d.Registry.Run)()
		s := with(func(s *Settings) { s.Expires = time.Now().Add(time.Minute) })
		mustCreate(t, d.Registry, topic("orders"), "mailer", s)
		d.listener.says(Agreement{Awaiting: true})
		testkit.Must(t, testkit.Err(d.move(t, "https://example.com/new")))
		for _, wait := range []time.Duration{2 * time.Minute, DefaultValidationWindow} {
			time.Sleep(wait)
			synctest.Wait()
			if got := d.state(t); got != Pending && got != Failed {
				t.Errorf("after %v it is %s", wait, got)
			}
		}
		found := mustFind(t, d.Registry, topic("orders"), "mailer")
		if strings.Contains(found.Why, "create") { // the name is taken
			t.Errorf("it says %q", found.Why)
		}
	})
}

// G11: who was trusted and is trusted no longer is asked, like anybody.
func TestTrustIsTakenBack(t *testing.T) {
	d := newDoorstep(t)
	trusted := with(func(s *Settings) { s.SkipValidation = true })
	mustCreate(t, d.Registry, topic("orders"), "mailer", trusted)
	d.listener.says(Agreement{Why: "404"})
	distrust := func() (Subscription, error) {
		return d.Update(t.Context(), topic("orders"), "mailer", change(func(s *Settings) { s.SkipValidation = false }))
	}
	wantError(t, testkit.Err(distrust()), ErrHandshake, "404")
	wantFound(t, d.Registry, topic("orders"), "mailer", func(s Subscription) bool { return s.State == Active && s.SkipValidation })
	d.listener.says(Agreement{Agreed: true})
	if s, err := distrust(); err != nil || s.State != Active || s.SkipValidation || d.listener.count() != 2 {
		t.Errorf("got %+v, %v, asked %d times", s, err, d.listener.count())
	}
}

// G11: the rate that an endpoint allowed is that endpoint's. Another one is not held to it.
func TestAllowedRateIsTheEndpoints(t *testing.T) {
	for name, move := range map[string]func(*Settings){
		"another webhook":       func(s *Settings) { s.Webhook.URL, s.SkipValidation = "https://example.com/new", true },
		"a hub":                 func(s *Settings) { s.Webhook, s.Hub = nil, "sensors" },
		"another that is asked": func(s *Settings) { s.Webhook.URL = "https://example.com/new" },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoorstep(t)
			d.Hub(t, "sensors", 1)
			d.listener.says(Agreement{Agreed: true, Rate: 1})
			mustCreate(t, d.Registry, topic("orders"), "mailer", hook(example))
			d.listener.says(Agreement{Agreed: true})
			same, err := d.Update(t.Context(), topic("orders"), "mailer", change(func(s *Settings) { s.MaxEvents = 2 }))
			if err != nil || same.Validation.Rate != 1 {
				t.Errorf("the same endpoint: %d, %v", same.Validation.Rate, err)
			}
			moved, err := d.Update(t.Context(), topic("orders"), "mailer", change(move))
			if err != nil || moved.Validation.Rate != 0 {
				t.Errorf("moved: %d, %v", moved.Validation.Rate, err)
			}
		})
	}
}

// G11: who asks for a subscription, goes away and asks again is told what the endpoint answered the
// second time: the end of the first does not take away what the second is about.
func TestAskedAgainWhileTheEndpointIsAsked(t *testing.T) {
	for _, agrees := range []bool{true, false} {
		t.Run(fmt.Sprint("agrees ", agrees), func(t *testing.T) {
			d := newDoorstep(t)
			first, second := make(chan Agreement), make(chan Agreement)
			asked := make(chan struct{}, 2)
			d.listener.answer = func(Subscription, string, string, string) Agreement {
				n := d.listener.count()
				asked <- struct{}{}
				switch n {
				case 1:
					return <-first
				case 2:
					return <-second
				}
				return Agreement{Why: "it was asked three times"}
			}
			type outcome struct {
				Subscription
				error
			}
			ensure := func() chan outcome {
				ended := make(chan outcome, 1)
				go func() {
					s, err := d.Ensure(t.Context(), topic("orders"), "mailer", hook(example))
					ended <- outcome{s, err}
				}()
				<-asked
				return ended
			}
			one, two := ensure(), ensure()
			first <- Agreement{Why: "the caller has left"}
			if got := <-one; !errors.Is(got.error, ErrHandshake) {
				t.Errorf("the first: %+v, %v", got.State, got.error)
			}
			second <- Agreement{Agreed: agrees, Why: "404"}
			got := <-two
			if agrees && (got.error != nil || got.State != Active) || !agrees && !errors.Is(got.error, ErrHandshake) {
				t.Errorf("the second: %s, %v", got.State, got.error)
			}
			if left, _ := d.Memory.List(t.Context(), subscriptionsPrefix); len(left) == 1 != agrees {
				t.Errorf("left: %v", left)
			}
		})
	}
}
