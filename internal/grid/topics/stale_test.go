package topics

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G1: a node that has not heard yet that a topic was made anew takes nothing from the new one: to
// it the new one's subscriptions look like leftovers.
func TestStaleNodeReplacesNothingOfANewTopic(t *testing.T) {
	for _, how := range []string{"create", "ensure"} {
		t.Run(how, func(t *testing.T) {
			y := newYard(t)
			k := y.open(t, Config{})
			mustTopic(t, k, "orders")
			mustCreate(t, k, topic("orders"), "mailer", hook(example))
			stale := y.open(t, Config{Validate: &endpoint{}}) // it does not run, and so hears nothing
			testkit.Must(t, k.DeleteTopic(t.Context(), "orders"))
			mustTopic(t, k, "orders")
			made := mustCreate(t, k, topic("orders"), "mailer", hook(example))
			var err error
			if how == "create" {
				_, err = stale.Create(t.Context(), topic("orders"), "mailer", hook(example))
			} else {
				_, err = stale.Ensure(t.Context(), topic("orders"), "mailer", hook(example))
			}
			testkit.ErrorIs(t, err, ErrTopicNotFound)
			if found, err := y.open(t, Config{}).Find(topic("orders"), "mailer"); err != nil || found.ID != made.ID {
				t.Errorf("found %+v, %v", found, err)
			}
		})
	}
}

// The same, where a hub was made anew.
func TestStaleNodeReplacesNothingOfANewHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub(t, "sensors", 1)
		deaf, err := broker.Open(t.Context(), broker.Config{Engine: y.engine, Meta: y.store, Namespace: "yard", Log: quiet()})
		testkit.Must(t, err)
		stale, err := Open(t.Context(), Config{Engine: y.engine, Meta: y.store, Broker: deaf, Validate: &endpoint{}, Log: quiet()})
		testkit.Must(t, err)
		time.Sleep(time.Second)
		testkit.Must(t, y.broker.DeleteHub(t.Context(), "sensors"))
		y.hub(t, "sensors", 1)
		k := y.open(t, Config{})
		time.Sleep(time.Second)
		made := mustCreate(t, k, Source{Hub: "sensors"}, "mailer", hook(example))
		_, err = stale.Create(t.Context(), Source{Hub: "sensors"}, "mailer", hook(example))
		wantError(t, err, ErrExists, "delete it first")
		if found, err := y.open(t, Config{}).Find(Source{Hub: "sensors"}, "mailer"); err != nil || found.ID != made.ID || found.State != Active {
			t.Errorf("found %+v, %v", found, err)
		}
	})
}
