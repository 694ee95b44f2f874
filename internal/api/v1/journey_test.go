package v1

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/runner"
	"github.com/eventyard/eventyard/internal/grid/schema"
	kafkagroups "github.com/eventyard/eventyard/internal/kafka/groups"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// journey follows an event of topic orders that is there once.
func (y *gridYard) journey(id string) admin.Journey {
	y.t.Helper()
	got := read[admin.Journeys](y.t, y.want(200, "GET", "/api/v1/topics/orders/events/"+id+"/journey", nil))
	testkit.MustEqual(y.t, len(got.Events), 1, "%+v", got)
	testkit.Equal(y.t, got.Summary, got.Events[0].Summary)
	return got.Events[0]
}

// to is the way of an event to a subscription, which has to be in a state and say something.
func (y *gridYard) to(id, subscription, state, says string) admin.JourneyTo {
	y.t.Helper()
	j := y.journey(id)
	for _, to := range j.Subscriptions {
		if to.Subscription == subscription {
			testkit.That(y.t, to.State == state && strings.Contains(to.Summary, says), "%s to %s is %s: %s; want %s: %s", id, subscription, to.State, to.Summary, state, says)
			return to
		}
	}
	y.t.Fatalf("nothing is said of %s: %+v", subscription, j)
	return admin.JourneyTo{}
}

// V2: why an event was not delivered, in each way that it can be so.
func TestTheJourneyOfAnEvent(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		const hook = `"endpoint":"https://example.com/hook"`
		y.subscribe("orders", "billing", hook+`,"deadLetter":"yard"`)
		y.subscribe("orders", "large", hook+`,"filters":["data.n NumberGreaterThan 100"]`)
		y.subscribe("orders", "still", hook+`,"paused":true`)
		y.publish("orders", "1")
		got := y.to("1", "billing", "delivered", "attempt 1, answered 200 in ")
		testkit.That(t, got.Matches && len(got.Tries) == 1 && got.Tries[0].Events == 1 && got.KnownSince != nil, "delivered: %+v", got)
		got = y.to("1", "large", "unmatched", "never: the filter wants data.n NumberGreaterThan 100, and it is 1")
		testkit.That(t, !got.Matches && len(got.Conditions) == 1 && string(got.Conditions[0].Met) == "1", "unmatched: %+v", got)
		y.to("1", "still", "behind", "the subscription is paused: eventyard subscription resume still")
		words := y.journey("1").Summary
		testkit.That(t, strings.Contains(words, "was delivered to 1 of 2 subscriptions that it matches; still: not yet: "), "in all: %s", words)

		y.subscribe("orders", "newcomer", hook)
		y.settle()
		y.to("1", "newcomer", "early", "before the subscription became active")

		y.hook.set(true, 503)
		y.publish("orders", "2")
		got = y.to("2", "billing", "waiting", "due in 29s")
		testkit.That(t, got.Attempts == 1 && len(got.Tries) == 1 && got.Tries[0].Said == "answer 503" && got.Due != nil && got.Expires != nil, "waiting: %+v", got)
		testkit.That(t, strings.Contains(got.Summary, "tried 1 time, the last ended in 503 Busy (answer 503)") && strings.Contains(got.Summary, "29 attempts and"), "waiting: %s", got.Summary)

		y.hook.set(true, 400)
		y.publish("orders", "3")
		got = y.to("3", "billing", "dead-lettered", "UndeliverableDueToClientError after 1 attempt, the last ended in 400 BadRequest; send it again with: eventyard dead redrive billing 0")
		testkit.That(t, got.DeadLetter != nil && len(got.Tries) == 1, "dead: %+v", got)
		y.to("3", "newcomer", "dropped", "after 1 attempt; to keep such events: eventyard subscription update newcomer --dead-letter yard")

		y.hook.set(true, 0)
		y.want(200, "POST", billingPath+"/redrive", `{"numbers":[0]}`)
		time.Sleep(time.Minute)
		got = y.to("3", "billing", "delivered", "delivered at")
		testkit.That(t, got.DeadLetter != nil && got.DeadLetter.Redriven != nil, "redriven: %+v", got)
	})
}

