package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R4: an event that subscriptions pass round and round ends as a dead letter, whichever way it
// goes, and each way round counts.
func TestALoopOfSubscriptionsEnds(t *testing.T) {
	const (
		toOrders   = `"endpoint":"URL/topics/orders/api/events","headers":[{"name":"Authorization","value":"SharedAccessKey KEY"}]`
		toReadings = `"endpoint":"URL/topics/readings/api/events","headers":[{"name":"Authorization","value":"SharedAccessKey KEY"}]`
	)
	toTopic := func(r *running) { r.publish("orders", "round") }
	toHub := func(r *running) { r.want(201, "POST", "/api/v1/hubs/store/events", `[{"body":"round"}]`) }
	for name, tt := range map[string]struct {
		subscriptions []string
		publish       func(r *running)
		last          string // who has the event after its last hop
	}{
		"a topic to itself":             {[]string{`"name":"self","topic":"orders",` + toOrders}, toTopic, "self"},
		"a topic to itself, in batches": {[]string{`"name":"self","topic":"orders","maxEvents":9,` + toOrders}, toTopic, "self"},
		"a topic to a hub, and back":    {[]string{`"name":"there","topic":"readings","hub":"store"`, `"name":"back","sourceHub":"store",` + toReadings}, toHub, "back"},
		"two hubs to each other":        {[]string{`"name":"there","sourceHub":"store","hub":"other"`, `"name":"back","sourceHub":"other","hub":"store"`}, toHub, "there"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := quick(t)
			cfg.Hubs = []Hub{{Name: "store", Partitions: 1}, {Name: "other", Partitions: 1}}
			cfg.Topics = []Topic{{Name: "orders", Key1: configuredKey}, {Name: "readings", Schema: "cloudevents", Key1: configuredKey}}
			r := start(t, cfg)
			fill := strings.NewReplacer("URL", r.url, "KEY", configuredKey)
			for _, definition := range tt.subscriptions {
				r.want(201, "POST", "/api/v1/subscriptions", fill.Replace(`{"skipValidation":true,"deadLetter":"yard",`+definition+"}"))
			}
			tt.publish(r)
			var dead admin.DeadLetterPage
			testkit.Eventually(t, "a dead letter", func() bool {
				testkit.Must(t, json.Unmarshal([]byte(r.want(200, "GET", "/api/v1/subscriptions/"+tt.last+"/dead", "")), &dead))
				return len(dead.Letters) > 0
			})
			l := dead.Letters[0]
			testkit.Equal(t, fmt.Sprintln(len(dead.Letters), l.Reason, l.Outcome), "1 HopLimitExceeded LoopDetected\n", "dead letters")
			testkit.That(t, strings.Contains(l.Advice, "in a loop"), "the advice is %q", l.Advice)
			r.shutdown()
		})
	}
}
