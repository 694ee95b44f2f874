package frames_test

import (
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/testkit"
)

// stage is a writer, and a stream that does as the test says.
type stage struct {
	t       *testing.T
	writer  *frames.Writer
	fold    *frames.Partition
	at      frames.StreamSeq
	clock   int64
	sent    []frames.SendFrame
	fences  []frames.SendFence
	answers []frames.Answer
}

func newStage(t *testing.T, w *frames.Writer) *stage {
	s := &stage{t: t, writer: w, fold: frames.NewPartition(), clock: 1000}
	s.take()
	return s
}

func (s *stage) take() {
	var a frames.Actions
	s.writer.Take(&a)
	for _, f := range a.Frames {
		for _, b := range f.Batches { // as its encoder does
			f.Header.Events += b.Events
		}
		s.sent = append(s.sent, f)
	}
	s.fences = append(s.fences, a.Fences...)
	s.answers = append(s.answers, a.Answers...)
}

// submit sends so many batches of one event each in frames of their own, if the window has room.
func (s *stage) submit(batches int) {
	for range batches {
		s.writer.Submit(large)
		s.take()
	}
}

var large = frames.Batch{Events: 1, Body: make([]byte, frames.LargeBytes)}

// store puts a header into the stream and lets the writer see what became of it.
func (s *stage) store(h frames.Header) frames.StreamSeq {
	s.at++
	_, h.Time = s.fold.Stamp(s.at-1, s.clock)
	s.writer.Folded(s.at, []frames.Seen{{At: s.at, Header: h, Verdict: s.fold.Apply(s.at, h)}})
	s.take()
	return s.at
}

// land stores the frame with this index and acknowledges it.
func (s *stage) land(i int) {
	s.acknowledge(i, s.store(s.sent[i].Header))
}

func (s *stage) acknowledge(i int, at frames.StreamSeq) {
	s.writer.Acknowledged(s.sent[i].ID, at)
	s.take()
}

func (s *stage) fail(i int) {
	s.writer.Failed(s.sent[i].ID)
	s.take()
}

func (s *stage) landFence(i int) {
	s.writer.FenceAcknowledged(s.fences[i].ID, s.store(s.fences[i].Header))
	s.take()
}

// fates compares what was answered so far, by ticket.
func (s *stage) fates(want ...frames.Fate) {
	s.t.Helper()
	got := make([]frames.Fate, len(want))
	for _, a := range s.answers {
		testkit.MustThat(s.t, int(a.Ticket) <= len(want) && got[a.Ticket-1] == 0, "ticket %d is answered twice, or too early: %v", a.Ticket, s.answers)
		got[a.Ticket-1] = a.Fate
	}
	testkit.Slices(s.t, got, want, "fates")
}

func TestBatchesGatherWhileTheWindowIsFull(t *testing.T) {
	s := newStage(t, frames.NewWriter(ann))
	s.submit(frames.WindowFrames + 5)
	testkit.Equal(t, len(s.sent), frames.WindowFrames)
	testkit.Equal(t, s.writer.QueueBytes(), 5*large.Bytes())
	s.land(0)
	testkit.MustEqual(t, len(s.sent), frames.WindowFrames+1)
	testkit.Equal(t, len(s.sent[frames.WindowFrames].Batches), 5, "all that waits goes into one frame")
	testkit.Equal(t, s.writer.QueueBytes(), 0)
}

// What those submit who were just answered goes together with what waits.
func TestAnswersAreTakenBeforeAnythingIsSent(t *testing.T) {
	s := newStage(t, frames.NewWriter(ann))
	single := frames.Batch{Events: 1, Body: []byte("x")}
	s.writer.Submit(single)
	s.writer.Submit(single)
	s.take()
	testkit.MustEqual(t, len(s.sent), 1)
	s.writer.Submit(single)
	s.take()
	testkit.MustEqual(t, len(s.sent), 1, "one batch waits for the two on their way")
	at := s.store(s.sent[0].Header)
	s.writer.Acknowledged(s.sent[0].ID, at)
	s.answers = s.writer.TakeAnswers(s.answers)
	s.fates(frames.Stored, frames.Stored)
	testkit.Equal(t, len(s.writer.TakeAnswers(nil)), 0, "answers that are there still")
	s.writer.Submit(single)
	s.writer.Submit(single)
	s.take()
	s.fates(frames.Stored, frames.Stored)
	testkit.MustEqual(t, len(s.sent), 2)
	testkit.Equal(t, len(s.sent[1].Batches), 3, "batches in the frame behind")
}