// V2: several events may have one id; and what is not there says where it was looked for.
func TestEventsAreFoundByTheirIDs(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.want(201, "POST", "/api/v1/topics", `{"name":"orders"}`)
		path := "/api/v1/topics/orders/events/"
		none := read[admin.Journeys](t, y.want(200, "GET", path+"twice/journey", nil))
		testkit.Equal(t, none.Summary, "no event of topic orders has the id twice: there are no events to look at")
		y.publish("orders", "twice")
		y.publish("orders", "once", "twice", "a/b")
		got := read[admin.Journeys](t, y.want(200, "GET", path+"twice/journey", nil))
		testkit.That(t, len(got.Events) == 2 && got.Summary == "2 events of topic orders have the id twice", "twice: %+v", got)
		testkit.That(t, strings.HasSuffix(y.journey("a%2Fb").Summary, "goes to nobody: there is no subscription"), "a/b: %+v", y.journey("a%2Fb"))
		none = read[admin.Journeys](t, y.want(200, "GET", path+"never/journey", nil))
		testkit.That(t, none.Looked.Events == 4 && none.Looked.Before == nil && strings.HasSuffix(none.Summary, "which are all that are kept"), "never: %+v", none)
		none = read[admin.Journeys](t, y.want(200, "GET", path+"once/journey?before=1", nil))
		testkit.That(t, none.Looked.Events == 1 && len(none.Events) == 0, "before: %+v", none)
		y.want(400, "GET", path+"once/journey?before=x", nil)
		y.want(404, "GET", "/api/v1/topics/nowhere/events/1/journey", nil)

		y.fill("orders", maxLooked+500)
		none = read[admin.Journeys](t, y.want(200, "GET", path+"twice/journey", nil))
		testkit.That(t, none.Looked.Events == maxLooked && none.Looked.Before != nil && *none.Looked.Before == 504 && strings.HasSuffix(none.Summary, "older ones follow before number 504"), "far: %+v", none)
		got = read[admin.Journeys](t, y.want(200, "GET", fmt.Sprintf("%stwice/journey?before=%d", path, *none.Looked.Before), nil))
		testkit.That(t, len(got.Events) == 2 && got.Looked.Before == nil, "further: %+v", got)
	})
}

// fill publishes many events to a topic.
func (y *gridYard) fill(topic string, n int) {
	y.t.Helper()
	for n > 0 {
		some := min(n, 5000)
		stored := make([][]byte, some)
		for i := range stored {
			events, err := schema.Read(schema.Publication{
				Kind: schema.EventGrid, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte("[" + gridEvent("filler", "1") + "]"), Now: time.Now(),
			})
			testkit.Must(y.t, err)
			stored[i] = events[0]
		}
		testkit.Must(y.t, y.topics.Publish(y.t.Context(), topic, stored, nil))
		n -= some
	}
}

// V2: an event of a hub goes to subscriptions, groups and functions.
func TestTheJourneyOfAHubsEvent(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.want(201, "POST", "/api/v1/hubs", `{"name":"readings","partitions":2}`)
		y.want(201, "POST", "/api/v1/subscriptions", `{"name":"audit","sourceHub":"readings","endpoint":"https://example.com/hook","skipValidation":true,"filters":["data.t NumberLessThan 0"]}`)
		y.settle()
		y.want(201, "POST", "/api/v1/hubs/readings/events?partition=1", `[{"body":{"t":5}},{"body":{"t":-5}}]`)
		y.settle()
		path := "/api/v1/hubs/readings/partitions/1/events/"
		got := read[admin.Journeys](t, y.want(200, "GET", path+"0/journey", nil))
		testkit.That(t, len(got.Events) == 1 && got.Events[0].Subscriptions[0].State == "unmatched", "the first: %+v", got)
		got = read[admin.Journeys](t, y.want(200, "GET", path+"1/journey", nil))
		testkit.That(t, len(got.Events) == 1 && got.Events[0].Subscriptions[0].State == "delivered", "the second: %+v", got)
		testkit.That(t, strings.HasPrefix(got.Summary, "readings/1/1, published to hub readings at "), "the second: %s", got.Summary)
		none := read[admin.Journeys](t, y.want(200, "GET", path+"7/journey", nil))
		testkit.That(t, len(none.Events) == 0 && strings.Contains(none.Summary, "the partition has numbers 0 to 1"), "none: %+v", none)
		y.want(400, "GET", path+"x/journey", nil)
		y.want(404, "GET", "/api/v1/hubs/readings/partitions/2/events/0/journey", nil)
	})
}

