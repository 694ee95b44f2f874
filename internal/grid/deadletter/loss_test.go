package deadletter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// latecomer is definitions in which a subscription is made, and gets a dead letter, just after
// somebody has asked for a snapshot.
type latecomer struct {
	*definitions
	after func()
}

func (l *latecomer) Snapshot() *topics.Snapshot {
	s := l.definitions.Snapshot()
	if f := l.after; f != nil {
		l.after = nil
		f()
	}
	return s
}

// A subscription that is made while those of deleted ones are looked for keeps its letters.
func TestANewSubscriptionIsNotTakenForADeletedOne(t *testing.T) {
	late := &latecomer{definitions: newDefinitions()}
	y := newYard(t, func(c *Config) { c.Topics = late })
	y.topics = late.definitions
	late.after = func() {
		sub := y.subscribe("billing", "yard", schema.EventGrid)
		y.die(sub, 1)
	}
	y.whole.catchUp(t.Context(), new(sync.WaitGroup))
	sub := y.subscribe("billing", "yard", schema.EventGrid)
	y.die(sub, 2)
	page := y.list(sub.ID, Query{})
	testkit.Equal(t, len(page.Letters), 2, "letters are left of 2")
}

// What is read of a damaged log is all that can be, and everything that was opened is closed.
func TestDamageCostsOnlyWhatIsDamaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, sub := yardWith(t, "folder:dead")
		for i := range 20 {
			y.die(sub, i)
		}
		testkit.Must(t, y.engine.Close())
		y.damage(sub.ID, 3000)
		y.open()
		page := y.list(sub.ID, Query{})
		if n := len(page.Letters); n < 15 || n == 20 {
			t.Errorf("%d letters of 20 are listed", n)
		}
		stop := y.run()
		pass(10 * time.Minute)
		stop()
		testkit.Equal(t, len(lettersOf(t, files(t, filepath.Join(y.data, "dead")))), len(page.Letters), "letters are written")
		testkit.Equal(t, y.faults.Count(logtest.OpCursor)-y.faults.Count(logtest.OpClose), 0, "cursors were not closed")
	})
}

// damage flips a byte of a subscription's log.
func (y *yard) damage(id string, offset int64) {
	y.t.Helper()
	dir := path.Join("log", "dead-"+id, "0")
	entries := testkit.Value(y.mem.List(dir))(y.t)
	testkit.Must(y.t, y.mem.Corrupt(path.Join(dir, entries[0].Name), offset, 0xff))
}

// Where the log lost its end (power was cut, and the yard was told not to wait for the disk) its
// numbers are given anew. What was known of the old ones does not hold for the new.
func TestAnEntryAheadOfTheLogHidesNoDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		testkit.Must(t, y.engine.Close())
		y.sync = disk.OS
		y.open()
		sub := y.subscribe("billing", "folder:dead", schema.EventGrid)
		stop := y.run()
		y.die(sub, 0, 1, 2, 3, 4, 5, 6, 7)
		pass(6 * time.Minute)
		y.purge(sub.ID, Query{Numbers: []int64{1, 3}})
		y.redrive(sub.ID, Query{Numbers: []int64{0, 2}}, RedriveOptions{})
		stop()
		y.cutPower(nil)
		y.open()
		defer y.run()()
		bounds := testkit.Value(y.whole.box(sub.ID).log.Bounds(t.Context()))(t)
		testkit.MustEqual(t, bounds.Next, 0, "the log kept … letters: this proves nothing")
		y.die(sub, 10, 11, 12, 13)
		page := y.list(sub.ID, Query{})
		testkit.Equal(t, len(page.Letters), 4, "letters %v are listed of 4 new ones", numbersOf(page))
		pass(6 * time.Minute)
		written := fmt.Sprint(files(t, filepath.Join(y.data, "dead")))
		for _, id := range []string{"e0", "e7", "e10", "e11", "e12", "e13"} {
			if !strings.Contains(written, `"`+id+`"`) {
				t.Errorf("%s was not written, or what was written is gone", id)
			}
		}
	})
}

// C4: a node that has not heard of the newest letters yet forgets nothing of what became of them.
func TestANodeThatIsBehindForgetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		sub := y.subscribe("billing", "folder:dead", schema.EventGrid)
		stop := y.run()
		y.die(sub, 0, 1, 2, 3)
		pass(6 * time.Minute)
		y.purge(sub.ID, Query{Numbers: []int64{1, 3}})
		stop()
		y.reopen()
		y.faults.Behind(4)
		y.die(sub, 4)
		y.faults.Behind(0)
		testkit.Slices(t, numbersOf(y.list(sub.ID, Query{})), []int64{0, 2, 4}, "letters that are listed")
		testkit.Equal(t, y.counts(sub.ID).Unwritten, 1, "letters to be written")
	})
}

// cutPower leaves of the disk what survives, and the engine as it is.
func (y *yard) cutPower(rnd *rand.Rand) {
	if rnd == nil {
		rnd = rand.New(rand.NewPCG(1, 2))
	}
	old := y.engine
	y.mem = y.mem.CutPower(rnd)
	_ = old.Close()
}

// A yard that was off for longer than letters are kept still writes them: whether they are too old
// is only asked once they are where they should be.
func TestLettersAreNotTooOldBeforeTheyAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, sub := yardWith(t, "folder:dead")
		y.die(sub, 1, 2)
		testkit.Must(t, y.engine.Close())
		time.Sleep(40 * 24 * time.Hour)
		y.open()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- y.engine.Run(ctx) }()
		time.Sleep(time.Minute) // retention has been applied
		stop := y.run()
		pass(time.Minute)
		testkit.Equal(t, len(lettersOf(t, files(t, filepath.Join(y.data, "dead")))), 2, "letters of 2 were written")
		// And then they go.
		counts := y.counts(sub.ID)
		testkit.Equal(t, counts.Kept, 0, "are still kept")
		stop()
		cancel()
		testkit.Must(t, <-ended)
	})
}
