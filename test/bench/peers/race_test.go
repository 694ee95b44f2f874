package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/bench/measure"
)

func TestWorkBecomesRatesAndTimePerEvent(t *testing.T) {
	s := scores{}
	s.addWork("yard", work{events: 1000, took: 2 * time.Second, client: 3 * time.Millisecond, server: time.Millisecond})
	testkit.Equal(t, s["yard"][rate][0], 500)
	testkit.Equal(t, s["yard"][clientCPU][0], 3)
	testkit.Equal(t, s["yard"][serverCPU][0], 1)
}

func TestPercentilesAreOfSortedTimes(t *testing.T) {
	var all []time.Duration
	for i := 100; i >= 0; i-- {
		all = append(all, time.Duration(i)*time.Millisecond)
	}
	s := scores{}
	s.addLatencies("yard", all)
	testkit.Equal(t, s["yard"][p50][0], 50)
	testkit.Equal(t, s["yard"][p99][0], 99)
}

func TestARatioIsTakenInsideEachRound(t *testing.T) {
	s := scores{}
	for _, v := range []float64{100, 10, 120} { // the machine is slow in the second round
		s.add("yard", rate, v)
		s.add("kafka", rate, v/2)
	}
	got := s.over("yard", "kafka", rate)
	testkit.That(t, slices.Equal(got, measure.Series{2, 2, 2}), "got %v", got)
	testkit.Equal(t, len(s.over("yard", "nobody", rate)), 0)
}

func TestATableLeavesOutWhoWasNotInTheRace(t *testing.T) {
	s := scores{}
	s.add("yard", rate, 12345)
	table := s.table("Produce", []string{"yard", "kafka"}, []figure{rate})
	testkit.Equal(t, len(table.Rows), 1)
	testkit.Equal(t, table.Rows[0][1], "12.3 k")
}

// Those of like durability are held to the bar, each by what the server that throws away has over it. // K1
func TestOnlyLikeDurabilityIsHeldToTheBar(t *testing.T) {
	b, s := &bench{}, scores{}
	for _, one := range []struct {
		who  *process
		rate float64
	}{{b.yard(page), 110}, {b.yard(fsync), 90}, {b.kafka(page), 100}, {b.kafka(fsync), 50}, {b.thrownAway(), 120}} {
		s.add(one.who.is.name, rate, one.rate)
	}
	b.compare("produce", s, rate, false, produceBar)
	text := b.report.markdown()
	for _, want := range []string{
		"| produce, page cache: yard `os` / Kafka's default | 1.10 × | – | more | won | ≥ 0.90 × of the ceiling, which is 1.20 × | 0.92 × of it: reached |",
		"| produce, fsync: yard `always` / Kafka `flush.messages=1` | 1.80 × | – | more | won | ≥ 1.50 × | reached |",
		"| produce, defaults, not alike: yard `always` / Kafka's default | 0.90 × | – | more | lost | – |  |",
	} {
		testkit.That(t, strings.Contains(text, want), "no %q in\n%s", want, text)
	}
}

// guest is a peer that does nothing.
type guest struct {
	peer
	is about
}

func (g *guest) about() about { return g.is }

func TestAGuestThatFailsIsOutAndOneOfOursEndsTheRun(t *testing.T) {
	yard, kafka := &guest{is: about{name: "yard", ours: true}}, &guest{is: about{name: "kafka"}}
	b := &bench{options: options{quick: true}, stderr: io.Discard}
	broken := errors.New("it is broken")
	fail := func(who peer) func(context.Context, peer) error {
		return func(_ context.Context, p peer) error {
			if p == who {
				return broken
			}
			return nil
		}
	}
	both := []peer{yard, kafka}
	testkit.Must(t, b.lap(t.Context(), both, fail(kafka)))
	testkit.Equal(t, len(b.report.absent), 1)
	testkit.Must(t, b.lap(t.Context(), both, func(_ context.Context, p peer) error {
		testkit.Equal(t, p.about().name, "yard", "whose turn it is behind that")
		return nil
	}))
	err := b.lap(t.Context(), both, fail(yard))
	testkit.That(t, errors.Is(err, broken), "got %v", err)
}

func (g *guest) start(context.Context, string) error { return errors.New("it does not start") }

func (g *guest) stop() error { return errors.New("it does not stop") }

