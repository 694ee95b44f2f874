package delivery

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// G7: ten failures in a row, then nothing; one probe, longer and longer; then all goes on.
func TestProbation(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("broken", func(s *topics.Settings) { s.Concurrency = 1 })
		y.sender.always(outcome(retry.SocketError))
		began := time.Now()
		y.publish("orders", ids("e", 30)...)
		wait()
		y.wantRequests("", 10, "before probation")
		if st := y.stats(id).Endpoint; st.State != retry.Waiting || st.Last != retry.SocketError || !st.Until.Equal(began.Add(30*time.Second)) {
			t.Errorf("endpoint %+v", st)
		}
		after(11 * time.Second) // retries fall due, and wait
		y.wantRequests("", 10, "in all while on probation, want none more")
		after(19 * time.Second) // at 30 s
		y.wantRequests("", 11, "in all, want one")
		after(60*time.Second - 1) // the second probation lasts twice as long
		y.wantRequests("", 11, "in all, want one")
		after(1)
		y.wantRequests("", 12, "in all, want two")
		y.sender.always(ok())
		after(2*time.Minute - 1)
		y.wantRequests("", 12, "in all, want two")
		after(1)
		testkit.Equal(t, y.stats(id).Endpoint.State, retry.Well, "endpoint")
		after(time.Minute)
		wantIDs(t, "delivered", y.sender.delivered(""), ids("e", 30))
		testkit.Equal(t, len(y.sender.delivered("")), 30, "deliveries of 30 events")
		wantIDs(t, "dead", y.dead.ids(""), nil)
	})
}

// G7: waiting uses no attempt.
func TestWaitingOnProbationUsesNoAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("broken")
		y.sender.always(outcome(retry.SocketError))
		y.publish("orders", ids("e", 40)...)
		after(10 * time.Hour)
		y.sender.always(ok())
		after(4 * time.Hour)
		wantIDs(t, "delivered", y.sender.delivered(""), ids("e", 40))
		for _, d := range y.sender.all("") {
			if slices.Max(d.attempts) > 3 {
				t.Errorf("an event had %d attempts within hours of probation", slices.Max(d.attempts))
			}
		}
	})
}

// G7: an endpoint is its URL and credentials, whoever delivers to it.
func TestEndpointsAreSharedBySubscriptions(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		same := func(s *topics.Settings) { s.Webhook = &egress.Endpoint{URL: "https://same.example/hook"} }
		y.topic("orders")
		y.topic("others")
		first := y.subscribe("orders", "first", same)
		second := y.subscribe("others", "second", same)
		third := y.subscribe("others", "third")
		y.sender.fails("first", status(503))
		wait()
		y.publish("orders", ids("e", 20)...)
		wait()
		y.sender.forget()
		y.publish("others", "x", "y")
		wait()
		y.wantRequests("second", 0, "of another subscription to an endpoint on probation")
		wantIDs(t, "another endpoint", y.sender.delivered("third"), []string{"x", "y"})
		y.wantEndpoint(second, retry.Waiting)
		y.wantEndpoint(third, retry.Well)
		y.sender.always(ok())
		after(10 * time.Second)
		wantIDs(t, "second", y.sender.delivered("second"), []string{"x", "y"})
		after(time.Minute)
		wantIDs(t, "first", y.sender.delivered("first"), ids("e", 20))
		y.wantEndpoint(first, retry.Well)
	})
}

// G7: exactly one request goes out as the probe, however many lanes there are.
func TestOneProbeForAllSubscriptionsOfAnEndpoint(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		names := []string{"sub-a", "sub-b", "sub-c", "sub-d", "sub-e"}
		for _, name := range names {
			y.subscribe("orders", name, func(s *topics.Settings) { s.Webhook = &egress.Endpoint{URL: "https://same.example"} })
		}
		y.sender.always(status(503))
		wait()
		y.publish("orders", ids("e", 10)...)
		wait()
		y.sender.forget()
		after(10*time.Second + 20*time.Second + 40*time.Second + time.Second)
		drops := y.sender.all("")
		testkit.Equal(t, len(drops), 3, "probes after three probations")
		y.sender.always(ok())
		after(time.Hour)
		for _, name := range names {
			wantIDs(t, name, y.sender.delivered(name), ids("e", 10))
		}
	})
}

// G7: one request, also while it takes long and new events come.
func TestAProbeIsOneRequest(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver")
		y.sender.always(status(503))
		y.publish("orders", ids("e", 30)...)
		after(time.Second)
		y.sender.forget()
		y.sender.after(20*time.Second, ok())
		after(10 * time.Second) // it has begun
		for i := range 10 {
			y.publish("orders", ids(string(rune('f'+i)), 10)...)
			after(time.Second)
		}
		if now, _ := y.sender.underWay(); now != 1 || len(y.sender.all("")) != 0 {
			t.Errorf("%d requests are under way, want one", now)
		}
		after(time.Hour)
		testkit.Equal(t, len(y.sender.delivered("")), 130, "deliveries")
	})
}

