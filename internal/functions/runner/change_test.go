package runner

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"

	"github.com/eventyard/eventyard/internal/testkit"
)

// soon is how long a change of a definition may take.
const soon = 2 * time.Second

// F3: a program that is mended elsewhere is called there at once, however long the next retry would
// have waited.
func TestAnEndpointChangedWhileARetryWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k := y.open()
		y.run(k)
		y.program.set(func(p *program) {
			p.answer = func(path string, _ []string) int {
				if path == "/resize" {
					return http.StatusServiceUnavailable
				}
				return http.StatusOK
			}
		})
		y.create(k, small(func(d *Definition) { d.Retries, d.RetryDelay = new(5), time.Hour }))
		y.send("small", "0", "1", "2")
		settle(15 * time.Second)
		testkit.Must(t, k.Ensure(t.Context(), small(func(d *Definition) {
			d.Retries, d.RetryDelay, d.Endpoint = new(5), time.Hour, "http://program.test/new"
		})))
		settle(soon)
		if got := y.program.got("/new"); got != "1 2" {
			f := y.show(k, "resize")
			t.Errorf("the new one got %q, it is %s: %s", got, f.State, f.Problem)
		}
	})
}

func TestAnEndpointChangedWhileACallIsUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k := y.open()
		y.run(k)
		y.create(k, small())
		y.program.set(func(p *program) { p.hold = make(chan struct{}) }) // for ever
		y.send("small", "0", "1", "2")
		settle(15 * time.Second)
		y.program.set(func(p *program) { p.hold = nil })
		testkit.Must(t, k.Ensure(t.Context(), small(func(d *Definition) { d.Endpoint = "http://program.test/new" })))
		settle(DefaultStop + soon)
		if got := y.program.got("/new"); got != "1 2" {
			f := y.show(k, "resize")
			t.Errorf("the new one got %q, it is %s: %s", got, f.State, f.Problem)
		}
	})
}

// F1: a definition that changes while its host gives up is not waited for.
func TestADefinitionThatChangesWhileItsHostFails(t *testing.T) {
	y := newYard(t)
	k := y.open()
	y.create(k, resize())
	j := &job{key: "functions/resize", poke: make(chan struct{}, 1), done: make(chan struct{})}
	k.jobs[j.key] = j
	old := k.known(j.key)
	testkit.Must(t, k.Ensure(t.Context(), resize(func(d *Definition) { d.Batch = 7 })))
	<-j.poke // it was heard while the host ran
	began := time.Now()
	k.rest(t.Context(), j, old, 10*time.Second)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it rested for %v", took)
	}
}

// F1: a hub that was deleted and made anew is read from its beginning.
func TestAHubMadeAnew(t *testing.T) {
	for _, partitions := range []int{1, 3} {
		inBubble(t, func(t *testing.T, y *yard) {
			y.hub("small", 2)
			k := y.open()
			y.run(k)
			y.create(k, small())
			y.send("small", "0", "1")
			settle(15 * time.Second)
			testkit.Must(t, y.broker.DeleteHub(t.Context(), "small"))
			settle(2 * time.Minute)
			f := y.show(k, "resize")
			if f.State != StateFailing || !strings.Contains(f.Problem, "small") {
				t.Errorf("without its hub it is %s: %s", f.State, f.Problem)
			}
			y.hub("small", partitions)
			_, err := y.broker.CreateGroup(t.Context(), "small", "resizer")
			testkit.Must(t, err)
			y.send("small", "0", "2", "3")
			settle(time.Minute)
			f = y.show(k, "resize")
			if got := y.program.got("/resize"); !strings.HasPrefix(got, "1 2 3") || f.State != StateRunning || f.Problem != "" || f.Partitions != partitions {
				t.Errorf("%d partitions: it got %s, and is %s: %s", partitions, got, f.State, f.Problem)
			}
		})
	}
}

// A group that is deleted takes its checkpoints along: the function has it made again, and begins
// where it would have at first.
func TestAGroupThatIsDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k := y.open()
		y.run(k)
		y.create(k, small())
		y.send("small", "0", "1")
		settle(15 * time.Second)
		testkit.Must(t, y.broker.DeleteGroup(t.Context(), "small", "resizer"))
		settle(time.Minute)
		y.send("small", "0", "2")
		settle(15 * time.Second)
		f := y.show(k, "resize")
		if got := y.program.got("/resize"); got != "1 1 2" || f.State != StateRunning || f.Problem != "" || f.Lag != 0 {
			t.Errorf("it got %s, and is %s: %s", got, f.State, f.Problem)
		}
	})
}

// At once, so that nobody notices that there was none for a while.
func TestAGroupMadeAnewAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k := y.open()
		y.run(k)
		y.create(k, small())
		y.send("small", "0", "1")
		settle(15 * time.Second)
		testkit.Must(t, y.broker.DeleteGroup(t.Context(), "small", "resizer"))
		_, err := y.broker.CreateGroup(t.Context(), "small", "resizer")
		testkit.Must(t, err)
		y.send("small", "0", "2")
		settle(time.Minute)
		f := y.show(k, "resize")
		if got := y.program.got("/resize"); !strings.HasSuffix(got, "1 2") || f.State != StateRunning || f.Problem != "" || f.Lag != 0 {
			t.Errorf("it got %s, and is %s with a lag of %d: %s", got, f.State, f.Lag, f.Problem)
		}
	})
}

