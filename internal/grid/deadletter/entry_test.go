package deadletter

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/hops"
	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/setaside"
	"github.com/eventyard/eventyard/internal/setaside/ranges"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
)

// What is marked is stored as it always was, and has room however far apart and at however many
// times letters were redriven. // G8
func TestMarksAsTheyAreStored(t *testing.T) {
	var leaf setaside.Leaf
	leaf.Redriven = leaf.Redriven.With(ranges.SetOf(3, 4, 9), 1769860800000)
	leaf.Purged = leaf.Purged.With(ranges.SetOf(7), 0)
	const stored = `{"redriven":[{"from":3,"to":5,"at":1769860800000},{"from":9,"to":10,"at":1769860800000}],"purged":[{"from":7,"to":8}]}`
	value := testkit.Value(leafCodec.Encode(leaf))(t)
	testkit.Equal(t, string(value), stored)
	read, err := leafCodec.Decode([]byte(stored))
	testkit.Must(t, err)
	testkit.Deep(t, read, leaf)
	for n := range int64(setaside.LeafSize) {
		leaf.Redriven = append(leaf.Redriven, ranges.Span{Range: ranges.Range{First: 1<<53 + n, Last: 1<<53 + n}, At: 1769860800000 + n})
	}
	if value, err = leafCodec.Encode(leaf); err != nil || len(value) > meta.MaxValueBytes {
		t.Errorf("the largest has %d bytes, %v", len(value), err)
	}
}

// The names of where letters went are long, and many: the entry has room for them.
func TestLongNamesOfTargetsHaveRoom(t *testing.T) {
	y, sub := yardWith(t, "yard")
	y.die(sub, 1)
	b := y.whole.box(sub.ID)
	for i := range int64(300) {
		b.wrote(write{First: i, Next: i + 1, Where: strings.Repeat("x", 4000)})
		testkit.Must(t, b.note(t.Context()))
	}
	entry := testkit.Value(y.meta.Get(t.Context(), entryPrefix+sub.ID))(t)
	if len(entry.Value) > meta.MaxValueBytes/2 {
		t.Errorf("the entry has %d bytes", len(entry.Value))
	}
}

// What was written and could not be noted is not written again by the same process: it is noted
// later.
func TestWhatCouldNotBeNotedIsNotWrittenAgain(t *testing.T) {
	withTarget(t, "hub:failures", func(t *testing.T, y *yard, sub *topics.Subscription) {
		y.die(sub, 1)
		y.meta.Inject(full)
		stop := y.run()
		pass(time.Hour)
		testkit.Equal(t, len(y.hubs.sent), 1, "it was sent")
		testkit.Equal(t, len(y.topics.published), 1, "it was announced")
		y.meta.Inject(nil)
		pass(time.Hour)
		page := y.list(sub.ID, Query{})
		counts := y.counts(sub.ID)
		if page.Letters[0].Written != "hub failures" || counts.Problem != "" || counts.Unwritten != 0 {
			t.Errorf("written to %q, counts %+v", page.Letters[0].Written, counts)
		}
		stop()
		y.reopen()
		defer y.run()()
		pass(time.Hour)
		testkit.Equal(t, len(y.hubs.sent), 1, "after a restart it was sent")
	})
}

// What is written when the yard stops is noted before it has stopped.
func TestAWriteUnderWayIsNotedWhenTheYardStops(t *testing.T) {
	withTarget(t, "hub:failures", func(t *testing.T, y *yard, sub *topics.Subscription) {
		y.hubs.takes = time.Second
		stop := y.run()
		y.die(sub, 1)
		time.Sleep(time.Millisecond)
		stop()
		testkit.Must(t, y.engine.Close())
		y.hubs.takes = 0
		y.open()
		defer y.run()()
		pass(time.Hour)
		testkit.Equal(t, len(y.hubs.sent), 1, "it was sent")
	})
}