// G7: what has nothing to send does not keep others from finding out.
func TestTheProbeIsPassedOnByThoseWhoHaveNothing(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		same := func(s *topics.Settings) { s.Webhook = &egress.Endpoint{URL: "https://same.example"} }
		y.topic("orders")
		y.topic("others")
		y.subscribe("orders", "fails", same)
		y.subscribe("others", "idle", same)
		y.sender.always(status(404)) // given up at once, so that nothing is left
		wait()
		y.publish("orders", ids("e", 10)...)
		wait()
		y.sender.always(ok())
		y.sender.forget()
		after(10 * time.Minute)
		y.wantRequests("", 0, "though there was nothing to be sent")
		y.publish("others", "x")
		wait()
		wantIDs(t, "idle", y.sender.delivered("idle"), []string{"x"})
		y.publish("orders", "y")
		wait()
		wantIDs(t, "fails", y.sender.delivered("fails"), []string{"y"})
	})
}

// G7: 400 and 413 are no sign of illness, and a probe answered so shows that the endpoint lives.
func TestRefusalsAreNoSignOfIllness(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver")
		y.sender.always(status(400))
		y.publish("orders", ids("e", 50)...)
		wait()
		y.wantRequests("", 50, "in all")
		y.wantEndpoint(id, retry.Well)
		y.sender.always(status(503))
		y.publish("orders", ids("f", 20)...)
		wait()
		y.wantEndpoint(id, retry.Waiting)
		y.sender.always(status(413))
		after(time.Minute) // all may have been on their way when probation began: then the probe is the first that falls due again
		y.wantEndpoint(id, retry.Well)
	})
}

// G7: time to live runs on.
func TestTimeToLiveRunsOnWhileOnProbation(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("broken", func(s *topics.Settings) { s.Retry.TimeToLive = 5 * time.Minute })
		y.sender.always(outcome(retry.ResolutionError)) // probation of five minutes, then ten
		began := time.Now()
		y.publish("orders", ids("e", 300)...)
		after(4 * time.Minute)
		y.publish("orders", "later")
		wantIDs(t, "dead", y.dead.ids(""), nil)
		after(time.Minute + 5*time.Second)
		wantIDs(t, "dead after five minutes", y.dead.ids(retry.ReasonAge), ids("e", 300))
		if st := y.stats(id).Endpoint; st.State == retry.Well {
			t.Errorf("endpoint is %v", st.State)
		}
		held := 0
		for _, p := range y.dead.all() {
			if p.LastOutcome == retry.OnProbation {
				held++
			}
		}
		if held < 280 {
			t.Errorf("%d of 300 dead letters say that they were held by probation", held)
		}
		after(5 * time.Minute)
		wantIDs(t, "dead after ten minutes", y.dead.ids(""), append(ids("e", 300), "later"))
		if n := len(y.sender.all("")); n > 40 {
			t.Errorf("%d requests within %v of probation", n, time.Since(began))
		}
	})
}

func TestResumeEndsProbation(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("broken")
		y.sender.always(outcome(retry.ResolutionError))
		y.publish("orders", ids("e", 30)...)
		after(time.Minute)
		y.sender.always(ok())
		testkit.Must(t, y.service.Probe(t.Context(), id))
		wait()
		y.wantEndpoint(id, retry.Well)
		wantIDs(t, "delivered", y.sender.delivered(""), ids("e", 30))
		testkit.ErrorIs(t, y.service.Probe(t.Context(), "nobody"), ErrNotFound, "resuming what is not there")
	})
}

// G7: what was on its way when probation began does not make it longer, and a success ends it.
func TestStragglersDoNotLengthenProbation(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("broken", func(s *topics.Settings) { s.Concurrency = 30 })
		y.sender.says(func(_ context.Context, d drop) webhook.Result {
			time.Sleep(time.Second) // so that all are on their way
			if d.ids[0] >= "e00015" {
				time.Sleep(4 * time.Second)
			}
			if d.ids[0] == "e00029" {
				time.Sleep(time.Second)
				return ok()
			}
			return status(503)
		})
		began := time.Now()
		y.publish("orders", ids("e", 30)...)
		after(5 * time.Second)
		if st := y.stats(id).Endpoint; !st.Until.Equal(began.Add(11 * time.Second)) {
			t.Errorf("endpoint %+v, want probation of ten seconds", st)
		}
		after(time.Second)
		y.wantEndpoint(id, retry.Well)
	})
}

