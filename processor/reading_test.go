package processor_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// P10
func TestStartIsAskedOnlyForPartitionsWithoutCheckpoint(t *testing.T) {
	bubble(t, 2, func(w *world) {
		w.hub.SendAll(5)
		w.force("1", 2)
		cfg := w.config("a")
		var asked []string
		cfg.Start = func(p string) hub.Position { asked = append(asked, p); return hub.Latest }
		w.start(cfg, w.note)
		after(time.Second)
		w.feed(time.Second, "0", 1)
		w.wantGot("0", 5)
		w.wantGot("1", 3, 4)
		if !slices.Equal(asked, []string{"0"}) {
			t.Errorf("asked for %v", asked)
		}
	})
}

func TestACheckpointWithAnOffsetAloneIsGoneOnFrom(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.hub.SendN("0", 5)
		testkit.Must(t, testkit.Err(w.store.Force(context.Background(), group, processor.Checkpoint{Partition: "0", Sequence: -1, Offset: "o2"})))
		w.start(w.config("a"), w.note)
		after(time.Second)
		w.wantGot("0", 3, 4)
	})
}

func TestACheckpointBeyondTheEndFollowsTheConfiguration(t *testing.T) {
	for policy, want := range map[processor.OutOfRange][]int64{
		processor.FromEarliest: {0, 1, 2, 3}, processor.FromLatest: {3}, processor.Fail: nil,
	} {
		bubble(t, 1, func(w *world) {
			w.hub.SendN("0", 3)
			w.force("0", 500)
			cfg := w.config("a")
			cfg.OutOfRange = policy
			a := w.start(cfg, w.note)
			after(time.Second)
			w.feed(time.Minute, "0", 1)
			w.wantGot("0", want...)
			w.wantReported(processor.ErrBadCheckpoint)
			if policy == processor.Fail {
				if s := w.status(a, "0"); s.State != processor.Faulted || !errors.Is(s.Err, processor.ErrBadCheckpoint) {
					t.Errorf("the status says %+v", s)
				}
				after(10 * time.Minute)
				w.force("0", 1) // the operator repairs it
				after(time.Minute)
				w.wantGot("0", 2, 3)
			}
			w.wantSaved("0", 3)
		})
	}
}

func TestACheckpointOfAnEarlierHubOfThatNameDoesNotCount(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.hub.SendN("0", 3)
		a := w.start(w.config("a"), w.note)
		after(time.Second)
		a.stop()
		w.hub.Recreate()
		w.hub.SendN("0", 5)
		w.start(w.config("b"), w.note)
		after(time.Second)
		w.wantGot("0", 0, 1, 2, 0, 1, 2, 3, 4)
		w.wantReported(processor.ErrBadCheckpoint)
		w.wantSaved("0", 4)
	})
}

func TestAHubThatIsMadeAnewWhileItIsReadIsReadFromItsBeginning(t *testing.T) {
	for _, n := range []int{2, 9} { // fewer events than were read before, and more
		bubble(t, 1, func(w *world) {
			w.start(w.config("a"), w.note)
			w.feed(time.Second, "0", 5)
			w.hub.Recreate()
			w.feed(2*time.Minute, "0", n)
			got := w.got("0")
			if want := append(upTo(5), upTo(int64(n))...); !slices.Equal(got[:5], want[:5]) || !slices.Equal(got[len(got)-n:], want[5:]) {
				t.Errorf("handled %v", got)
			}
			w.wantReported(processor.ErrBadCheckpoint)
			if c := w.saved("0"); c.Sequence != int64(n)-1 || c.HubID != w.hub.Created().UTC().Format(time.RFC3339Nano) {
				t.Errorf("stored %+v", c)
			}
		})
	}
}

func TestAnOffsetThatTheHubDoesNotKnowFollowsTheConfiguration(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.hub.SendN("0", 3)
		testkit.Must(t, testkit.Err(w.store.Force(context.Background(), group, processor.Checkpoint{Partition: "0", Sequence: -1, Offset: "of another world"})))
		w.start(w.config("a"), w.note)
		after(time.Second)
		w.wantAll()
		w.wantReported(processor.ErrBadCheckpoint)
		w.wantSaved("0", 2)
	})
}

