package processor

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
)

// started is a progress that begins behind event 4 of a partition that holds 0 to last.
func started(last int64, now time.Time) *progress {
	g := newProgress()
	g.begin(1, beginning{before: position{seq: 4}, anchored: true}, hub.PartitionInfo{First: 0, Last: last}, now)
	return g
}

func TestTheWatchdogLooksOnceAndGivesUpTheSecondTime(t *testing.T) {
	now := time.Now()
	g := started(10, now)
	g.wait(now)
	for i, want := range []stall{stallNone, stallNone, stallReopen, stallNone, stallRelease} {
		testkit.MustEqual(t, g.judge(now.Add(time.Duration(i)*time.Minute), 2*time.Minute), want,
			"after %d minutes", i)
	}
}

func TestTheWatchdogForgetsAStallWhenSomethingIsRead(t *testing.T) {
	now := time.Now()
	at := func(m int) time.Time { return now.Add(time.Duration(m) * time.Minute) }
	g := started(10, now)
	g.wait(now)
	g.judge(now, 2*time.Minute)
	testkit.MustEqual(t, g.judge(at(2), 2*time.Minute), stallReopen, "not opened anew")
	g.took(true, at(3), hub.LastEnqueued{Sequence: 20}, true)
	g.hand(position{seq: 10})
	if g.judge(at(30), 2*time.Minute) != stallNone { // a call is under way
		t.Fatal("a call that takes long is no stall")
	}
	g.wait(at(30))
	testkit.MustEqual(t, g.judge(at(32), 2*time.Minute), stallReopen, "the second stall")
}

// What was taken for the newest event may turn out to be none, where the hub has heard of a transaction late.
func TestTheWatchdogHearsThatTheNewestEventIsAnOlderOne(t *testing.T) {
	now := time.Now()
	g := started(10, now)
	g.hand(position{seq: 9})
	g.pass(position{seq: 9})
	g.wait(now)
	g.learn(hub.PartitionInfo{Last: 9}, now.Add(time.Minute))
	for m := range 10 {
		testkit.Equal(t, g.judge(now.Add(time.Duration(m)*time.Minute), 2*time.Minute), stallNone, "after %d minutes", m)
	}
	_, lag, _ := g.lag()
	testkit.Equal(t, lag, 0)
	g.learn(hub.PartitionInfo{Last: 7}, now) // of a node that is behind
	testkit.Equal(t, g.newest.Sequence, 9)
}

func TestNothingIsWaitedForThatWillNotCome(t *testing.T) {
	for name, g := range map[string]func(*progress, time.Time){
		"all read":              func(g *progress, _ time.Time) { g.hand(position{seq: 10}) },
		"the rest unreadable":   func(g *progress, _ time.Time) { g.hand(position{seq: 9}); g.count(true, false); g.count(false, true) },
		"the partition emptied": func(g *progress, at time.Time) { g.learn(hub.PartitionInfo{Empty: true, Last: 12}, at) },
		"begun nobody knows where": func(g *progress, at time.Time) {
			g.begin(2, beginning{before: nowhere}, hub.PartitionInfo{Last: 10}, at)
		},
	} {
		now := time.Now()
		p := started(10, now)
		g(p, now)
		p.wait(now)
		for m := range 10 {
			testkit.Equal(t, p.judge(now.Add(time.Duration(m)*time.Minute), 2*time.Minute), stallNone,
				"%s: after %d minutes", name, m)
		}
	}
}

func TestProgressOfOneGeneration(t *testing.T) {
	now := time.Now()
	g := started(10, now)
	g.pass(position{seq: 8})
	g.pass(position{seq: 6}) // a lane that was slower
	g.call(position{seq: 9})
	for inCall, want := range map[bool]int64{true: 9, false: 8} {
		if pos, gen := g.reached(inCall); pos.seq != want || gen != 1 {
			t.Errorf("in a call %v: reached %d in generation %d", inCall, pos.seq, gen)
		}
	}
	if done, events, _ := g.lag(); done != 8 || events != 2 {
		t.Errorf("done %d, %d behind", done, events)
	}
	if g.stale(now.Add(29*time.Second), 30*time.Second) || !g.stale(now.Add(30*time.Second), 30*time.Second) {
		t.Error("stale at another time")
	}
	g.begin(2, beginning{before: nowhere, anchored: true}, hub.PartitionInfo{First: 3, Last: 12}, now)
	if pos, gen := g.reached(false); pos != nowhere || gen != 2 || g.lastRead() != nowhere {
		t.Errorf("the next generation begins at %v of %d", pos, gen)
	}
	if _, events, _ := g.lag(); events != 10 {
		t.Errorf("%d events behind, of those there are", events)
	}
}
