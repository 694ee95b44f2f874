package processor_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// P1
func TestASecondLiveInstanceWithTheSameIDIsRefused(t *testing.T) {
	bubble(t, 2, func(w *world) {
		w.start(w.config("a"), w.note)
		after(time.Second)
		begin := time.Now()
		second := processor.New(w.hub, w.config("a")).Run(context.Background(), w.note)
		testkit.ErrorIs(t, second, processor.ErrDuplicateID, "the second ended with")
		if took := time.Since(begin); took > 25*time.Second { // two renewals of the first
			t.Errorf("it took %v to find out", took)
		}
		w.feed(time.Second, "0", 1)
		w.wantAll()
		testkit.Equal(t, w.lease("0").Epoch, 1, "epoch … the first was disturbed")
	})
}

// P1, P2: an instance that died and comes back under its id goes on with its partitions.
func TestAnInstanceThatComesBackSoonKeepsItsPartitions(t *testing.T) {
	bubble(t, 4, func(w *world) {
		cfg, cut := w.faulty("a")
		dead := w.start(cfg, w.note)
		w.start(w.config("b"), w.note)
		after(2 * time.Minute)
		before := w.owners()
		cut.setDown(true)
		after(time.Second)
		w.start(w.config("a"), w.note)
		after(16 * time.Second)
		testkit.Equal(t, w.owners(), before, "owners")
		for _, p := range w.hub.IDs() {
			w.hub.SendN(p, 2)
			if l := w.lease(p); l.Owner == "a" && l.Epoch < 2 {
				t.Errorf("partition %s: epoch %d was not raised", p, l.Epoch)
			}
		}
		after(time.Second)
		for _, p := range w.hub.IDs() {
			if got := w.got(p); len(got) == 0 {
				t.Errorf("partition %s is not read", p)
			}
		}
		cut.setDown(false) // the dead one wakes up and finds that it is not alone
		testkit.ErrorIs(t, <-dead.done, processor.ErrDuplicateID, "it ended with")
		after(time.Minute)
		testkit.Equal(t, w.owners(), before, "owners")
	})
}

// P1: others end what they take for dead. Who comes back under that id, and sees it happen, is not told
// that the id is in use.
func TestAnInstanceComesBackWhileOthersEndItsEarlierLife(t *testing.T) {
	bubble(t, 4, func(w *world) {
		cfg, cut := w.faulty("a")
		dead := w.start(cfg, w.note)
		w.start(w.config("b"), w.note)
		after(2 * time.Minute)
		cut.setDown(true)
		after(20 * time.Second) // its lease time ends while its successor watches what it has left
		w.start(w.config("a"), w.note)
		after(5 * time.Minute)
		w.wantCounts(2, 2)
		cut.setDown(false)
		after(time.Minute)
		select {
		case err := <-dead.done:
			testkit.ErrorIs(t, err, processor.ErrDuplicateID, "the dead one ended with")
		default:
			t.Error("the one that was taken for dead goes on beside its successor")
		}
	})
}

// P1: nor is one whose own announcement is made late, while it watches what was left.
func TestAnInstanceWhoseAnnouncementIsMadeLateGoesOn(t *testing.T) {
	bubble(t, 2, func(w *world) {
		cfg, cut := w.faulty("a")
		dead := w.start(cfg, w.note)
		after(time.Minute)
		cut.setDown(true)
		dead.cancel()
		<-dead.done
		cfg = w.config("a")
		cfg.Store = &tardy{faulty: newFaulty(w.store), by: 5 * time.Second}
		w.start(cfg, w.note)
		after(time.Minute)
		testkit.Equal(t, w.owners(), "a:0,1", "owners")
	})
}

// tardy makes its first write when the caller has given up.
type tardy struct {
	*faulty
	by   time.Duration
	once sync.Once
}

func (s *tardy) Put(ctx context.Context, g processor.Group, entry processor.Entry) (processor.Entry, error) {
	first := false
	s.once.Do(func() { first = true })
	if !first {
		return s.faulty.Put(ctx, g, entry)
	}
	go func() {
		time.Sleep(s.by)
		_, _ = s.faulty.Put(context.WithoutCancel(ctx), g, entry)
	}()
	return processor.Entry{}, errDown
}