func TestAGuestThatDoesNotStartOrStopIsLeftOutAndOneOfOursEndsTheRun(t *testing.T) {
	b := &bench{stderr: io.Discard, folder: t.TempDir()}
	standing, stop, err := b.stand(t.Context(), &guest{is: about{name: "kafka"}})
	testkit.Must(t, err)
	testkit.Equal(t, len(standing), 0)
	testkit.Equal(t, len(b.report.absent), 1)
	testkit.Must(t, stop())
	testkit.Must(t, b.end(&guest{}))
	yard := &guest{is: about{name: "yard", ours: true}}
	if _, _, err := b.stand(t.Context(), yard); err == nil {
		t.Error("a yard that does not start is left out")
	}
	if err := b.end(yard); err == nil {
		t.Error("a yard that does not stop is passed over")
	}
}

// fullDriver cannot make a topic at anybody but a yard.
type fullDriver struct{ driver }

func (fullDriver) create(_ context.Context, p peer, _ string, _ int) error {
	if p.about().ours {
		return nil
	}
	return errors.New("there is no room")
}

func (fullDriver) remove(context.Context, peer, string) error { return nil }

func TestAGuestThatMakesNoTopicIsOut(t *testing.T) {
	b := &bench{options: options{quick: true}, stderr: io.Discard}
	both := []peer{&guest{is: about{name: "yard", ours: true}}, &guest{is: about{name: "redis"}}}
	testkit.Must(t, b.withTopics(t.Context(), fullDriver{}, both, 1, func(string) error { return nil }))
	testkit.That(t, slices.Equal(names(b.still(both)), []string{"yard"}), "still in the race: %v", names(b.still(both)))
}

func TestALapGivesEachContenderOneTurn(t *testing.T) {
	b := &bench{options: options{quick: true}, stderr: io.Discard}
	in := []peer{&guest{is: about{name: "a"}}, &guest{is: about{name: "b"}}, &guest{is: about{name: "c"}}}
	var turns []string
	testkit.Must(t, b.lap(t.Context(), in, func(_ context.Context, p peer) error {
		turns = append(turns, p.about().name)
		return nil
	}))
	slices.Sort(turns)
	testkit.That(t, slices.Equal(turns, []string{"a", "b", "c"}), "turns of %v", turns)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.lap(ended, in, func(context.Context, peer) error { return nil }); err == nil {
		t.Error("a run that was ended goes on")
	}
}

func TestALimitEndsByEventsAndByTime(t *testing.T) {
	count := func(l limit, step int64) (n int64) {
		for c := l.begin(); c.next(step); n += step {
		}
		return n
	}
	testkit.Equal(t, count(limit{events: 1000}, 1), 1000)
	testkit.Equal(t, count(limit{events: 1000}, 100), 1000)
	testkit.Equal(t, count(limit{events: 1000, period: time.Hour}, 1), 1000)
	// No clock is that slow: the time is over before the events are.
	testkit.That(t, count(limit{events: 1 << 40, period: time.Nanosecond}, 1) < 1<<40, "the time was not looked at")
}

func TestTheSumsOfJavasToolsAreRead(t *testing.T) {
	for _, tt := range []struct {
		tool    string
		read    func(string) (work, error)
		printed string
		want    work
		bad     []string
	}{
		{"ProducerPerformance", producePerfResult,
			"97001 records sent, 19400.2 records/sec (18.95 MB/sec), 251.0 ms avg latency, 400.0 ms max latency.\n" +
				"200000 records sent, 100000.000000 records/sec (97.66 MB/sec), 11.20 ms avg latency, 300.00 ms max latency, 5 ms 50th, 40 ms 95th, 80 ms 99th, 120 ms 99.9th.\n",
			work{events: 200_000, took: 2 * time.Second},
			[]string{"", "org.apache.kafka.common.errors.TimeoutException", "7 records sent, 0 records/sec (0 MB/sec), 1 ms 99.9th."}},
		{"ConsumerPerformance", consumePerfResult,
			"start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec\n" +
				"2026-01-31 12:00:00:000, 2026-01-31 12:00:04:000, 97.6563, 24.4141, 100000, 25000.0000, 3500, 500, 195.3125, 200000.0000\n",
			work{events: 100_000, took: 500 * time.Millisecond},
			[]string{"", "start.time, end.time\n1, 2\n", "data.consumed.in.nMsg, fetch.nMsg.sec\n100, 0.0\n", "data.consumed.in.nMsg, fetch.nMsg.sec\n"}},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			w, err := tt.read(tt.printed)
			testkit.Must(t, err)
			testkit.Equal(t, w, tt.want)
			for _, bad := range tt.bad {
				if _, err := tt.read(bad); err == nil {
					t.Errorf("%q is taken for a result", bad)
				}
			}
		})
	}
}