// Run may be called again after it ended.
func TestRunMayBeCalledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, sub := yardWith(t, "hub:failures")
		stop := y.run()
		y.die(sub, 1)
		time.Sleep(time.Minute)
		stop()
		defer y.run()()
		y.die(sub, 2)
		pass(time.Hour)
		testkit.Equal(t, len(y.hubs.sent), 2, "letters of 2 were sent")
	})
}

// A deleted subscription leaves nothing behind, whatever is under way.
func TestNothingIsNotedOfADeletedSubscription(t *testing.T) {
	withTarget(t, "hub:failures", func(t *testing.T, y *yard, sub *topics.Subscription) {
		y.hubs.takes = time.Second
		defer y.run()()
		y.die(sub, 1)
		time.Sleep(time.Millisecond)
		y.topics.set(sub.ID, nil)
		pass(time.Hour)
		testkit.Must(t, y.Put(t.Context(), sub, []pending.Delivery{letter(sub, 2)}))
		entries := testkit.Value(y.meta.List(t.Context(), "grid/"))(t)
		testkit.Equal(t, len(entries), 0, "entries left: %v", entries)
	})
}

// A target that took over has four hours of its own, and is tried at once.
func TestANewTargetIsTriedAtOnceAndHasItsOwnTime(t *testing.T) {
	withTarget(t, "hub:failures", func(t *testing.T, y *yard, sub *topics.Subscription) {
		y.hubs.fail = errors.New("the hub is gone")
		defer y.run()()
		y.die(sub, 1)
		time.Sleep(3*time.Hour + 59*time.Minute)
		y.change(sub, "hub:others")
		pass(2 * time.Hour)
		y.wantCounts(sub, 0, 1) // the new target had 2 hours
		y.hubs.set(nil)
		y.change(sub, "hub:third")
		pass(time.Millisecond)
		y.wantSent(1, "third ")
	})
}

// What waited in the yard alone is written once there is a target, and problems of a target that is
// none any more are forgotten.
func TestATargetThatComesLaterGetsWhatWaits(t *testing.T) {
	withTarget(t, "hub:failures", func(t *testing.T, y *yard, sub *topics.Subscription) {
		y.hubs.fail = errors.New("the hub is gone")
		defer y.run()()
		y.die(sub, 1)
		time.Sleep(time.Hour)
		y.change(sub, "yard")
		pass(time.Millisecond)
		counts := y.counts(sub.ID)
		testkit.Slices(t, []any{counts.Problem, counts.Since.IsZero(), counts.Unwritten}, []any{"", true, int64(0)}, "in the yard")
		y.change(sub, "folder:dead")
		pass(time.Millisecond)
		y.wantFiled(filepath.Join(y.data, "dead"), 1)
	})
}

// Letters are given up one by one, each when it has waited for four hours. // G8
func TestOnlyWhatWaitedFourHoursIsGivenUp(t *testing.T) {
	withTarget(t, "hub:failures", func(t *testing.T, y *yard, sub *topics.Subscription) {
		y.hubs.fail = errors.New("the hub is gone")
		defer y.run()()
		y.die(sub, 1)
		time.Sleep(2 * time.Hour)
		y.die(sub, 2)
		pass(3 * time.Hour)
		y.wantCounts(sub, 1, 1) // after five hours
		y.hubs.set(nil)
		pass(10 * time.Minute)
		y.wantSent(1, `"e2"`)
	})
}

// Trouble with the yard's own disk is no trouble with the target: nothing is given up for it.
func TestAnUnreadableLogIsNotTheTargetsFault(t *testing.T) {
	withTarget(t, "hub:failures", func(t *testing.T, y *yard, sub *topics.Subscription) {
		y.faults.Fail(errors.New("input/output error"), logtest.OpCursor)
		defer y.run()()
		y.die(sub, 1)
		time.Sleep(5 * time.Hour)
		y.faults.Inject(nil)
		y.hubs.set(errors.New("the hub is gone"))
		pass(time.Hour)
		y.wantCounts(sub, 0, 1) // the target was out of reach for an hour
		y.hubs.set(nil)
		pass(time.Hour)
		y.wantSent(1, "")
	})
}