// P2
func TestAnInstanceWithoutPartitionsIsCountedAndTakesOverAtOnce(t *testing.T) {
	bubble(t, 1, func(w *world) {
		a := w.start(w.config("a"), w.note)
		after(time.Second)
		w.start(w.config("b"), w.note)
		after(time.Minute)
		testkit.Equal(t, w.owners(), "a:0", "owners")
		a.stop()
		after(time.Second)
		testkit.Equal(t, w.owners(), "b:0", "owners")
	})
}

// P11: what is released early is not left lying while the rest drains.
func TestPartitionsOfALeavingInstanceAreTakenAsTheyComeFree(t *testing.T) {
	bubble(t, 4, func(w *world) {
		hold := make(chan struct{})
		a := w.start(w.config("a"), func(ctx context.Context, b *processor.Batch) error {
			<-hold
			return w.note(ctx, b)
		})
		after(time.Second)
		w.feed(time.Second, "0", 1)
		w.start(w.config("b"), w.note)
		after(time.Millisecond)
		a.cancel()
		after(time.Second)
		testkit.Equal(t, w.counts()["b"], 3, "owners %s", w.owners())
		close(hold)
		after(time.Second)
		testkit.Equal(t, w.counts()["b"], 4, "owners %s", w.owners())
		w.wantAll()
	})
}

// P2: for stores that cannot tell of changes.
func TestHandoffWorksByPolling(t *testing.T) {
	bubble(t, 4, func(w *world) {
		cfg := w.config("a")
		cfg.Store = newFaulty(w.store)
		cfg.Checkpoints = processor.Checkpoints{Auto: true, Every: time.Hour}
		w.start(cfg, w.noteOnly)
		after(time.Second)
		cfg.ID, cfg.Store = "b", newFaulty(w.store)
		w.start(cfg, w.noteOnly)
		for range 60 {
			w.hub.SendN("0", 1)
			w.feed(time.Second, "3", 1)
		}
		w.wantCounts(2, 2)
		w.wantAll()
		w.wantNoErrors()
	})
}

// P2
func TestAnOwnerThatDoesNotHandOverLosesThePartitionAfterATime(t *testing.T) {
	bubble(t, 2, func(w *world) {
		var cause error
		done := make(chan struct{})
		stuck := func(ctx context.Context, b *processor.Batch) error {
			<-ctx.Done()
			w.mu.Lock()
			cause = context.Cause(ctx)
			w.mu.Unlock()
			<-done
			return nil
		}
		w.start(w.config("a"), stuck)
		w.feedAll(time.Second, 1)
		w.start(w.config("b"), w.note)
		after(19 * time.Second)
		reported := func() error { w.mu.Lock(); defer w.mu.Unlock(); return cause }
		if reported() != nil || w.counts()["a"] != 2 {
			t.Errorf("taken early: %v, %s", reported(), w.owners())
		}
		after(2 * time.Second)
		testkit.ErrorIs(t, reported(), processor.ErrHandoff, "the context ended with")
		after(30 * time.Second)
		testkit.Equal(t, w.counts()["b"], 1, "owners %s", w.owners())
		close(done)
	})
}

// P1
func TestAPartitionCountThatGrowsIsNoticed(t *testing.T) {
	bubble(t, 2, func(w *world) {
		w.start(w.config("a"), w.note)
		after(time.Second)
		w.hub.Grow(2)
		w.feed(time.Minute, "3", 5)
		w.wantAll()
		testkit.Equal(t, w.owners(), "a:0,1,2,3", "owners")
	})
}

func TestWhatIsLeftOfTheDeadIsRemoved(t *testing.T) {
	bubble(t, 2, func(w *world) {
		cfg, cut := w.faulty("dead")
		dead := w.start(cfg, w.note)
		w.start(w.config("b"), w.note)
		after(time.Minute)
		cut.setDown(true)
		dead.cancel()
		<-dead.done
		after(5 * time.Minute)
		if got := w.entries(); len(got) != 1 || got[0] != "presence/b" {
			t.Errorf("entries %v", got)
		}
	})
}