// calls are functions of which something is remembered; they count how often they are asked for it.
type calls struct {
	Functions
	remembered runner.Calls
	asked      int
}

func (c *calls) EventCalls(context.Context, runner.CallQuery) (runner.Calls, []string, error) {
	c.asked++
	return c.remembered, []string{"b"}, nil
}

// V2: nodes are asked once for the calls with an event, and each function has its own.
func TestTheJourneyAsksOnceForTheCalls(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.hub("readings", 1)
		for _, name := range []string{"billing", "shipping", "idle"} {
			y.want(201, "POST", "/api/v1/functions", `{"name":"`+name+`","hub":"readings","endpoint":"http://x/"}`)
		}
		y.want(201, "POST", "/api/v1/hubs/readings/events", `[{"body":"x"}]`)
		c := &calls{Functions: y.handler.cfg.Functions, remembered: runner.Calls{Calls: []runner.Call{
			{Function: "billing", Attempt: 1, Outcome: "failed"}, {Function: "shipping", Attempt: 1, Outcome: "done"}, {Function: "Billing", Attempt: 2, Outcome: "done"},
		}}}
		y.handler.cfg.Functions = c
		got := read[admin.Journeys](t, y.want(200, "GET", "/api/v1/hubs/readings/partitions/0/events/0/journey", nil)).Events[0]
		var words []string
		for _, f := range got.Functions {
			for _, call := range f.Calls {
				words = append(words, fmt.Sprint(f.Function, " ", call.Attempt, " ", call.Outcome))
			}
			testkit.Slices(t, f.Missing, []string{"b"}, f.Function)
		}
		testkit.Slices(t, words, []string{"billing 1 failed", "billing 2 done", "shipping 1 done"})
		testkit.That(t, len(got.Functions) == 3 && c.asked == 1, "of %d functions it asks %d times", len(got.Functions), c.asked)
	})
}

// V2, F5: the answer begins with what came of the event at functions, and one that was stopped says what lets it run again.
func TestTheJourneyBeginsWithFunctions(t *testing.T) {
	one := func(state, stopped string) admin.Journey {
		return admin.Journey{Hub: "tills", Partition: "0", Sequence: 4, Functions: []admin.JourneyFunction{{Function: "bill", State: state, Stopped: stopped, Summary: "why"}}}
	}
	two := one("poison", "")
	two.Functions = append(two.Functions, admin.JourneyFunction{Function: "count", State: "handled"})
	two.Subscriptions = []admin.JourneyTo{{Subscription: "audit", State: "delivered"}}
	for name, test := range map[string]struct {
		j    admin.Journey
		want string
	}{
		"put away":            {one("poison", ""), "was put away as poison by function bill; function bill: why"},
		"open":                {one("before", "open"), "waits for function bill, which is open; function bill: why"},
		"running":             {one("before", ""), "is not handled by function bill yet; function bill: why"},
		"nobody knows":        {one("unknown", ""), "is not known to be handled by function bill; function bill: why"},
		"handled":             {one("handled", ""), "was handled by function bill"},
		"with a subscription": {two, "was put away as poison by function bill, was handled by 1 of 2 functions, and was delivered to the one subscription that it matches; function bill: why"},
	} {
		_, got, _ := strings.Cut(sayJourney(&test.j), "Z, ")
		testkit.Equal(t, got, test.want, name)
	}
	var shown admin.JourneyFunction
	_, words := sayFunction(&shown, runner.Function{Definition: runner.Definition{Name: "bill"}, State: "paused", Circuit: breaker.Record{State: breaker.Held}}, readerBefore)
	testkit.Equal(t, words, "not yet: its checkpoint is before the event; it is paused; let it run with: eventyard function resume bill")
	testkit.Equal(t, shown.Stopped, "paused")
}

