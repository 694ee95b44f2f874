package processor

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestWhenABatchIsEnough(t *testing.T) {
	g := gathering{min: 3, max: 10, wait: time.Second}
	quiet := time.Now()
	first := quiet.Add(400 * time.Millisecond)
	for name, c := range map[string]struct {
		have  int
		now   time.Duration
		call  bool
		until time.Duration
	}{
		"nothing yet":                  {0, 500 * time.Millisecond, false, time.Second},
		"nothing for long":             {0, time.Second, true, time.Second},
		"some, and not for long":       {2, time.Second, false, 1400 * time.Millisecond},
		"some, and for long":           {2, 1400 * time.Millisecond, true, 1400 * time.Millisecond},
		"as many as wanted":            {3, 400 * time.Millisecond, true, 0},
		"more than wanted":             {10, 400 * time.Millisecond, true, 0},
		"after a long call, at once":   {3, time.Hour, true, 0},
		"nothing, a long call is over": {0, time.Hour, true, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			call, until := g.enough(c.have, quiet, first, quiet.Add(c.now))
			if call != c.call || c.until != 0 && !until.Equal(quiet.Add(c.until)) {
				t.Errorf("%v until %v", call, until.Sub(quiet))
			}
		})
	}
}

func TestWhenMarkedCheckpointsAreDue(t *testing.T) {
	first := time.Now()
	for name, c := range map[string]struct {
		policy Checkpoints
		events int64
		after  time.Duration
		due    bool
		timed  bool
	}{
		"before its time":               {Checkpoints{Every: time.Second}, 1e6, 999 * time.Millisecond, false, true},
		"at its time":                   {Checkpoints{Every: time.Second}, 1, time.Second, true, true},
		"too few events":                {Checkpoints{Events: 10}, 9, time.Hour, false, false},
		"enough events":                 {Checkpoints{Events: 10}, 10, 0, true, false},
		"enough events before the time": {Checkpoints{Every: time.Hour, Events: 10}, 10, 0, true, false},
		"time before enough events":     {Checkpoints{Every: time.Second, Events: 10}, 1, time.Second, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			due, at := c.policy.due(c.events, first, first.Add(c.after))
			if due != c.due || c.timed == at.IsZero() {
				t.Errorf("%v at %v", due, at)
			}
		})
	}
}

func TestWhereAPartitionGoesOn(t *testing.T) {
	full := hub.PartitionInfo{Partition: "0", First: 10, Last: 99, LastOffset: "o99"}
	empty := hub.PartitionInfo{Partition: "0", First: 100, Last: 99, Empty: true}
	fresh := hub.PartitionInfo{Partition: "0", Last: -1, Empty: true}
	for name, c := range map[string]struct {
		at       Checkpoint
		info     hub.PartitionInfo
		policy   OutOfRange
		from     hub.Position
		trouble  error
		says     string
		fails    bool
		anchored bool
	}{
		"no checkpoint":                       {at: Checkpoint{Sequence: -1}, info: full, from: hub.At(55)},
		"a sequence number":                   {at: Checkpoint{Sequence: 50, Offset: "x"}, info: full, from: hub.After(50), anchored: true},
		"the newest":                          {at: Checkpoint{Sequence: 99}, info: full, from: hub.After(99), anchored: true},
		"an offset alone":                     {at: Checkpoint{Sequence: -1, Offset: "o50"}, info: full, from: hub.AfterOffset("o50")},
		"just before the oldest":              {at: Checkpoint{Sequence: 9}, info: full, from: hub.After(9), anchored: true},
		"older than the oldest":               {at: Checkpoint{Sequence: 4}, info: full, from: hub.Earliest, trouble: ErrGap, says: "5 of them, from sequence number 5", anchored: true},
		"all that was not read is gone":       {at: Checkpoint{Sequence: 97}, info: empty, from: hub.Earliest, trouble: ErrGap, says: "2 of them", anchored: true},
		"all is gone, and was read":           {at: Checkpoint{Sequence: 99}, info: empty, from: hub.After(99), anchored: true},
		"beyond the end":                      {at: Checkpoint{Sequence: 100}, info: full, from: hub.Earliest, trouble: ErrBadCheckpoint, anchored: true},
		"beyond the end of nothing":           {at: Checkpoint{Sequence: 0}, info: fresh, from: hub.Earliest, trouble: ErrBadCheckpoint, anchored: true},
		"beyond the end, latest wanted":       {at: Checkpoint{Sequence: 100}, info: full, policy: FromLatest, from: hub.After(99), trouble: ErrBadCheckpoint, anchored: true},
		"beyond the end, an operator wanted":  {at: Checkpoint{Sequence: 100}, info: full, policy: Fail, fails: true},
		"of this hub":                         {at: Checkpoint{Sequence: 50, HubID: "this"}, info: full, from: hub.After(50), anchored: true},
		"of another hub, though it would fit": {at: Checkpoint{Sequence: 50, HubID: "that"}, info: full, from: hub.Earliest, trouble: ErrBadCheckpoint, anchored: true},
		"of another hub, and an offset alone": {at: Checkpoint{Sequence: -1, Offset: "o1", HubID: "that"}, info: full, from: hub.Earliest, trouble: ErrBadCheckpoint, anchored: true},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{OutOfRange: c.policy, Start: func(string) hub.Position { return hub.At(55) }}
			b, err := begin(c.at, "this", c.info, cfg)
			if c.fails {
				testkit.ErrorIs(t, err, ErrBadCheckpoint, "gave %+v", b)
				return
			}
			if err != nil || b.from != c.from || !errors.Is(b.trouble, c.trouble) || b.anchored != c.anchored {
				t.Errorf("gave %+v, %v", b, err)
			}
			if c.says != "" && !strings.Contains(b.trouble.Error(), c.says) {
				t.Errorf("says %q", b.trouble)
			}
		})
	}
}