// Senders of single events that wait for their answers share two frames, whichever number they are.
func TestSmallBatchesGatherWhileAsManyAreOnTheirWay(t *testing.T) {
	s := newStage(t, frames.NewWriter(ann))
	single := func() {
		s.writer.Submit(frames.Batch{Events: 1, Body: []byte("x")})
		s.take()
	}
	for range 64 {
		single()
	}
	for landed, answered := 0, 0; landed < 20; landed++ {
		s.land(landed)
		for ; answered < len(s.answers); answered++ { // whose sender sends the next
			single()
		}
	}
	var got []int
	for _, f := range s.sent {
		got = append(got, len(f.Batches))
	}
	testkit.Slices(t, got[:8], []int{1, 1, 2, 4, 8, 16, 32, 32}, "batches of each frame")
	for i, n := range got[8:] {
		testkit.Equal(t, n, 32, "batches of frame %d", 8+i)
	}
}

func TestALargeBatchDoesNotWait(t *testing.T) {
	for name, tt := range map[string]struct {
		batches []frames.Batch
		want    int // frames
	}{
		"alone":                     {[]frames.Batch{large}, 4},
		"behind one that waits":     {[]frames.Batch{{Events: 1, Body: []byte("x")}, large}, 4},
		"nor do many that are such": {[]frames.Batch{{Events: 1, Body: large.Body[:frames.LargeBytes/2]}, {Events: 1, Body: large.Body[:frames.LargeBytes/2]}}, 4},
		"a small one does":          {[]frames.Batch{{Events: 1, Body: []byte("x")}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, frames.NewWriter(ann))
			s.submit(3)
			for _, b := range tt.batches {
				s.writer.Submit(b)
			}
			s.take()
			testkit.Equal(t, len(s.sent), tt.want)
		})
	}
}

func TestHowMuchIsGathered(t *testing.T) {
	const most = frames.GatherBytes - frames.BatchHeaderBytes
	for name, tt := range map[string]struct {
		sizes []int
		want  []int // batches of each frame
	}{
		"all that fits":                  {[]int{100, 100, 100}, []int{3}},
		"up to the last byte":            {[]int{most - frames.BatchHeaderBytes - 1, 1}, []int{2}},
		"and not one more":               {[]int{most - frames.BatchHeaderBytes, 1}, []int{1, 1}},
		"a large batch is one by itself": {[]int{1, 3 << 20, 1, 1}, []int{1, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, frames.NewWriter(ann))
			for _, size := range tt.sizes {
				s.writer.Submit(frames.Batch{Events: 1, Body: make([]byte, size)})
			}
			s.take()
			var got []int
			for _, f := range s.sent {
				got = append(got, len(f.Batches))
			}
			testkit.Slices(t, got, tt.want)
		})
	}
}

// C1, C2: a batch is confirmed when its frame is acknowledged and counted, and all before it.
func TestWhatIsConfirmed(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(s *stage)
		want []frames.Fate
	}{
		"nothing that is only acknowledged": {func(s *stage) { s.acknowledge(0, 9) }, []frames.Fate{0, 0, 0}},
		"nothing that is only counted":      {func(s *stage) { s.store(s.sent[0].Header) }, []frames.Fate{0, 0, 0}},
		"what is both":                      {func(s *stage) { s.land(0) }, []frames.Fate{frames.Stored, 0, 0}},
		"nothing before what was sent earlier": {func(s *stage) {
			s.store(s.sent[0].Header)
			s.land(1)
		}, []frames.Fate{0, 0, 0}},
		"in one go when the first comes last": {func(s *stage) {
			first := s.store(s.sent[0].Header)
			s.land(1)
			s.land(2)
			s.acknowledge(0, first)
		}, []frames.Fate{frames.Stored, frames.Stored, frames.Stored}},
		"also where a frame was stored twice": {func(s *stage) {
			s.store(s.sent[0].Header)
			s.land(0)
			s.land(1)
		}, []frames.Fate{frames.Stored, frames.Stored, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, frames.NewWriter(ann))
			s.submit(3)
			tt.do(s)
			s.fates(tt.want...)
			testkit.Equal(t, len(s.fences), 0, "no doubt")
		})
	}
}

func TestNumbersOfConfirmedBatches(t *testing.T) {
	s := newStage(t, frames.NewWriter(ann))
	s.store(data(bob, 0, 0, 10, 0))
	for _, events := range []int{2, 3, 1} {
		s.writer.Submit(frames.Batch{Events: events})
	}
	s.take()
	s.clock = 5000
	s.land(0)
	var got []eventlog.Sequence
	for _, a := range s.answers {
		got = append(got, a.First)
		testkit.Equal(t, a.Time, 5000)
	}
	testkit.Slices(t, got, []eventlog.Sequence{10, 12, 15})
}

