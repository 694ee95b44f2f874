package server

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// unnoted are the requests of the API that are no GET and of which this test sees no entry of activity, each with the
// reason. A new route is either here or in TestWhatOperatorsChangeIsKept.
var unnoted = map[string]string{
	"POST /api/v1/hubs/{hub}/events":                                 "events are what the yard is for, and no change of it",
	"POST /api/v1/cluster/scrub":                                     "it reads",
	"POST /api/v1/storage/check":                                     "it reads",
	"POST /api/v1/subscriptions/{subscription}/explain":              "it changes nothing",
	"POST /api/v1/notices/test":                                      "it changes nothing",
	"POST /api/v1/subscriptions/{subscription}/probe":                "it asks an endpoint earlier; that this is well again is an entry of the yard",
	"POST /api/v1/cluster/replicas":                                  "it takes NATS servers: TestAChangeOfReplicasIsKept of internal/api/v1",
	"DELETE /api/v1/hubs/{hub}/groups/{group}/ownership/{partition}": "it takes an owner: TestWhatIsNotedOfAGroup of internal/hubs/groups",
	"DELETE /api/v1/hubs/{hub}/groups/{group}/instances/{instance}":  "it takes time, until one is dead: TestForget of internal/hubs/groups",
}

// V5: whatever an operator changes by the API is kept as activity, with who asked for it and from where. All routes of
// the API's table are here, or say above why not.
func TestWhatOperatorsChangeIsKept(t *testing.T) {
	testengine.NeedsFiles(t)
	hook := newReceiver(t)
	cfg := quick(t)
	cfg.Grid.DeadLetterDelay = -1
	r := start(t, cfg)
	client := r.admin()
	asked := map[string]bool{}
	seen := int64(-1) // the number of the last entry
	do := func(route, body, kind, object string) {
		t.Helper()
		method, path, _ := strings.Cut(route, " ")
		status, answer := r.do(method, namesOf.Replace(path), body)
		testkit.MustThat(t, status/100 == 2, "%s answers %d: %s", route, status, answer)
		asked[route] = true
		var found admin.Activity
		testkit.Eventually(t, fmt.Sprintf("%s of %s, of %s", kind, object, route), func() bool {
			page, err := client.Activity(t.Context(), admin.ActivityQuery{Kinds: []string{kind}, Object: object, Limit: 1})
			testkit.Must(t, err)
			there := len(page.Activity) == 1 && page.Activity[0].Number > seen
			if there {
				found = page.Activity[0]
			}
			return there
		})
		seen = found.Number
		testkit.That(t, strings.Contains(found.By, "RootManageSharedAccessKey"), "%s is put down to %+v", route, found)
	}
	const group, kafka = "hubs/orders/groups/billing", "hubs/orders/kafka-groups/readers"
	do("POST /api/v1/hubs", `{"name":"orders","partitions":2}`, "hub.created", "hubs/orders")
	do("PATCH /api/v1/hubs/{hub}", `{"retention":{"age":"1h"}}`, "hub.changed", "hubs/orders")
	do("POST /api/v1/hubs/{hub}/groups", `{"name":"billing"}`, "group.created", group)
	do("PUT /api/v1/hubs/{hub}/groups/{group}/checkpoints/{partition}", `{"to":{"earliest":true}}`, "checkpoint.moved", group)
	do("POST /api/v1/hubs/{hub}/groups/{group}/checkpoints", `{"checkpoints":[{"partition":"1","offset":"-1"}]}`, "checkpoint.moved", group)

	do("POST /api/v1/hubs/{hub}/kafka-groups/{kafka}/copy", `{"group":"billing","to":"kafka"}`, "checkpoint.moved", kafka)
	do("POST /api/v1/hubs/{hub}/kafka-groups/{kafka}/copy", `{"group":"billing","to":"processor"}`, "checkpoint.moved", group)
	do("PUT /api/v1/hubs/{hub}/kafka-groups/{kafka}/offsets/{partition}", `{"to":{"latest":true}}`, "checkpoint.moved", kafka)
	do("DELETE /api/v1/hubs/{hub}/kafka-groups/{kafka}/offsets", "", "checkpoint.forgotten", kafka)
	do("POST /api/v1/hubs/{hub}/kafka-groups/{kafka}/copy", `{"group":"billing","to":"kafka"}`, "checkpoint.moved", kafka)
	do("DELETE /api/v1/hubs/{hub}/kafka-groups/{kafka}", "", "group.deleted", kafka)

	for in, object := range map[string]string{"/api/v1/policies": "policies/till", "/api/v1/hubs/{hub}/policies": "hubs/orders/policies/till"} {
		do("POST "+in, `{"name":"till","rights":["Send"]}`, "policy.created", object)
		do("PATCH "+in+"/{policy}", `{"quota":{"events":100}}`, "policy.changed", object)
		do("POST "+in+"/{policy}/regenerate", `{"key":"primary"}`, "key.regenerated", object)
		do("DELETE "+in+"/{policy}", "", "policy.deleted", object)
	}
	do("PATCH /api/v1/blob-account", `{"quota":{"requests":100}}`, "blob-account.changed", "blob-account")
	do("POST /api/v1/blob-account/regenerate", `{"key":"primary"}`, "key.regenerated", "blob-account")

	const mailer = "topics/shop/subscriptions/mailer"
	do("POST /api/v1/topics", `{"name":"shop"}`, "topic.created", "topics/shop")
	do("PATCH /api/v1/topics/{topic}", `{"quota":{"events":100}}`, "topic.changed", "topics/shop")
	do("POST /api/v1/topics/{topic}/regenerate", `{"key":"key1"}`, "key.regenerated", "topics/shop")
	do("POST /api/v1/subscriptions", `{"name":"mailer","topic":"shop","endpoint":"`+hook.URL+`","sign":"hmac","deadLetter":"folder:dead","skipValidation":true}`, "subscription.created", mailer)
	do("PATCH /api/v1/subscriptions/{subscription}", `{"description":"it mails","paused":true}`, "subscription.changed", mailer)
	do("POST /api/v1/subscriptions/{subscription}/resume", ``, "subscription.changed", mailer)
	do("POST /api/v1/subscriptions/{subscription}/rotate-key", `{}`, "key.regenerated", mailer)
	hook.status.Store(http.StatusBadRequest)
	r.publish("shop", "1")
	aDeadLetter := func() bool {
		page, err := client.DeadLetters(t.Context(), admin.SubscriptionRef{Name: "mailer"}, admin.DeadLetterChoice{}, 0, 10)
		return err == nil && len(page.Letters) == 1
	}
	testkit.Eventually(t, "a dead letter", aDeadLetter)
	do("POST /api/v1/subscriptions/{subscription}/redrive", `{}`, "dead.redriven", mailer)
	testkit.Eventually(t, "it to be dead again", aDeadLetter)
	do("POST /api/v1/subscriptions/{subscription}/purge", `{}`, "dead.purged", mailer)
	do("DELETE /api/v1/subscriptions/{subscription}", "", "subscription.deleted", mailer)
	do("DELETE /api/v1/topics/{topic}", "", "topic.deleted", "topics/shop")

	do("POST /api/v1/functions", `{"name":"resize","hub":"orders","endpoint":"`+hook.URL+`","retries":0,"breaker":"off"}`, "function.created", "functions/resize")
	do("PATCH /api/v1/functions/{function}", `{"batch":7}`, "function.changed", "functions/resize")
	r.want(201, "POST", "/api/v1/hubs/orders/events", `{"events":[{"body":"one"}]}`)
	testkit.Eventually(t, "a poison event", func() bool {
		found, err := client.Poison(t.Context(), "resize-poison", admin.PoisonQuery{})
		return err == nil && len(found) == 1
	})
	do("POST /api/v1/hubs/{poison}/poison/redrive", `{}`, "poison.redriven", "hubs/resize-poison")
	do("POST /api/v1/functions/{function}/pause", `{}`, "circuit.held", "circuits/resize")
	do("POST /api/v1/functions/{function}/resume", `{}`, "circuit.resumed", "circuits/resize")
	do("POST /api/v1/circuits/{function}/open", `{"reason":"drill"}`, "circuit.held", "circuits/resize")
	do("POST /api/v1/circuits/{function}/close", `{}`, "circuit.resumed", "circuits/resize")
	do("DELETE /api/v1/functions/{function}", "", "function.deleted", "functions/resize")
	do("DELETE /api/v1/hubs/{hub}/groups/{group}", "", "group.deleted", group)
	do("DELETE /api/v1/hubs/{hub}", "", "hub.deleted", "hubs/orders")

	reasons := maps.Clone(unnoted)
	for _, rt := range testkit.Value(Routes(t.Context(), quick(t)))(t) {
		route := rt.Method + " " + rt.Path
		if rt.API != "v1" || rt.Method == http.MethodGet {
			continue
		}
		route = strings.Replace(route, "/kafka-groups/{group}", "/kafka-groups/{kafka}", 1)
		route = strings.Replace(route, "/hubs/{hub}/poison", "/hubs/{poison}/poison", 1)
		_, said := reasons[route]
		testkit.That(t, said != asked[route], "%s is asked for here: %v, and has a reason not to be: %v", route, asked[route], said)
		delete(asked, route)
		delete(reasons, route)
	}
	testkit.Equal(t, len(asked)+len(reasons), 0, "routes that there are not: %v, %v", asked, reasons)
}

// namesOf is what stands in paths.
var namesOf = strings.NewReplacer(
	"{hub}", "orders", "{group}", "billing", "{kafka}", "readers", "{poison}", "resize-poison", "{partition}", "0", "{policy}", "till", "{topic}", "shop",
	"{subscription}", "mailer", "{function}", "resize",
)

// V5: what somebody changes as a Kafka client is put down to where that came from; to whom is known where one logs in.
func TestWhatKafkaClientsChangeIsKept(t *testing.T) {
	cfg := quick(t)
	cfg.Kafka = "127.0.0.1:0"
	r := start(t, cfg)
	conn := r.dialKafka("kafka")
	create := kmsg.NewPtrCreateTopicsRequest()
	create.SetVersion(create.MaxVersion())
	one := kmsg.NewCreateTopicsRequestTopic()
	one.Topic, one.NumPartitions, one.ReplicationFactor = "orders", 1, -1
	create.Topics = append(create.Topics, one)
	testkit.Must(t, testkit.Err(conn.Ask(create)))
	made := r.activity(r.admin(), "hub.created", "hubs/orders")
	testkit.Equal(t, made.Address, "127.0.0.1")
}