func TestTheLagIsInEventsAndInTime(t *testing.T) {
	at := time.Now()
	newest := hub.LastEnqueued{Sequence: 10, Enqueued: at}
	for name, c := range map[string]struct {
		done, before position
		events       int64
		time         time.Duration
	}{
		"nothing done":           {nowhere, nowhere, 11, 0},
		"nothing done since 4":   {nowhere, position{seq: 4}, 6, 0},
		"some done":              {position{seq: 7, at: at.Add(-time.Minute)}, position{seq: 4}, 3, time.Minute},
		"all done":               {position{seq: 10, at: at}, nowhere, 0, 0},
		"more than was told of":  {position{seq: 12, at: at.Add(time.Second)}, nowhere, 0, 0},
		"a clock that went back": {position{seq: 9, at: at.Add(time.Second)}, nowhere, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if events, d := lag(c.done, c.before, newest); events != c.events || d != c.time {
				t.Errorf("%d events, %v", events, d)
			}
		})
	}
}

func TestTheWatchdogsRule(t *testing.T) {
	now := time.Now()
	ago := func(m int) time.Time { return now.Add(-time.Duration(m) * time.Minute) }
	var never time.Time
	for name, c := range map[string]struct {
		behind, waiting, reopened time.Time
		want                      stall
	}{
		"nothing to read":                            {never, ago(60), never, stallNone},
		"a call is under way":                        {ago(60), never, never, stallNone},
		"something to read, not for long":            {ago(1), ago(60), never, stallNone},
		"waited for, not for long":                   {ago(60), ago(1), never, stallNone},
		"something to read, and none comes":          {ago(2), ago(60), never, stallReopen},
		"opened anew, not for long":                  {ago(3), ago(60), ago(1), stallNone},
		"opened anew, and still nothing":             {ago(4), ago(60), ago(2), stallRelease},
		"opened anew once, but it has read since":    {ago(5), ago(3), ago(4), stallReopen},
		"opened anew in an earlier stall, same wait": {ago(2), ago(60), ago(30), stallReopen},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Equal(t, judgeStall(c.behind, c.waiting, c.reopened, now, 2*time.Minute), c.want)
		})
	}
}

func TestBackoffDoublesUpToItsMostAndNeverGrowsBeyond(t *testing.T) {
	b := Backoff{First: 100 * time.Millisecond, Max: time.Second}
	for failures, want := range map[int]time.Duration{1: 100, 2: 200, 3: 400, 4: 800, 5: 1000, 500: 1000} {
		want *= time.Millisecond
		if got := b.delay(failures); got > want || got < want*3/4-1 {
			t.Errorf("after %d failures %v, want about %v", failures, got, want)
		}
	}
}