// C1: every reason for doubt is followed by a fence, once, and by no frame before it is settled.
func TestWhatIsDoubt(t *testing.T) {
	for name, do := range map[string]func(s *stage){
		"an error":             func(s *stage) { s.fail(1) },
		"a falling sequence":   func(s *stage) { s.acknowledge(0, 20); s.acknowledge(1, 19) },
		"the same sequence":    func(s *stage) { s.acknowledge(0, 20); s.acknowledge(1, 20) },
		"falling, known late":  func(s *stage) { s.acknowledge(1, 20); s.acknowledge(0, 21) },
		"a void frame":         func(s *stage) { s.store(s.sent[1].Header) },
		"several at once":      func(s *stage) { s.fail(1); s.fail(0); s.store(s.sent[1].Header) },
		"giving up":            func(s *stage) { s.writer.GiveUp(); s.take() },
		"nothing where it was": func(s *stage) { s.writer.Folded(7, nil); s.acknowledge(0, 7) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, frames.NewWriter(ann))
			s.submit(2)
			testkit.That(t, s.writer.Settled(), "settled before")
			do(s)
			testkit.That(t, !s.writer.Settled(), "in doubt")
			testkit.Equal(t, len(s.fences), 1, "fences")
			s.submit(1)
			testkit.Equal(t, len(s.sent), 2, "frames")
		})
	}
}

// C1, C2: behind the fence it is known what counts, and the rest is sent again, in order.
func TestDoubtIsSettledByAFence(t *testing.T) {
	s := newStage(t, frames.NewWriter(ann))
	s.submit(4)
	s.store(s.sent[0].Header) // stored, and its acknowledgement lost
	s.fail(0)
	s.submit(1)
	testkit.MustEqual(t, len(s.fences), 1)

	s.store(s.sent[1].Header) // late, and before the fence
	at := s.store(s.fences[0].Header)
	s.fates(0, 0, 0, 0, 0)
	s.writer.FenceAcknowledged(s.fences[0].ID, at)
	s.take()
	s.fates(frames.Stored, frames.Stored, 0, 0, 0)
	testkit.MustEqual(t, len(s.sent), 5, "what was void, and what was submitted since, in one frame")
	again := s.sent[4]
	testkit.Equal(t, len(again.Batches), 3)
	testkit.Equal(t, again.Header.Epoch, s.fences[0].Header.Epoch)
	testkit.Equal(t, again.Header.Q, 0)

	s.store(s.sent[2].Header) // late, behind the fence
	s.land(4)
	s.fates(frames.Stored, frames.Stored, frames.Stored, frames.Stored, frames.Stored)
	testkit.That(t, s.writer.Idle() && s.writer.Settled(), "at rest")
	testkit.Equal(t, s.fold.State().Next, 5)
}

// C1: a fence that is not known to hold settles nothing.
func TestAFenceThatDoesNotHoldIsFollowedByTheNext(t *testing.T) {
	for name, do := range map[string]func(s *stage){
		"it failed": func(s *stage) { s.writer.FenceFailed(s.fences[0].ID); s.take() },
		"it was stale": func(s *stage) {
			old := s.fences[0].Header
			old.Time, s.at = 1, s.at+2
			s.fold.Apply(s.at-1, data(bob, 0, 0, 1, 100*hour))
			v := s.fold.Apply(s.at, old)
			testkit.Equal(s.t, v, void(frames.Stale))
			s.writer.Folded(s.at, []frames.Seen{{At: s.at, Header: old, Verdict: v}})
			s.writer.FenceAcknowledged(s.fences[0].ID, s.at)
			s.take()
		},
		"it is in a hole": func(s *stage) {
			s.writer.FenceAcknowledged(s.fences[0].ID, 5)
			s.writer.Folded(9, nil)
			s.take()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, frames.NewWriter(ann))
			s.submit(1)
			s.fail(0)
			do(s)
			testkit.MustEqual(t, len(s.fences), 2)
			testkit.That(t, s.fences[1].Header.Epoch > s.fences[0].Header.Epoch, "higher")
			s.store(s.fences[0].Header) // the first may be stored yet, or again: it is not what is waited for
			s.writer.FenceAcknowledged(s.fences[0].ID, s.at)
			s.take()
			testkit.That(t, !s.writer.Settled(), "still in doubt")
			s.at = max(s.at, 10)
			s.landFence(1)
			testkit.That(t, s.writer.Settled(), "settled")
			testkit.Equal(t, len(s.sent), 2)
		})
	}
}

func TestAnOlderFenceThatHoldsIsNotEnough(t *testing.T) {
	s := newStage(t, frames.NewWriter(ann))
	s.submit(1)
	s.fail(0)
	s.writer.FenceFailed(s.fences[0].ID)
	s.take()
	s.store(s.fences[0].Header)
	s.writer.FenceAcknowledged(s.fences[1].ID, s.at+1)
	s.writer.Folded(s.at+1, nil) // where the second is said to be, there is none
	s.take()
	testkit.That(t, !s.writer.Settled(), "still in doubt")
	testkit.Equal(t, len(s.fences), 3)
}

