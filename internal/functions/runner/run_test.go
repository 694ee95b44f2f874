package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/poison/box"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// settle lets everything come to rest, and some time pass.
func settle(d time.Duration) {
	synctest.Wait()
	time.Sleep(d)
	synctest.Wait()
}

// inBubble runs a test with a yard in virtual time.
func inBubble(t *testing.T, test func(t *testing.T, y *yard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, newYard(t))
	})
}

func (y *yard) show(k *Registry, name string) Function {
	y.t.Helper()
	f, err := k.Show(y.t.Context(), name)
	testkit.Must(y.t, err)
	return f
}

// one partition is enough where order is looked at.
func small(change ...func(*Definition)) Definition {
	return resize(append(change, func(d *Definition) { d.Hub = "small" })...)
}

// F1: events of the hub reach the program, with the function's headers, and the group moves on.
func TestAFunctionIsCalled(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		k := y.open()
		y.run(k)
		y.send("orders", "0", "1", "2")
		y.create(k, resize(func(d *Definition) { d.Headers = map[string]string{"Authorization": "Bearer abc"} }))
		settle(15 * time.Second)
		y.send("orders", "1", "3")
		settle(5 * time.Second)
		got := strings.Fields(y.program.got("/resize"))
		if len(got) != 3 || y.program.headers[0].Get("Authorization") != "Bearer abc" {
			t.Errorf("it got %v, with %v", got, y.program.headers[0])
		}
		f := y.show(k, "resize")
		if f.State != StateRunning || f.Problem != "" || f.Lag != 0 || f.Instances != 1 || f.Counts.Done != 3 || f.Counts.Calls == 0 || f.Recommended != 0 {
			t.Errorf("it is %+v", f)
		}
	})
}

// F1: a function runs on every node, made on any.
func TestNodesShareTheWork(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		one, other := y.open(), y.open()
		stop := y.run(one)
		y.run(other)
		y.create(one, resize())
		y.create(other, resize(func(d *Definition) { d.Name, d.Group, d.Endpoint = "second", "second", "http://program.test/second" }))
		settle(time.Minute)
		for n := range 10 {
			y.send("orders", fmt.Sprint(n%2), fmt.Sprint(n))
		}
		settle(10 * time.Second)
		for _, path := range []string{"/resize", "/second"} {
			if got := strings.Fields(y.program.got(path)); len(got) != 10 {
				t.Errorf("%s got %v", path, got)
			}
		}
		if f := y.show(one, "second"); f.Instances != 2 || f.State != StateRunning {
			t.Errorf("%d instances, %s", f.Instances, f.State)
		}
		stop()
		y.send("orders", "0", "10")
		y.send("orders", "1", "11")
		settle(30 * time.Second)
		if got := strings.Fields(y.program.got("/resize")); len(got) != 12 {
			t.Errorf("after one has left it got %v", got)
		}
		testkit.Equal(t, y.show(one, "second").State, StateStarting, "where nothing runs it")
	})
}

// F1: a node that died and comes back under its own id goes on soon, and does not wait for its
// leases to run out.
func TestANodeThatComesBack(t *testing.T) {
	for _, test := range []struct {
		name, id string
		want     string // what is handled before a lease could have run out
	}{
		{"as itself", "node-1", "1"}, {"as another", "node-2", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, y *yard) {
				y.hub("small", 1)
				k := y.open(func(c *Config) { c.Instance = test.id })
				y.create(k, small())
				y.send("small", "0", "1")
				_, err := y.groups.Claim(t.Context(), small().group(""), []processor.Lease{{Partition: "0", Owner: "node-1", Epoch: 3}})
				testkit.Must(t, err)
				y.run(k)
				settle(DefaultLease / 2)
				testkit.Equal(t, y.program.got("/resize"), test.want, "after half a lease it had handled")
				settle(5 * time.Minute) // the lease is of one that keeps no presence, like a foreign client: those have longer
				testkit.Equal(t, y.program.got("/resize"), "1", "in the end it had handled")
			})
		})
	}
}