func TestEventsRemovedByRetentionAreAGap(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.hub.SendN("0", 10)
		w.force("0", 2)
		w.hub.Trim("0", 7)
		w.start(w.config("a"), w.note)
		after(time.Second)
		w.wantGot("0", 7, 8, 9)
		w.wantReported(processor.ErrGap)
		if want := "partition 0: find where to go on: events were removed before they were read: 4 of them, from sequence number 3 on"; w.errs[0].Error() != want {
			t.Errorf("told %q", w.errs[0])
		}
	})
}

// P1, H5: evicted although the lease is ours: look again, go on.
func TestAnEvictedReaderLooksAtItsLeaseAndGoesOnIfItIsStillItsOwn(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.start(w.config("a"), w.note)
		after(time.Second)
		r, err := w.hub.Open(context.Background(), hub.ReadConfig{Partition: "0", Epoch: hub.Exclusive(1)})
		testkit.Must(t, err)
		after(5 * time.Second)
		testkit.ErrorIs(t, testkit.Err(r.Next(context.Background(), nil, 1)), hub.ErrEvicted, "the intruder was told")
		w.feed(time.Second, "0", 1)
		w.wantAll()
		w.wantReported(hub.ErrEvicted)
	})
}

// P1, H5: the hub knows a higher epoch than the store, as after the records were lost.
func TestARefusedReaderRaisesItsEpochUntilItIsAdmitted(t *testing.T) {
	bubble(t, 1, func(w *world) {
		old, err := w.hub.Open(context.Background(), hub.ReadConfig{Partition: "0", Epoch: hub.Exclusive(40)})
		testkit.Must(t, err)
		defer old.Close(context.Background())
		w.hub.SendN("0", 3)
		w.start(w.config("a"), w.note)
		after(time.Minute)
		w.wantAll()
		if e := w.lease("0").Epoch; e <= 40 {
			t.Errorf("epoch %d", e)
		}
	})
}

func TestAStalledReaderIsOpenedAnewAndThenThePartitionReleased(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.start(w.config("a"), w.note)
		after(10 * time.Minute) // idle is not stalled
		if n := len(w.hub.Opened()); n != 1 || len(w.errs) > 0 {
			t.Fatalf("opened %d times, %v", n, w.errs)
		}
		w.hub.Mute("0", false)
		w.feed(3*time.Minute, "0", 1)
		w.wantAll()
		w.wantReported(processor.ErrStalled)
		w.hub.Mute("0", true)
		w.hub.SendN("0", 1)
		epoch := w.lease("0").Epoch
		after(6 * time.Minute)
		if e := w.lease("0").Epoch; e <= epoch {
			t.Errorf("not released: epoch %d", e)
		}
		if !slices.Contains(w.states, "0 stalled") {
			t.Errorf("states %v", w.states)
		}
		w.hub.Mute("0", false)
		after(10 * time.Minute)
		w.wantAll()
	})
}

func TestAHubThatIsDownIsWaitedFor(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.hub.FailInfo(errDown)
		w.hub.FailOpen(func(hub.ReadConfig) error { return errDown })
		w.hub.SendN("0", 3)
		a := w.start(w.config("a"), w.note)
		after(time.Minute)
		w.hub.FailInfo(nil)
		after(time.Minute)
		if s := w.status(a, "0"); s.State != processor.Starting || !errors.Is(s.Err, errDown) {
			t.Errorf("the status says %+v", s)
		}
		after(10 * time.Minute)
		w.hub.FailOpen(nil)
		after(time.Minute)
		w.wantAll()
	})
}

func TestWhatDoesNotPassByWaitingEndsRun(t *testing.T) {
	for _, err := range []error{hub.ErrNotFound, hub.ErrUnauthorized} {
		bubble(t, 1, func(w *world) {
			w.hub.FailInfo(err)
			testkit.ErrorIs(t, processor.New(w.hub, w.config("a")).Run(context.Background(), w.note), err,
				"no hub")
			w.hub.FailInfo(nil)
			w.hub.FailOpen(func(hub.ReadConfig) error { return err })
			testkit.ErrorIs(t, processor.New(w.hub, w.config("a")).Run(context.Background(), w.note), err,
				"no group")
			w.wantNothingLeft()
		})
	}
}

