package frames

import (
	"slices"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Limits of a writer.
const (
	// WindowFrames is how many frames of a partition a writer has on their way at once.
	WindowFrames = 8
	// GatherBytes is the most that batches are gathered to in one frame. A larger batch is a frame
	// by itself.
	GatherBytes = 512 << 10
	// LargeBytes is what is worth a frame of its own, however much is on its way.
	LargeBytes = 64 << 10
)

// Writer is what one writer of one partition has on its way, as a plain state machine: inputs say
// what has happened, and [Writer.Take] gives what is to be done. It is used by one goroutine at a
// time, waits for nothing and knows no clock.
//
//	          submitted      acknowledged, rising, and counted by the fold
//	(queue) ───────────► (window) ───────────────────────────────────► stored
//	   ▲                    │ failed, or falling, or void: doubt
//	   │ void               ▼
//	   └───── (fenced at f, and folded up to f) ── counted ──────────► stored
//
// Frames are sent while the window has room; what is submitted meanwhile gathers in the queue. Small
// batches gather there also while more of them are on their way than wait: a small message costs the
// servers about as much as a large one. Of two senders who wait for their answers each has a frame
// of its own; of many, half share one frame and half another.
//
// A frame that is acknowledged has been stored, but maybe behind one that was not, and so is void; or
// it was stored twice. The fold shows what it is, and has the numbers: a batch is confirmed when
// its frame is acknowledged and counted, and so are all before it.
//
// Where that does not come about the writer is in doubt, sends nothing but fences, each with a
// higher epoch, until one is acknowledged, at f. Once the fold has reached f it has shown all
// frames of lower epochs that will ever count. The others are void for ever, and are sent again in
// their order, in the epoch of that fence.
//
// The window of an idempotent producer may be fenced by another node's: then it is lost. What has
// counted is confirmed, the rest is refused, and nothing is ever sent again, since the other node
// may be storing the same batches.
type Writer struct {
	id   WriterID
	salt uint32
	mode mode
	// claiming: no fence of this writer has held yet, and nothing was sent.
	claiming bool
	epoch    Epoch
	q        uint64 // of the next frame

	queue      []submitted
	queueBytes int
	flights    []flight // all of this epoch, in order; in doubt, those whose fate is open
	confirmed  StreamSeq
	folded     StreamSeq

	fence   fenceFlight // the newest; in doubt only
	highest Epoch       // of all fences sent or seen
	lastID  FrameID
	lastTkt Ticket
	out     Actions
}

type mode uint8

const (
	open mode = iota
	inDoubt
	lost
)

// Ticket names a submitted batch. They rise.
type Ticket uint64

// FrameID names a frame or fence on its way; no two of a writer are alike.
type FrameID uint64

type submitted struct {
	ticket Ticket
	batch  Batch
}

// flight is a frame on its way.
type flight struct {
	id      FrameID
	q       uint64
	content []submitted
	// abandoned: its batches have been answered, and are not to be sent again.
	abandoned bool
	acked     StreamSeq // 0: not yet
	verdict   Verdict   // once the fold has counted it
}

type fenceFlight struct {
	id    FrameID
	epoch Epoch
	acked StreamSeq // 0: not yet
	held  bool      // the fold has seen it hold
}

// NewWriter makes that of a process. There is one for each partition for as long as the process
// runs, since it begins as an unknown writer does. A process that has dropped its writer claims.
func NewWriter(id WriterID) *Writer { return &Writer{id: id} }

// NewClaim makes one that begins with a fence: that of an idempotent producer, or of a process that
// had another writer before. The salt is random and not used again. It is given the highest epoch
// that the fold knows; where another claim turns out to be higher it tries again.
func NewClaim(id WriterID, salt uint32, known Epoch) *Writer {
	w := &Writer{id: id, salt: salt, mode: inDoubt, claiming: true, highest: known}
	w.sendFence()
	return w
}

// Actions is what is to be done. Frames and fences may be sent in any order and concurrently with
// other writers'; those of one Take best in the order given, or they are void and sent again.
type Actions struct {
	Frames  []SendFrame
	Fences  []SendFence
	Answers []Answer
}

// SendFrame wants a data frame written with these batches and AppendData; base and time are those
// of Partition.Stamp, as of when it is written. It ends in Acknowledged or Failed.
type SendFrame struct {
	ID      FrameID
	Header  Header // writer, epoch and q
	Batches []Batch
}

// SendFence wants a fence written, likewise. It ends in FenceAcknowledged or FenceFailed; the latter
// sends the next one, so that whoever drives the writer decides on the pause between them.
type SendFence struct {
	ID     FrameID
	Header Header // writer and epoch
}

// Answer is what became of a batch. There is one for each ticket.
type Answer struct {
	Ticket Ticket
	Fate   Fate
	// First is the number of the first event of a batch that is stored, and Time that of all its
	// events, in milliseconds.
	First eventlog.Sequence
	Time  int64
}

// Fate is what became of a submitted batch.
type Fate uint8

// The fates.
const (
	// Stored: it has its numbers, for good.
	Stored Fate = iota + 1
	// Displaced: another has claimed the writer. Nothing was stored.
	Displaced
	// Unsent: it was given up before anything of it was stored. Nothing ever will be.
	Unsent
	// Uncertain: it was given up on its way. Once the writer is settled it is known to readers, or
	// never will be.
	Uncertain
)

// Submit gives the batch its place behind all before it. Its bytes must not change until it is
// answered.
func (w *Writer) Submit(b Batch) Ticket {
	w.lastTkt++
	if w.mode == lost {
		w.answer(w.lastTkt, Displaced)
		return w.lastTkt
	}
	w.queue = append(w.queue, submitted{ticket: w.lastTkt, batch: b})
	w.queueBytes += b.Bytes()
	return w.lastTkt
}

// Take moves what is to be done into a, in the place of what it held. It fills the window first, so
// that what was submitted since the last Take goes together. To be called after each input.
func (w *Writer) Take(a *Actions) {
	for w.mode == open && w.due() {
		w.sendFrame()
	}
	w.out, *a = Actions{Frames: a.Frames[:0], Fences: a.Fences[:0], Answers: a.Answers[:0]}, w.out
}

// TakeAnswers appends the answers alone to dst, and sends nothing. Those who are answered before Take may
// submit again, and what they submit goes together with what waits.
func (w *Writer) TakeAnswers(dst []Answer) []Answer {
	dst = append(dst, w.out.Answers...)
	w.out.Answers = w.out.Answers[:0]
	return dst
}

// QueueBytes is the size of what waits for the window; whoever submits bounds it.
func (w *Writer) QueueBytes() int { return w.queueBytes }

// Settled is false in doubt: there may be frames in the stream, or on their way to it, of which
// nobody knows yet whether they count.
func (w *Writer) Settled() bool { return w.mode != inDoubt }

// Lost reports that another has claimed this writer. It is of no use any more.
func (w *Writer) Lost() bool { return w.mode == lost }

// Idle reports that nothing waits for an answer.
func (w *Writer) Idle() bool {
	return len(w.queue) == 0 && len(w.flights) == 0 && len(w.out.Answers) == 0
}

// InFlight reports that frames were sent whose fate is open. Where the fold passes over a hole, who has
// none may go on, and who has some gives up.
func (w *Writer) InFlight() bool { return len(w.flights) > 0 }

// due: the head of the queue is to be sent.
func (w *Writer) due() bool {
	if len(w.queue) == 0 || len(w.flights) == WindowFrames {
		return false
	}
	under := 0
	for i := range w.flights {
		under += len(w.flights[i].content)
	}
	return len(w.queue) >= under || w.queueBytes >= LargeBytes
}

// sendFrame makes one frame of the head of the queue.
func (w *Writer) sendFrame() {
	n, size := 1, w.queue[0].batch.Bytes()
	for n < len(w.queue) && size+w.queue[n].batch.Bytes() <= GatherBytes {
		size += w.queue[n].batch.Bytes()
		n++
	}
	w.lastID++
	f := flight{id: w.lastID, q: w.q, content: slices.Clone(w.queue[:n])}
	batches := make([]Batch, n)
	for i := range batches {
		batches[i] = f.content[i].batch
	}
	clear(w.queue[:n]) // the queue does not hold on to what has left it
	w.queue, w.queueBytes = w.queue[n:], w.queueBytes-size
	w.flights = append(w.flights, f)
	h := Header{Kind: KindData, Writer: w.id, Epoch: w.epoch, Q: w.q}
	w.out.Frames = append(w.out.Frames, SendFrame{ID: f.id, Header: h, Batches: batches})
	w.q++
}

func (w *Writer) answer(t Ticket, fate Fate) {
	w.out.Answers = append(w.out.Answers, Answer{Ticket: t, Fate: fate})
}