// F4: a poison hub that is deleted keeps the checkpoint waiting, and one that is made anew, of
// whatever size, takes what waited.
func TestAPoisonHubMadeAnew(t *testing.T) {
	for _, sizes := range [][2]int{{1, 1}, {3, 1}, {1, 3}} {
		t.Run(fmt.Sprint(sizes), func(t *testing.T) {
			inBubble(t, func(t *testing.T, y *yard) {
				y.hub("wide", 3)
				y.hub("bad", sizes[0])
				k := y.open()
				y.run(k)
				y.program.set(func(p *program) { p.answer = func(string, []string) int { return http.StatusTeapot } })
				y.create(k, resize(func(d *Definition) { d.Hub, d.Retries, d.Poison = "wide", new(0), "bad" }))
				y.send("wide", "2", "1")
				settle(15 * time.Second)
				testkit.Must(t, y.broker.DeleteHub(t.Context(), "bad"))
				y.send("wide", "2", "2", "3")
				settle(2 * time.Minute)
				f := y.show(k, "resize")
				if f.Lag != 2 || !strings.Contains(f.LastError+f.Problem, "bad") {
					t.Errorf("without its poison hub it has a lag of %d and is %s: %s, %s", f.Lag, f.State, f.Problem, f.LastError)
				}
				_, err := y.broker.CreateHub(t.Context(), broker.HubConfig{Name: "bad", Partitions: sizes[1]})
				testkit.Must(t, err)
				settle(3 * time.Minute)
				f = y.show(k, "resize")
				if f.Lag != 0 || f.Poisoned != 2 || f.State != StateRunning {
					t.Errorf("then it has a lag of %d and %d poison events and is %s: %s %s", f.Lag, f.Poisoned, f.State, f.Problem, f.LastError)
				}
			})
		})
	}
}

// F1: whoever makes a hub anew does not have to know of its functions: they have their groups made.
func TestAHubMadeAnewWithoutItsGroup(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 2)
		k := y.open()
		y.run(k)
		y.create(k, small())
		y.send("small", "0", "1")
		settle(15 * time.Second)
		testkit.Must(t, y.broker.DeleteHub(t.Context(), "small"))
		settle(time.Minute)
		y.hub("small", 2)
		y.send("small", "0", "2", "3")
		settle(time.Minute)
		f := y.show(k, "resize")
		if got := y.program.got("/resize"); got != "1 2 3" || f.State != StateRunning || f.Problem != "" {
			t.Errorf("it got %s, and is %s: %s", got, f.State, f.Problem)
		}
	})
}

// F4: the yard makes the default target of poison again.
func TestTheYardsOwnPoisonHubIsMadeAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k := y.open()
		y.run(k)
		y.program.set(func(p *program) { p.answer = func(string, []string) int { return http.StatusTeapot } })
		y.create(k, small(func(d *Definition) { d.Retries = new(0) }))
		y.send("small", "0", "1")
		settle(15 * time.Second)
		testkit.Must(t, y.broker.DeleteHub(t.Context(), "resize-poison"))
		y.send("small", "0", "2")
		settle(time.Minute)
		if f := y.show(k, "resize"); f.Lag != 0 || f.Poisoned != 1 || f.State != StateRunning {
			t.Errorf("it has a lag of %d and %d poison events and is %s: %s %s", f.Lag, f.Poisoned, f.State, f.Problem, f.LastError)
		}
	})
}

// F4, F8: a poison topic that is deleted keeps the partition waiting that needs it, and no other.
func TestAPoisonTopicMadeAnew(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		_, err := y.topics.CreateTopic(t.Context(), topicConfig("bad-events"))
		testkit.Must(t, err)
		k := y.open()
		y.run(k)
		y.program.set(func(p *program) {
			p.answer = func(_ string, bodies []string) int {
				if bodies[0] == "bad" {
					return http.StatusTeapot
				}
				return http.StatusOK
			}
		})
		y.create(k, resize(func(d *Definition) { d.Retries, d.Poison = new(0), "topic:bad-events" }))
		settle(15 * time.Second)
		testkit.Must(t, y.topics.DeleteTopic(t.Context(), "bad-events"))
		y.send("orders", "0", `"bad"`)
		settle(time.Minute)
		y.send("orders", "1", "2", "3")
		settle(15 * time.Second)
		f := y.show(k, "resize")
		if got := y.program.got("/resize"); got != "2 3" || f.Lag != 1 || f.State != StateFailing || !strings.Contains(f.Problem, "bad-events") {
			t.Errorf("without its topic it got %s, has a lag of %d and is %s: %s", got, f.Lag, f.State, f.Problem)
		}
		_, err = y.topics.CreateTopic(t.Context(), topicConfig("bad-events"))
		testkit.Must(t, err)
		settle(time.Minute)
		if f := y.show(k, "resize"); f.Lag != 0 || f.Counts.Poisoned != 1 {
			t.Errorf("then it has a lag of %d after %d poison events", f.Lag, f.Counts.Poisoned)
		}
	})
}