// F1: a change of the definition is heeded soon, and repeats nothing.
func TestADefinitionThatChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k, other := y.open(), y.open() // which does not run
		y.run(k)
		y.create(k, small())
		y.send("small", "0", "1")
		settle(15 * time.Second)
		testkit.Must(t, other.Ensure(t.Context(), small(func(d *Definition) { d.Endpoint = "http://program.test/new" })))
		settle(15 * time.Second)
		y.send("small", "0", "2")
		settle(5 * time.Second)
		if was, is := y.program.got("/resize"), y.program.got("/new"); was != "1" || is != "2" {
			t.Errorf("the old got %s, the new %s", was, is)
		}
		host := k.jobs["functions/resize"].host
		testkit.Must(t, k.Ensure(t.Context(), small(func(d *Definition) {
			d.Endpoint, d.Notify = "http://program.test/new", []string{"mailto:x@example.test"}
		})))
		settle(5 * time.Second)
		f := y.show(k, "resize")
		if k.jobs["functions/resize"].host != host || len(f.Notify) != 1 {
			t.Error("who is told has nothing to do with the host")
		}
		testkit.Equal(t, f.Counts.Done, 2, "since it started … are done")
	})
}

// F2, F4: deleting waits for calls under way, and forgets what there was of the function;
// checkpoints stay.
func TestDeletingWhileACallIsUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k := y.open()
		y.run(k)
		f := y.create(k, small())
		g := f.group("yard")
		hold := make(chan struct{})
		y.program.set(func(p *program) { p.hold = hold })
		y.send("small", "0", "1")
		settle(15 * time.Second)
		if y.program.under.Load() != 1 || len(y.entries(g)) == 0 {
			t.Fatalf("%d calls, entries %v", y.program.under.Load(), y.entries(g))
		}
		y.tally(g, "resize", "i", 7)
		y.trip(g, "other") // of a function with another name in the same group
		deleted := make(chan error, 1)
		go func() { deleted <- k.Delete(t.Context(), "resize") }()
		settle(time.Second)
		select {
		case err := <-deleted:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		if all, err := k.List(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("it is still listed: %v, %v", all, err)
		}
		close(hold)
		testkit.Must(t, <-deleted)
		if got := y.program.got("/resize"); got != "1" {
			t.Errorf("the call under way ended with %q", got)
		}
		testkit.Equal(t, strings.Join(y.entries(g), " "), "circuit/other", "left")
		checkpoints, err := y.groups.Checkpoints(t.Context(), g)
		if err != nil || len(checkpoints) != 1 || checkpoints[0].Sequence != 0 {
			t.Errorf("checkpoints are %+v, %v", checkpoints, err)
		}
		testkit.ErrorIs(t, testkit.Err(y.meta.Get(t.Context(), "functions/resize")), meta.ErrNotFound, "the definition")
		// Made anew it goes on there.
		y.create(k, small())
		y.send("small", "0", "2")
		settle(15 * time.Second)
		testkit.Equal(t, y.program.got("/resize"), "1 2", "made anew it")
	})
}

// A deletion that was decided is done, whoever dies.
func TestADeletionThatWasInterrupted(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		for name, finish := range map[string]func(k *Registry) error{
			"by the next start": func(k *Registry) error { defer y.run(k)(); settle(time.Second); return nil },
			"by who makes it anew": func(k *Registry) error {
				_, err := k.Create(t.Context(), resize())
				return errors.Join(err, k.Delete(t.Context(), "resize"))
			},
			"by who deletes it again": func(k *Registry) error { return k.Delete(t.Context(), "resize") },
			"by who ensures another": func(k *Registry) error {
				return errors.Join(k.Ensure(t.Context(), resize()), k.Delete(t.Context(), "resize"))
			},
		} {
			k := y.open()
			g := y.create(k, resize()).group("yard")
			y.trip(g, "resize")
			if _, err := k.mark(t.Context(), "resize"); err != nil { // and then it died
				t.Fatal(err)
			}
			after := y.open()
			testkit.ErrorIs(t, testkit.Err(after.Show(t.Context(), "resize")), ErrNotFound,
				"%s: it is shown", name)
			testkit.Must(t, finish(after))
			if _, err := y.meta.Get(t.Context(), "functions/resize"); !errors.Is(err, meta.ErrNotFound) || len(y.entries(g)) != 0 {
				t.Errorf("%s: %v, entries %v", name, err, y.entries(g))
			}
		}
	})
}

// F1: a node that hears of a deletion when all is over stops too, and leaves nothing.
func TestAFunctionDeletedElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		k, other := y.open(), y.open()
		y.run(k)
		g := y.create(k, resize()).group("yard")
		settle(15 * time.Second)
		testkit.MustEqual(t, y.show(k, "resize").State, StateRunning, "it does not run")
		y.loseWatches() // so that k hears of nothing
		testkit.Must(t, other.Delete(t.Context(), "resize"))
		settle(15 * time.Second)
		if entries := y.entries(g); len(entries) != 0 || len(k.jobs) != 0 {
			t.Errorf("left are %v, and %d jobs", entries, len(k.jobs))
		}
	})
}