// lane tests drive the marks of two lanes, even and odd, through a script.
func TestTheWatermarkOfLanes(t *testing.T) {
	type lanePair = []*watermark
	at := func(seq int64) position { return position{seq: seq, offset: fmt.Sprint("o", seq)} }
	deal := func(l lanePair, from, to int64) {
		for seq := from; seq < to; seq++ {
			before := at(seq - 1)
			if seq == 0 {
				before = nowhere
			}
			l[seq%2].add(event.Event{Sequence: seq, Offset: fmt.Sprint("o", seq)}, before)
		}
	}
	for name, c := range map[string]struct {
		do               func(l lanePair)
		finished, marked int64
	}{
		"nothing taken":  {func(l lanePair) {}, -1, -1},
		"one lane taken": {func(l lanePair) { l[0].take(3, nil, nil) }, -1, -1},
		"the lower is finished, the other not taken": {func(l lanePair) { l[0].take(3, nil, nil); l[0].finish() }, 0, -1},
		"both finished, nothing marked": {func(l lanePair) {
			l[0].take(9, nil, nil)
			l[1].take(9, nil, nil)
			l[0].finish()
			l[1].finish()
		}, 9, -1},
		"the higher is marked": {func(l lanePair) {
			l[0].take(9, nil, nil)
			l[1].take(9, nil, nil)
			l[1].finish()
			l[1].mark(9, nil)
		}, -1, -1},
		"the lower is marked in the middle": {func(l lanePair) {
			_, before := l[0].take(9, nil, nil)
			l[1].take(9, nil, nil)
			l[1].finish()
			l[1].mark(9, nil)
			l[0].mark(4, &before[3])
		}, -1, 5},
		"the lower's second batch is marked, which marks the first": {func(l lanePair) {
			l[0].take(2, nil, nil)
			l[0].finish()
			l[0].take(2, nil, nil)
			l[0].finish()
			l[1].take(9, nil, nil)
			l[1].finish()
			l[1].mark(9, nil)
			l[0].mark(6, nil)
		}, 7, 7},
		"all marked": {func(l lanePair) {
			for _, w := range l {
				w.take(9, nil, nil)
				w.finish()
				w.mark(9, nil)
			}
		}, 9, 9},
	} {
		t.Run(name, func(t *testing.T) {
			l := lanePair{{}, {}}
			deal(l, 0, 10)
			c.do(l)
			finished := lowest(l, at(9), (*watermark).unfinished)
			marked := lowest(l, at(9), (*watermark).undone)
			if finished.seq != c.finished || marked.seq != c.marked {
				t.Errorf("finished to %d, marked to %d; want %d and %d", finished.seq, marked.seq, c.finished, c.marked)
			}
			if marked.seq >= 0 && marked.offset != fmt.Sprint("o", marked.seq) {
				t.Errorf("marked %+v", marked)
			}
		})
	}
}

func TestBatchesThatNobodyMarksAreNotRememberedForEver(t *testing.T) {
	var w watermark
	for seq := range int64(1000) {
		w.add(event.Event{Sequence: seq}, position{seq: seq - 1})
		w.take(1, nil, nil)
		w.finish()
	}
	if len(w.unmarked) > maxSpans {
		t.Errorf("%d are remembered", len(w.unmarked))
	}
	if low, _ := w.undone(); low.seq != -1 {
		t.Errorf("all undone, but the mark is at %d", low.seq)
	}
	w.mark(500, nil) // long merged with a later one
	if low, _ := w.undone(); low.seq != -1 {
		t.Errorf("a mark within what was merged moved it to %d", low.seq)
	}
	w.mark(998, nil)
	if low, _ := w.undone(); low.seq != 998 {
		t.Errorf("the mark is at %d", low.seq)
	}
}

func TestPartitionsSortByNumber(t *testing.T) {
	list := []string{"10", "9", "x", "1"}
	sortByPartition(list, func(s string) string { return s })
	testkit.Slices(t, list, []string{"1", "9", "10", "x"}, "sorted")
}

// P2: what all instances together read when something changes all the time is bounded, and small
// groups do not notice.
func TestHowLongChangesAreLeftAloneDependsOnTheGroupsSize(t *testing.T) {
	for _, c := range []struct {
		instances, partitions int64
		took, want            time.Duration
	}{
		{5, 16, time.Millisecond, 200 * time.Millisecond},
		{20, 64, time.Millisecond, 200 * time.Millisecond},
		{20, 64, 100 * time.Millisecond, 400 * time.Millisecond}, // a slow store
		{100, 1000, 20 * time.Millisecond, 1100 * time.Millisecond},
		{1000, 1024, 20 * time.Millisecond, 10 * time.Second}, // Renew
	} {
		t.Run(fmt.Sprintf("%d instances, %d partitions, took %v", c.instances, c.partitions, c.took), func(t *testing.T) {
			k := coordinator{instance: &instance{cfg: Config{}.withDefaults()}, lastTook: c.took, load: c.instances * (c.instances + c.partitions)}
			testkit.Equal(t, k.gap(), c.want)
		})
	}
}