// A letter that cannot be read, or is too large for a hub, is passed and counted; the others are
// written. An event that cannot be written in the schema of its subscription may have died of that:
// it is written in its own.
func TestOddLettersDoNotHoldUpTheOthers(t *testing.T) {
	large := fmt.Sprintf(`{"id":"e2","subject":"/s","eventType":"order","eventTime":"2026-01-31T12:00:00Z","data":"%s"}`,
		strings.Repeat("x", eventlog.MaxBatchBytes-400))
	const plain = `{"id":"e2","subject":"/s","eventType":"order","eventTime":"2026-01-31T12:00:00Z","data":1}`
	for what, c := range map[string]struct {
		form    schema.Form
		event   string
		hops    int
		sent    int
		has     string // the last that is sent
		written string
	}{
		"that cannot be read":     {schema.EventGridForm, "{", 0, 2, `"e3"`, ""},
		"too large for a hub":     {schema.EventGridForm, large, 0, 2, `"e3"`, ""},
		"that died of its schema": {schema.CloudEventForm, `{"specversion":"1.0","id":"e2","source":"/s","type":"order","data":1}`, 0, 3, `"e3"`, "hub failures"},
		"that ended a loop":       {schema.EventGridForm, plain, hops.Max, 3, `"e3"`, "hub failures"},
		// R4: or hubs of dead letters would fill each other
		"that was a dead letter of a loop": {schema.EventGridForm, plain, hops.Max + 1, 2, `"e3"`, ""},
	} {
		t.Run(what, func(t *testing.T) {
			withTarget(t, "hub:failures", func(t *testing.T, y *yard, sub *topics.Subscription) {
				odd := letter(sub, 2)
				odd.Form, odd.Event, odd.Hops = c.form, []byte(c.event), c.hops
				for _, p := range []pending.Delivery{letter(sub, 1), odd, letter(sub, 3)} {
					testkit.Must(t, y.Put(t.Context(), sub, []pending.Delivery{p}))
				}
				defer y.run()()
				pass(time.Minute)
				y.wantSent(c.sent, c.has)
				y.wantCounts(sub, int64(3-c.sent), 0)
				page := y.list(sub.ID, Query{})
				testkit.MustEqual(t, len(page.Letters), 3, "listed")
				testkit.Equal(t, page.Letters[1].Written, c.written, "written to")
				if strings.Contains(what, "schema") && !strings.Contains(y.hubs.sent[1], `"deadletterreason":"UndeliverableDueToClientError"`) {
					t.Errorf("sent %v", y.hubs.sent)
				}
			})
		})
	}
}

// Every mark is known after a restart, however many there are in however many ranges, and entries
// stay within their limit.
func TestEveryMarkIsRemembered(t *testing.T) {
	y, sub := yardWith(t, "yard")
	const letters = 18_000
	all := make([]pending.Delivery, letters)
	for i := range all {
		all[i] = letter(sub, i)
		all[i].Reason = []string{"A", "B", "C"}[i%3]
	}
	testkit.Must(t, y.Put(t.Context(), sub, all))
	testkit.Equal(t, y.purge(sub.ID, Query{Reason: "A"}), letters/3, "purged")
	for at := (Redriven{}); ; {
		at = y.redrive(sub.ID, Query{Reason: "B", From: at.Next, Until: at.Until}, RedriveOptions{Rate: 1e9})
		if at.Next == 0 {
			break
		}
	}
	for range 2 {
		testkit.Equal(t, y.counts(sub.ID).Kept, letters-letters/3, "kept")
		again := y.redrive(sub.ID, Query{Reason: "B"}, RedriveOptions{Dry: true})
		testkit.Equal(t, again.Count, 0, "not known to be redriven")
		entries := testkit.Value(y.meta.List(t.Context(), entryPrefix))(t)
		for _, e := range entries {
			testkit.Equal(t, min(len(e.Value), meta.MaxValueBytes), len(e.Value), "bytes of %s", e.Key)
		}
		y.reopen()
	}
}