// F4: poison goes to the hub, is counted, listed, redriven, and handled then.
func TestPoisonAndBack(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k := y.open()
		y.run(k)
		y.create(k, small(func(d *Definition) { d.Retries = new(1) }))
		ill := true
		y.program.set(func(p *program) {
			p.answer = func(_ string, bodies []string) int {
				if ill && strings.Contains(strings.Join(bodies, " "), "2") {
					return http.StatusInternalServerError
				}
				return http.StatusOK
			}
		})
		y.send("small", "0", "1", "2", "3")
		settle(30 * time.Second)
		f := y.show(k, "resize")
		if got := y.program.got("/resize"); got != "1 3" || f.Poisoned != 1 || f.Counts.Poisoned != 1 || f.Lag != 0 || f.LastError == "" {
			t.Errorf("it got %s and is %+v", got, f)
		}
		list, err := y.box.List(t.Context(), "resize-poison", box.Query{})
		if err != nil || len(list) != 1 || list[0].ID != "resize/small/0/1" || string(list[0].Event.Body) != "2" || list[0].Attempts < 2 || list[0].Group != "resizer" {
			t.Fatalf("put away is %+v, %v", list, err)
		}
		y.program.set(func(*program) { ill = false })
		if done, failed, err := y.box.Redrive(t.Context(), "resize-poison", box.RedriveConfig{}); done != 1 || failed != 0 || err != nil {
			t.Errorf("redriven %d, failed %d, %v", done, failed, err)
		}
		settle(10 * time.Second)
		if got := y.program.got("/resize"); got != "1 3 2" || y.show(k, "resize").Poisoned != 0 {
			t.Errorf("then it got %s, and %d are left", got, y.show(k, "resize").Poisoned)
		}
	})
}

// F4: poison goes to a topic, in the form of the topic's schema.
func TestPoisonInATopic(t *testing.T) {
	for kind, want := range map[string]string{
		"eventgrid":   `{"id":"resize/small/0/0","subject":"functions/resize/partitions/0/sequences/0","eventType":"Eventyard.EventPoisoned"`,
		"cloudevents": `{"specversion":"1.0","id":"resize/small/0/0","source":"/hubs/small","type":"Eventyard.EventPoisoned"`,
	} {
		inBubble(t, func(t *testing.T, y *yard) {
			y.hub("small", 1)
			topic, err := y.topics.CreateTopic(t.Context(), topics.TopicConfig{Topic: topics.Topic{Name: "bad-events", Schema: schema.Kind(kind)}})
			testkit.Must(t, err)
			k := y.open()
			y.run(k)
			y.program.set(func(p *program) { p.answer = func(string, []string) int { return http.StatusTeapot } })
			y.create(k, small(func(d *Definition) { d.Retries, d.Poison = new(0), "topic:bad-events" }))
			y.send("small", "0", `{"n":1}`)
			settle(30 * time.Second)
			log, err := y.topics.Log(&topic)
			testkit.Must(t, err)
			cursor, err := log.Cursor(t.Context(), eventlog.Earliest())
			testkit.Must(t, err)
			defer cursor.Close()
			run, err := cursor.TryNext(t.Context())
			testkit.MustThat(t, err == nil && len(run.Events) == 1, "%s: %d are there, %v", kind, len(run.Events), err)
			if stored := string(run.Events[0].Message); !strings.Contains(stored, want) || !strings.Contains(stored, `"body":{"n":1}`) || !strings.Contains(stored, `"instance":"node-one-`) {
				t.Errorf("%s: stored is %s", kind, stored)
			}
			if f := y.show(k, "resize"); f.Lag != 0 || f.Poisoned != -1 || f.PoisonTarget != "topic:bad-events" {
				t.Errorf("%s: it is %+v", kind, f)
			}
		})
	}
}

// F5, F7: an open circuit stops the calls; whoever closes it, it goes on where it was.
func TestACircuitThatOpens(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k := y.open()
		y.run(k)
		var ill atomic.Bool
		ill.Store(true)
		y.program.set(func(p *program) {
			p.answer = func(string, []string) int {
				if ill.Load() {
					return http.StatusInternalServerError
				}
				return http.StatusOK
			}
		})
		y.create(k, small(func(d *Definition) {
			d.Batch, d.Retries, d.Breaker = 1, new(0), breaker.Policy{Failures: 2, Within: time.Minute}
		}))
		y.send("small", "0", "1", "2", "3", "4", "5")
		settle(time.Minute)
		f := y.show(k, "resize")
		if f.State != StateOpen || f.Lag != 3 || f.Poisoned != 2 || f.Circuit.Failures != 3 || f.Circuit.Incident == "" {
			t.Fatalf("it is %+v", f)
		}
		calls := f.Counts.Calls
		settle(time.Hour)
		if again := y.show(k, "resize"); again.Counts.Calls != calls || again.Poisoned != 2 || again.Lag != 3 {
			t.Errorf("an hour later it is %+v", again)
		}
		ill.Store(false)
		if _, done, err := k.Resume(t.Context(), f.group("yard"), "resize", f.Circuit.Incident, "link"); !done || err != nil {
			t.Fatalf("resumed %t, %v", done, err)
		}
		settle(10 * time.Second)
		if got := y.program.got("/resize"); got != "3 4 5" || y.show(k, "resize").State != StateRunning {
			t.Errorf("resumed it got %s and is %s", got, y.show(k, "resize").State)
		}
	})
}