// C2: an idempotent producer is written for by the newest claim only.
func TestAClaimBeginsWithAFence(t *testing.T) {
	s := newStage(t, frames.NewClaim(pump, 77, 5<<32|3))
	s.submit(2)
	testkit.Equal(t, len(s.sent), 0, "nothing is sent before the claim holds")
	testkit.Equal(t, s.fences[0].Header.Epoch, 6<<32|77)
	s.store(fence(pump, 9<<32|1, 0)) // an earlier claim that the fold had not seen
	s.landFence(0)
	testkit.MustEqual(t, len(s.fences), 2)
	testkit.Equal(t, s.fences[1].Header.Epoch, 10<<32|77)
	s.landFence(1)
	testkit.MustEqual(t, len(s.sent), 1)
	s.land(0)
	s.fates(frames.Stored, frames.Stored)
}

func TestAnotherClaimEndsAWriter(t *testing.T) {
	rival := fence(pump, 20<<32|1, 0)
	for name, tt := range map[string]struct {
		do   func(s *stage)
		want []frames.Fate
	}{
		"while frames are on their way": {func(s *stage) {
			s.store(s.sent[0].Header)
			s.store(rival)
			s.store(s.sent[1].Header)
		}, []frames.Fate{frames.Stored, frames.Displaced, frames.Displaced}},
		"in doubt, also where its own fence comes later": {func(s *stage) {
			s.fail(0)
			s.store(rival)
			s.landFence(1)
		}, []frames.Fate{frames.Displaced, frames.Displaced, frames.Displaced}},
		"after it was given up": {func(s *stage) {
			s.writer.GiveUp()
			s.take()
			s.store(rival)
			s.writer.Submit(frames.Batch{Events: 1})
			s.take()
			s.answers = s.answers[:3]
		}, []frames.Fate{frames.Uncertain, frames.Uncertain, frames.Uncertain}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, frames.NewClaim(pump, 77, 0))
			s.landFence(0)
			s.submit(3)
			sent := len(s.sent)
			tt.do(s)
			s.fates(tt.want...)
			testkit.That(t, s.writer.Lost() && s.writer.Settled() && s.writer.Idle(), "over")
			testkit.Equal(t, len(s.sent), sent, "nothing is sent again")
			s.answers = nil
			ticket := s.writer.Submit(frames.Batch{Events: 1})
			s.take()
			testkit.Equal(t, s.answers[0].Ticket, ticket)
			testkit.Equal(t, s.answers[0].Fate, frames.Displaced, "what comes later")
		})
	}
}

// The claim has held and was overtaken before its acknowledgement came.
func TestAClaimMayBeLostBeforeItIsKnownToHold(t *testing.T) {
	s := newStage(t, frames.NewClaim(pump, 77, 0))
	s.submit(1)
	at := s.store(s.fences[0].Header)
	s.store(fence(pump, 20<<32|1, 0))
	s.writer.FenceAcknowledged(s.fences[0].ID, at)
	s.take()
	s.fates(frames.Displaced)
	testkit.Equal(t, len(s.sent), 0)
}

// C5: what is given up is answered at once, and never sent again.
func TestGivingUp(t *testing.T) {
	s := newStage(t, frames.NewWriter(ann))
	s.submit(frames.WindowFrames + 1)
	s.land(0) // which makes room for the last
	s.submit(1)
	s.writer.GiveUp()
	s.take()
	want := []frames.Fate{frames.Stored}
	for range frames.WindowFrames {
		want = append(want, frames.Uncertain)
	}
	s.fates(append(want, frames.Unsent)...)
	s.store(s.sent[1].Header)
	s.writer.Submit(frames.Batch{Events: 1})
	s.take()
	s.landFence(0)
	testkit.MustEqual(t, len(s.sent), frames.WindowFrames+2, "only what was submitted later is sent")
	testkit.Equal(t, len(s.sent[frames.WindowFrames+1].Batches), 1)
	s.land(frames.WindowFrames + 1)
	s.fates(append(want, frames.Unsent, frames.Stored)...)

	s.writer.GiveUp()
	testkit.That(t, s.writer.Settled(), "with nothing on its way there is no doubt")
}

func TestLateNewsIsIgnored(t *testing.T) {
	s := newStage(t, frames.NewWriter(ann))
	s.submit(1)
	s.land(0)
	s.acknowledge(0, 99)
	s.fail(0)
	s.writer.FenceAcknowledged(77, 99)
	s.writer.FenceFailed(77)
	s.store(s.sent[0].Header) // the frame that has counted, once more
	testkit.That(t, s.writer.Settled(), "no doubt")
	s.fates(frames.Stored)
}