// Marks of letters that are gone go with the next ones.
func TestMarksOfLettersThatAreGoneAreForgotten(t *testing.T) {
	testengine.NeedsTrim(t)
	y, sub := yardWith(t, "yard")
	var some []pending.Delivery
	for i := range 2*setaside.LeafSize + 10 {
		some = append(some, letter(sub, i))
	}
	testkit.Must(t, y.Put(t.Context(), sub, some))
	y.purge(sub.ID, Query{Numbers: []int64{5, setaside.LeafSize + 5}})
	testkit.Must(t, y.whole.box(sub.ID).log.Trim(t.Context(), 2*setaside.LeafSize+10)) // as retention does
	y.die(sub, 1)
	y.redrive(sub.ID, Query{}, RedriveOptions{})
	testkit.Equal(t, len(testkit.Value(y.meta.List(t.Context(), entryPrefix+sub.ID+"/"))(t)), 1, "entries")
}

// A hub that is being deleted is a target out of reach, and nothing worse.
func TestAHubThatIsBeingDeletedIsOutOfReach(t *testing.T) {
	withTarget(t, "hub:failures", func(t *testing.T, y *yard, sub *topics.Subscription) {
		y.hubs.fail = fmt.Errorf("publish to hub failures: %w", eventlog.ErrRemoved)
		defer y.run()()
		y.die(sub, 1)
		pass(time.Minute)
		counts := y.counts(sub.ID)
		if counts.Problem == "" || counts.Since.IsZero() {
			t.Errorf("counts %+v", counts)
		}
		y.hubs.set(nil)
		pass(10 * time.Minute)
		y.wantSent(1, "")
	})
}

// A letter in a hub has the same id however often it is sent.
func TestLettersInHubsHaveIDs(t *testing.T) {
	withTarget(t, "hub:failures", func(t *testing.T, y *yard, sub *topics.Subscription) {
		y.die(sub, 1, 2)
		stop := y.run()
		time.Sleep(time.Minute)
		stop()
		testkit.Must(t, y.whole.box(sub.ID).changeState(t.Context(), func(st *state) { st.cut(0) }))
		defer y.run()()
		pass(time.Minute)
		if len(y.hubs.ids) != 4 || y.hubs.ids[0] == nil || y.hubs.ids[0] == y.hubs.ids[1] || y.hubs.ids[0] != y.hubs.ids[2] || y.hubs.ids[1] != y.hubs.ids[3] {
			t.Errorf("ids are %v", y.hubs.ids)
		}
	})
}

// An announcement that a crash could have swallowed is made again, with the same id.
func TestAnnouncementsSurviveACrash(t *testing.T) {
	withTarget(t, "folder:dead", func(t *testing.T, y *yard, sub *topics.Subscription) {
		y.die(sub, 1)
		y.meta.Inject(full)
		stop := y.run()
		time.Sleep(time.Second / 2)
		stop() // the file is there, and no note of it: as after a crash
		y.meta.Inject(nil)
		y.reopen(func(c *Config) { c.Delay = -1 })
		defer y.run()()
		pass(time.Second)
		if n := len(y.topics.published); n < 1 || !strings.Contains(y.topics.published[n-1], `"letters":1`) {
			t.Fatalf("announced: %v", y.topics.published)
		}
		testkit.Equal(t, len(files(t, filepath.Join(y.data, "dead"))), 1, "files")
	})
}

func (y *yard) change(sub *topics.Subscription, target string) {
	y.t.Helper()
	p := testkit.Value(topics.ParseTarget(target))(y.t)
	changed := *sub
	changed.DeadLetter = p
	y.topics.set(sub.ID, &changed)
}