// F1: what cannot run now is told, and tried again until it can.
func TestAFunctionThatCannotRun(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		y.hub("bad", 1)
		k := y.open()
		y.create(k, small(func(d *Definition) { d.Poison = "bad" }))
		testkit.Must(t, y.broker.DeleteHub(t.Context(), "bad"))
		y.run(k)
		settle(5 * time.Second)
		f := y.show(k, "resize")
		if f.State != StateFailing || !strings.Contains(f.Problem, "hub create bad") {
			t.Fatalf("it is %s: %s", f.State, f.Problem)
		}
		y.hub("bad", 1)
		y.send("small", "0", "1")
		settle(time.Minute)
		if f := y.show(k, "resize"); f.State != StateRunning || f.Problem != "" || y.program.got("/resize") != "1" {
			t.Errorf("then it is %s: %s, and got %s", f.State, f.Problem, y.program.got("/resize"))
		}
	})
}

// F1: while its hub is away a function waits, longer each time; one whose definition is mended is
// tried at once.
func TestAHubThatIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k := y.open()
		y.create(k, small())
		testkit.Must(t, y.broker.DeleteHub(t.Context(), "small"))
		y.run(k)
		settle(5 * time.Minute)
		if f := y.show(k, "resize"); f.State != StateFailing || !strings.Contains(f.Problem, "small") {
			t.Errorf("it is %s: %s", f.State, f.Problem)
		}
		y.hub("small", 1)
		testkit.Must(t, k.Ensure(t.Context(), small(func(d *Definition) { d.Batch = 5 })))
		y.send("small", "0", "1")
		settle(12 * time.Second) // the lease, and no back-off
		if f := y.show(k, "resize"); f.State != StateRunning || y.program.got("/resize") != "1" {
			t.Errorf("then it is %s: %s", f.State, f.Problem)
		}
	})
}

// F1: stopping lets calls end, for as long as it may take, and no longer.
func TestStop(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k := y.open(func(c *Config) { c.Stop = 4 * time.Second })
		stop := y.run(k)
		y.create(k, small())
		y.program.set(func(p *program) { p.hold = make(chan struct{}) }) // for ever, but a call heeds its end
		y.send("small", "0", "1")
		settle(15 * time.Second)
		testkit.MustEqual(t, y.program.under.Load(), 1, "no call is under way")
		began := time.Now()
		stop()
		if took := time.Since(began); took > 4*time.Second || took < time.Second {
			t.Errorf("it took %v", took)
		}
		y.program.set(func(p *program) { p.hold = nil })
		y.run(y.open())
		settle(time.Minute)
		if got := y.program.got("/resize"); got != "1" {
			t.Errorf("what was cut off came as %q", got)
		}
	})
}

// F1: a registry runs once at a time, and may run again.
func TestRunTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k := y.open()
		y.create(k, small())
		for n := range 3 {
			stop := y.run(k)
			y.send("small", "0", fmt.Sprint(n))
			settle(15 * time.Second)
			testkit.That(t, k.Run(t.Context()) != nil, "it ran twice at once")
			stop()
		}
		testkit.Equal(t, y.program.got("/resize"), "0 1 2", "it")
	})
}

// F1: a watch that cannot go on ends the run, so that somebody notices.
func TestAWatchThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		k := y.open()
		done := make(chan error, 1)
		go func() { done <- k.Run(context.Background()) }()
		settle(time.Second)
		y.meta.Inject(func(op metatest.Op) error {
			if op.Kind == metatest.OpWatch && op.Under(keyPrefix) {
				return errors.New("no such disk")
			}
			return nil
		})
		y.loseWatches()
		testkit.That(t, <-done != nil, "it ended as if all was well")
	})
}