// A processor of an official SDK in the same group.
func TestWithAForeignOwnerReadersShowNoEpochAndItsPartitionsAreTakenWithoutAsking(t *testing.T) {
	bubble(t, 4, func(w *world) {
		w.start(w.config("a"), w.note)
		after(time.Second)
		foreign := func() { // takes and renews two partitions, as those do
			for _, id := range []string{"0", "1"} {
				l := w.lease(id)
				if l.Owner != "official" {
					l.Owner, l.Epoch, l.Presence = "official", l.Epoch+1, ""
				}
				testkit.Must(t, testkit.Err(w.store.Claim(context.Background(), group, []processor.Lease{l})))
			}
		}
		foreign()
		after(time.Second)
		r, err := w.hub.Open(context.Background(), hub.ReadConfig{Partition: "0", Epoch: hub.Exclusive(0)})
		testkit.Must(t, err, "ours still holds what is not its own")
		after(time.Second)
		last := map[string]int64{}
		for _, o := range w.hub.Opened() {
			last[o.Partition], _ = o.Epoch.Number()
		}
		if last["2"] != 0 || last["3"] != 0 {
			t.Errorf("epochs shown: %v", last)
		}
		for range 30 {
			foreign()
			after(10 * time.Second)
		}
		if w.lease("0").Owner != "official" || w.lease("1").Owner != "official" {
			t.Errorf("owners %s: two of four is its share", w.owners())
		}
		r.Close(context.Background())
		after(3 * time.Minute) // it dies
		testkit.Equal(t, w.counts()["a"], 4, "owners %s", w.owners())
		w.feed(time.Second, "0", 1)
		w.wantAll()
	})
}

func TestStatusShowsTheLagInEventsAndInTime(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg := w.config("a")
		cfg.MaxBatch = 1
		hold := make(chan struct{})
		a := w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			if b.Events[0].Sequence == 2 {
				<-hold
			}
			return w.note(ctx, b)
		})
		w.feed(time.Second, "0", 2)
		if s := w.status(a, "0"); s.Lag != 0 || s.Done != 1 || s.Saved != 1 {
			t.Errorf("%+v", s)
		}
		after(10 * time.Second)
		w.feed(time.Second, "0", 5)
		w.feed(time.Minute, "0", 5) // nothing was delivered meanwhile, and yet it is known
		if s := w.status(a, "0"); s.Lag != 10 || s.LagTime != 12*time.Second || s.Done != 1 {
			t.Errorf("%+v", s)
		}
		close(hold)
		after(time.Second)
		if s := w.status(a, "0"); s.Lag != 0 || s.LagTime != 0 || s.Done != 11 {
			t.Errorf("%+v", s)
		}
		a.stop()
		if s := a.Status(); len(s) != 0 {
			t.Errorf("after the end: %+v", s)
		}
	})
}

func TestStatesAreReported(t *testing.T) {
	bubble(t, 1, func(w *world) {
		a := w.start(w.config("a"), w.failing)
		w.feed(time.Second, "0", 1)
		a.stop()
		want := []string{"0 starting", "0 running", "0 retrying", "0 running", "0 draining", "0 closed"}
		testkit.Slices(t, w.states, want, "states")
	})
}

// P10, P3: where a partition began is kept, or the next owner would begin later and miss what came
// meanwhile.
func TestAPartitionThatBeginsAtTheEndIsGoneOnFromThere(t *testing.T) {
	for _, bad := range []bool{false, true} {
		bubble(t, 1, func(w *world) {
			w.hub.SendN("0", 5)
			cfg := w.config("a")
			cfg.Start = func(string) hub.Position { return hub.Latest }
			if bad {
				w.force("0", 1000)
				cfg.OutOfRange = processor.FromLatest
			}
			a := w.start(cfg, w.note)
			after(time.Second)
			a.stop()
			w.hub.SendN("0", 3)
			cfg.ID = "b"
			w.start(cfg, w.note)
			after(time.Second)
			w.wantGot("0", 5, 6, 7)
		})
	}
}

// P3: nor does a reader that is opened anew before anything was read.
func TestAPartitionThatBeganAtTheEndMissesNothingWhenItsLinkBreaks(t *testing.T) {
	for _, there := range []int{0, 5} {
		bubble(t, 1, func(w *world) {
			w.hub.SendN("0", there)
			cfg := w.config("a")
			cfg.Start = func(string) hub.Position { return hub.Latest }
			w.start(cfg, w.note)
			after(time.Second)
			w.hub.Cut("0", errLink)
			w.feed(time.Second, "0", 2)
			w.wantGot("0", int64(there), int64(there)+1)
		})
	}
}