// G7: nothing but one batch is in memory while an endpoint is ill.
func TestProbationFreesMemory(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("broken")
		y.sender.always(outcome(retry.ResolutionError))
		for i := range 10 {
			y.publish("orders", ids(string(rune('a'+i)), 500)...)
		}
		after(time.Second)
		y.wantNoMemory("in use while nothing can be sent")
		y.wantStats(id, func(st Stats) bool { return st.Behind+st.Parked+int64(len(st.Waiting)) != 0 && st.Queued == 0 })
	})
}

// G7: a change of the definition that leaves the endpoint alone does not let another probe out.
func TestAProbeUnderWayOutlivesAChangeOfTheDefinition(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		for _, name := range []string{"first", "second"} {
			y.subscribe("orders", name, func(s *topics.Settings) { s.Webhook.URL = "https://same.example" })
		}
		y.sender.always(status(503))
		wait()
		y.publish("orders", ids("e", 30)...)
		after(time.Second)
		y.sender.after(20*time.Second, ok())
		after(10 * time.Second)
		for _, name := range []string{"first", "second"} {
			y.change("orders", name, func(s *topics.Settings) { s.Labels = []string{"changed"} })
		}
		after(time.Second)
		if now, _ := y.sender.underWay(); now != 1 {
			t.Errorf("%d requests are under way, want one", now)
		}
		after(time.Hour)
		for _, name := range []string{"first", "second"} {
			wantIDs(t, name, y.sender.delivered(name), ids("e", 30))
		}
	})
}

// sharers are two lanes of different topics with one endpoint, which the second has just found to
// be ill, and for which it has more.
func sharers(t *testing.T, y *yard) (first, second *lane) {
	t.Helper()
	same := func(s *topics.Settings) {
		s.Webhook, s.Concurrency = &egress.Endpoint{URL: "https://same.example/hook"}, 1
	}
	y.topic("orders")
	y.topic("others")
	a, b := y.subscribe("orders", "first", same), y.subscribe("others", "second", same)
	y.sender.always(status(503))
	wait()
	y.publish("others", ids("e", 20)...)
	wait()
	first, second = y.lane(a), y.lane(b)
	testkit.MustEqual(t, second.endpoint.state(time.Now()).State, retry.Waiting, "the endpoint")
	return first, second
}

// probes makes a lane the one who is to probe, before it has sent anything.
func (e *endpoint) probes(l *lane) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.prober = l
}

// G7: a lane that is paused when it is its turn to probe does not keep the others from it.
func TestAPausedLaneGivesTheProbeBack(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		first, second := sharers(t, y)
		y.sender.always(ok())
		second.endpoint.probes(first)
		y.change("orders", "first", func(s *topics.Settings) { s.Paused = true })
		after(time.Hour)
		wantIDs(t, "second", y.sender.delivered("second"), ids("e", 20))
	})
}

// G7: when an endpoint is found to be well before the probe was sent, nobody is the prober any
// more, so that the next probation has one of its own.
func TestAProbeThatIsNotNeededIsForgotten(t *testing.T) {
	for _, c := range []struct {
		name string
		heal func(y *yard, second *lane)
	}{
		{"a delivery that was on its way succeeds", func(_ *yard, second *lane) {
			second.endpoint.report(second, false, retry.Delivered, time.Now())
			second.poke(time.Now()) // as the worker does
		}},
		{"an operator resumes", func(y *yard, second *lane) {
			testkit.Check(y.t, y.service.Probe(y.t.Context(), second.id))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, y *yard) {
				first, second := sharers(t, y)
				second.endpoint.probes(first)
				c.heal(y, second) // and at once it is ill again
				after(time.Second)
				testkit.MustEqual(t, second.endpoint.state(time.Now()).State, retry.Waiting, "the endpoint")
				y.sender.always(ok())
				after(time.Hour)
				wantIDs(t, "second", y.sender.delivered("second"), ids("e", 20))
			})
		})
	}
}

// G5: an answer that comes late for an event that was given up is no answer to what is made of
// it later.
func TestALateSuccessAfterTheEndIsNotRemembered(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		id := y.subscribe("orders", "receiver", func(s *topics.Settings) { s.Retry.MaxAttempts = 1 })
		y.sender.says(func(context.Context, drop) webhook.Result { return late(5*time.Second, ok()) })
		wait()
		y.publish("orders", "e")
		after(time.Minute)
		letters := y.dead.all()
		testkit.MustEqual(t, len(letters), 1, "dead letters")
		y.change("orders", "receiver", func(s *topics.Settings) { s.Retry.MaxAttempts = 5 })
		wait()
		y.sender.always(status(503))
		letters[0].Attempts, letters[0].Alive = 0, time.Now()
		letters[0].Subscription = id
		testkit.Must(t, y.service.Redeliver(t.Context(), letters))
		wait()
		y.sender.always(ok())
		after(time.Hour)
		wantIDs(t, "after it was redriven", y.sender.delivered(""), []string{"e"})
	})
}