// F1: functions go on where changes of groups are not reported, and hear of them later.
func TestAWatchOfGroupsThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		y.meta.Inject(func(op metatest.Op) error {
			if op.Kind == metatest.OpWatch && op.Under(broker.RecordsPrefix) {
				return errors.New("no such disk")
			}
			return nil
		})
		k := y.open()
		y.run(k)
		g := y.create(k, small()).group("yard")
		y.send("small", "0", "1")
		settle(15 * time.Second)
		testkit.Equal(t, y.program.got("/resize"), "1", "unwatched it got")
		testkit.ErrorIs(t, y.groups.Subscribe(t.Context(), g, func() {}), errors.ErrUnsupported, "to subscribe")
		y.meta.Inject(nil)
		settle(2 * followPause)
		testkit.Check(t, y.groups.Subscribe(t.Context(), g, func() {}), "to subscribe again")
		y.send("small", "0", "2")
		settle(15 * time.Second)
		testkit.Equal(t, y.program.got("/resize"), "1 2", "watched it got")
	})
}

// F1: definitions change in a storm, and what is there at the end runs, once.
func TestAStormOfChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k, other := y.open(), y.open()
		y.run(k)
		y.run(other)
		for n := range 20 {
			by := []*Registry{k, other}[n%2]
			switch n % 5 {
			case 4:
				testkit.Must(t, by.Delete(t.Context(), "resize"))
			default:
				testkit.Must(t, by.Ensure(t.Context(), small(func(d *Definition) { d.Batch = n + 1 })))
			}
			time.Sleep(time.Duration(n*37%500) * time.Millisecond)
			if n%7 == 0 {
				y.loseWatches()
			}
		}
		testkit.Must(t, k.Ensure(t.Context(), small(func(d *Definition) { d.Batch = 99 })))
		settle(time.Minute)
		y.send("small", "0", "1")
		settle(10 * time.Second)
		for _, one := range []*Registry{k, other} {
			if f := y.show(one, "resize"); f.State != StateRunning || f.Batch != 99 || len(one.jobs) != 1 {
				t.Errorf("it is %s with a batch of %d in %d jobs: %s", f.State, f.Batch, len(one.jobs), f.Problem)
			}
		}
		testkit.Equal(t, y.program.got("/resize"), "1", "it")
	})
}

// F5: what was done while the circuit was open is checkpointed soon after it was closed, however
// long batches are waited for that need not fill.
func TestTheCheckpointOfACallThatEndedWhileItWasPaused(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k := y.open()
		y.run(k)
		y.create(k, small(func(d *Definition) { d.MaxWait = time.Hour }))
		release := make(chan struct{})
		y.program.set(func(p *program) { p.hold = release })
		y.send("small", "0", "1")
		settle(15 * time.Second)
		_, err := k.Pause(t.Context(), "resize", "ada", "")
		testkit.Must(t, err)
		settle(time.Second)
		close(release)
		settle(time.Minute)
		if f := y.show(k, "resize"); f.Lag != 1 || f.Counts.Done != 1 {
			t.Errorf("paused it has a lag of %d after %d events", f.Lag, f.Counts.Done)
		}
		_, err = k.ResumeFunction(t.Context(), "resize", "ada")
		testkit.Must(t, err)
		settle(idleEvery + time.Second)
		if f := y.show(k, "resize"); f.Lag != 0 || y.program.got("/resize") != "1" {
			t.Errorf("resumed it has a lag of %d, and got %s", f.Lag, y.program.got("/resize"))
		}
	})
}

// F7: entries of a circuit are the group's, and so outlive a host, not the function.
func TestACircuitHeldBeforeAHostRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k := y.open()
		y.create(k, small())
		_, err := k.Pause(t.Context(), "resize", "ada", "")
		testkit.Must(t, err)
		y.run(k)
		y.send("small", "0", "1")
		settle(time.Minute)
		if f := y.show(k, "resize"); f.State != StatePaused || f.Lag != 1 || y.program.got("/resize") != "" {
			t.Errorf("it is %s with a lag of %d", f.State, f.Lag)
		}
		_, err = k.ResumeFunction(t.Context(), "resize", "ada")
		testkit.Must(t, err)
		settle(10 * time.Second)
		testkit.Equal(t, y.program.got("/resize"), "1", "it")
	})
}

func TestDeletingAFunctionRemovesEntriesOfADeletedGroup(t *testing.T) {
	y := newYard(t)
	k := y.open()
	f := y.create(k, resize())
	y.trip(f.group("yard"), "resize")
	testkit.Must(t, y.broker.DeleteGroup(t.Context(), "orders", "resizer"))
	testkit.Must(t, k.Delete(t.Context(), "resize"))
	if all, err := k.ListCircuits(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("left are %v, %v", all, err)
	}
}