// V6: the journey of an event says which trace it is of, and where to look at that.
func TestTheJourneyLinksToTheTrace(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.handler.cfg.TraceURL = "https://traces.example/{trace}?a={trace}"
		y.subscribe("orders", "billing", `"endpoint":"https://example.com/hook"`)
		y.publish("orders", "1")
		j := y.journey("1")
		testkit.Equal(t, j.TraceID+j.TraceURL, "", "without a trace")
		y.hub("readings", 1)
		y.want(201, "POST", "/api/v1/hubs/readings/events", `[{"body":"x"}]`, "traceparent", traceParent)
		got := read[admin.Journeys](t, y.want(200, "GET", "/api/v1/hubs/readings/partitions/0/events/0/journey", nil)).Events[0]
		const id = "4bf92f3577b34da6a3ce929d0e0e4736"
		testkit.Equal(t, got.TraceID, id)
		testkit.Equal(t, got.TraceURL, "https://traces.example/"+id+"?a="+id)
	})
}

// V2, K3: a number without an event is told from one that is not there: it was aborted, ends a transaction, or is in one that
// is open.
func TestTheJourneyOfNumbersWithoutAnEvent(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.hub("tills", 1)
		y.transact("tills", 5, 0, "no")
		y.decide("tills", 5, false)
		for _, readable := range []bool{false, true} {
			if readable {
				y.send("tills", "0", "a")
				y.transact("tills", 5, 1, "open")
			}
			for number, want := range map[string]string{"0": aborted, "1": aborted, "3": undecided, "4": "later ones are not published yet"} {
				if number > "1" && !readable {
					continue
				}
				got := read[admin.Journeys](t, y.want(200, "GET", "/api/v1/hubs/tills/partitions/0/events/"+number+"/journey", nil))
				testkit.That(t, len(got.Events) == 0 && strings.HasPrefix(got.Summary, "there is no event tills/0/"+number+": ") && strings.Contains(got.Summary, want), "of number %s it says: %s", number, got.Summary)
			}
		}
	})
}

// V2, K2, P6: groups count by the checkpoints that their table shows, also those in blobs, and Kafka groups by their offsets.
func TestTheJourneyOfAHubsEventKnowsAllReaders(t *testing.T) {
	y := newYard(t, func(c *Config) {
		c.Groups = inBlobs{c.Groups}
	})
	y.hub("tills", 1)
	y.send("tills", "0", "a", "b")
	o := kafkagroups.Operator{Coordinator: y.kafka}
	testkit.Must(t, o.SetOffsets(t.Context(), "kpg", "tills", map[int32]int64{0: 1}))
	for number, want := range map[string]string{"0": "past", "1": "before"} {
		got := read[admin.Journeys](t, y.want(200, "GET", "/api/v1/hubs/tills/partitions/0/events/"+number+"/journey", nil))
		testkit.MustEqual(t, len(got.Events), 1, "events")
		testkit.Slices(t, got.Events[0].Groups, []admin.JourneyGroup{{Group: "$Default", State: want}}, "event %s", number)
		testkit.Slices(t, got.Events[0].KafkaGroups, []admin.JourneyGroup{{Group: "kpg", State: want}}, "event %s", number)
	}
}

// inBlobs has each group's checkpoint at the first event, in blobs.
type inBlobs struct{ Groups }

func (inBlobs) Positions(context.Context, processor.Group) (map[string]processor.Checkpoint, error) {
	return map[string]processor.Checkpoint{"0": {Partition: "0"}}, nil
}
