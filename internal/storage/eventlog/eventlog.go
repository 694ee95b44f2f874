// Package eventlog says what a partitioned event log is: the contract that every
// engine keeps and every service builds on. It holds no I/O. The conformance suite
// in logtest is the contract's other half; an engine is one when it passes.
//
// Two kinds of engine are meant: one that writes files on this machine, and one
// whose partitions are replicated streams elsewhere. So nothing here speaks of
// files, an append may end in doubt, and a partition may be served by another node.
package eventlog

import (
	"context"
	"fmt"
	"time"
)

// Sequence numbers the events of one partition: dense, increasing, the first is 0.
// It is also the event's offset, written in decimal.
type Sequence int64

// NoSequence stands where there is no event.
const NoSequence Sequence = -1

// PartitionID names one partition of one log.
type PartitionID struct {
	// Log is the log's storage name: 1 to 120 of a-z, 0-9, '-' and '_', beginning with a letter or
	// digit. It is never used twice: who deletes and creates anew chooses another name.
	Log string
	// Number counts from 0.
	Number int
}

func (id PartitionID) String() string { return fmt.Sprintf("%s/%d", id.Log, id.Number) }

// MaxBatchBytes is the most a batch may measure, by [Batch.Bytes]. The largest publication of all
// fits, which is one to a topic: 1,536,000 bytes in 5,000 events, with what each is stored with. And
// it is small enough to be one message of a replicated stream.
const MaxBatchBytes = 3 << 20

// MaxKeyBytes is the most a partition key may measure.
const MaxKeyBytes = 1<<16 - 1

// Event is one event as the log keeps it. The log never looks inside.
type Event struct {
	// Key is the partition key; empty means none.
	Key []byte
	// Message is the event's encoded AMQP sections: header without delivery-count,
	// message annotations without the broker's own, bare message, footer.
	Message []byte
}

// Producer marks a batch of an idempotent producer. The zero value means none.
type Producer struct {
	ID    int64
	Epoch int16
	// First is the producer's own number of the batch's first event.
	First int32
	// Set tells a real producer from the zero value.
	Set bool
}

// Batch is what is appended: stored whole or not at all, in order.
type Batch struct {
	// Events are the batch's, if its form is FormEvents.
	Events   []Event
	Producer Producer
	// Claim is the producer's, where there is one; see [Partition.Claim].
	Claim Claim

	// Form, if it is not the zero value FormEvents, says that the batch is a frame: Count events in
	// a form of their own, in Raw.
	Form  Form
	Raw   []byte
	Count int
	// MaxTime is the greatest create time of a frame's events, in whole milliseconds. The zero time,
	// and all single events, have the enqueued time.
	MaxTime time.Time
	// Place fills in what a frame holds of its own place: the number of its first event and the
	// enqueued time in milliseconds. What a run gives has been placed. It is called with a copy of
	// Raw, by the engine that stores it or whenever it is read, with locks of the engine held: it
	// neither waits nor uses the engine, changes no lengths, and depends on nothing but its
	// arguments. Nil means that there is nothing to fill in.
	Place func(raw []byte, first Sequence, ms int64)
}

// Bytes is the room the batch's keys and messages take, plus a little for each event; of a frame the
// length of Raw.
func (b Batch) Bytes() int {
	n := len(b.Raw)
	for i := range b.Events {
		n += EventOverheadBytes + len(b.Events[i].Key) + len(b.Events[i].Message)
	}
	return n
}

// EventOverheadBytes is what [Batch.Bytes] adds for each event.
const EventOverheadBytes = 8

// Run is a stretch of consecutive events that were appended together, as a cursor
// gives it: a whole batch, or the rest of one when the cursor began inside it.
type Run struct {
	// First is the number of Events[0]; Events[i] has First+i. Of a frame it is that of the first
	// event that is given.
	First Sequence
	// Time is when the batch was enqueued, in whole milliseconds; it never goes
	// backwards inside a partition.
	Time time.Time
	// Producer is the batch's, with First moved to the run's.
	Producer Producer
	Events   []Event

	// Form, if it is not FormEvents, says that the run is a frame: Raw is the whole of it, with Count
	// events, of which Skip come before First. The cursor began inside it, or they were given.
	Form        Form
	Raw         []byte
	Count, Skip int
	// MaxTime is the greatest create time of the frame's events; the zero time for events.
	MaxTime time.Time
}

// Next is the number that follows the run.
func (r Run) Next() Sequence { return r.First + Sequence(r.Len()) }

// Appended tells where a batch was stored.
type Appended struct {
	First Sequence
	Time  time.Time
}

// Retention says when events may be removed. Zero fields keep for ever.
type Retention struct {
	// Age removes events enqueued longer ago than this.
	Age time.Duration
	// Bytes removes the oldest events while the partition holds more.
	Bytes int64
}

// Bounds is what a partition holds now.
type Bounds struct {
	// First is the oldest event kept, Next the number the next event will get. They
	// are equal when the partition is empty.
	First, Next Sequence
	// LastTime is the newest event's enqueued time, also when retention has removed
	// it; the zero time when there never was one.
	LastTime time.Time
	// Bytes is the storage in use, as the engine counts it.
	Bytes int64
	// Form is that of the newest batch, if FormKnown. An engine says it where it need not read for it, so that
	// it may be known at one time and not at another.
	Form      Form
	FormKnown bool
}

// Empty reports whether there is nothing to read.
func (b Bounds) Empty() bool { return b.First == b.Next }

// Last is the newest number ever given, NoSequence if none was.
func (b Bounds) Last() Sequence { return b.Next - 1 }

// Engine stores logs. All methods may be called by many goroutines at once. Where storage is
// elsewhere, every method that takes a context may answer ErrUnavailable, of engines, partitions and
// cursors alike: it did nothing, and whoever goes on waits a little and calls again.
type Engine interface {
	// Provide makes a log, or changes it. It is called before the log is used, by each process that
	// uses it and at each start, since an engine need not remember it for longer than it is open; and
	// again where the retention is to be another. It can be repeated: the newest call's retention
	// counts for all partitions, from now on; their number only rises, so that fewer than before
	// change nothing; and the kind stays that of the first call. When it returns, this is as durable
	// as the engine needs it to be. Where nothing is new to the engine it costs no I/O, else it may
	// block, until ctx ends; no matter how many partitions there are, it is one step for each log.
	//
	// Errors: ErrRemoved, ErrClosed, ErrUnavailable, ctx's, or that of the storage. After the last
	// three it may have been done or not: call it again.
	Provide(ctx context.Context, log string, shape Shape) error

	// Partition gives the handle of a partition, which comes into being with its
	// first use. It does no I/O, so ten thousand handles cost little. The same id
	// gives the same partition. Retention covers those that have a handle.
	//
	// The log need not have been provided yet. As long as it was not, an engine either answers every
	// use of the partition with ErrUnavailable, or serves it and removes nothing but by Trim and
	// Remove. A number that a provided log does not have is an error, here or at the first use.
	Partition(id PartitionID) (Partition, error)

	// Remove deletes all partitions of a log, for good. Their handles and cursors answer ErrRemoved
	// from then on, and so does Partition for that log: a first use, also on a node that has not
	// heard of the removal, must not bring it back. Removing what is not there is no error, so that
	// an interrupted removal can be done again.
	Remove(ctx context.Context, log string) error

	// Run does the engine's background work (retention, late syncs) until ctx ends.
	// Appending and reading work without it.
	Run(ctx context.Context) error

	// Close lets appends under way finish, then makes every call answer ErrClosed.
	Close() error
}

// Partition is one ordered sequence of events. All methods may be called by many
// goroutines at once.
type Partition interface {
	// Submit gives the batch its place behind all earlier ones and returns without
	// waiting for the storage. Nothing is promised until the receipt says so. The
	// batch's bytes have been copied when it returns: listeners use their buffers again. It
	// waits, until ctx ends, only while too much is under way already. Somebody has to
	// call Wait or Start on the receipt for the batch to make progress.
	//
	// Errors: ErrTooLarge, ErrEmptyBatch, ErrForm, ErrNoSpace, ErrUnavailable, ErrRemoved,
	// ErrClosed, ctx's, or that of the storage. After any of them nothing was stored.
	Submit(ctx context.Context, b Batch) (Receipt, error)

	// SubmitAll is Submit for batches that follow each other, at most MaxSubmitBytes together. After
	// an error none of them was submitted. Else each has a receipt with its own number; they are
	// stored in order, and what is stored of them is always a prefix, whatever fails: once the
	// receipt of one says that it was not stored, so do those behind it. An engine whose partitions
	// have several writers may store batches of others between them.
	SubmitAll(ctx context.Context, batches []Batch) ([]Receipt, error)

	// Cursor opens a reader at a position, which gives batches of every form; see EventsOnly. A number
	// that retention has removed means the oldest kept. One past the end is a *PositionError. Latest is
	// fixed when Cursor returns: it gives every event submitted after that.
	Cursor(ctx context.Context, at Position) (Cursor, error)

	// Bounds tells what there is to read. Only what was acknowledged counts, and all that
	// this process has seen acknowledged. Where storage is elsewhere it may be old by a moment: what
	// was acknowledged to another process just now can be missing.
	Bounds(ctx context.Context) (Bounds, error)

	// Sealed is Bounds, proven: whatever was acknowledged to anyone before the call lies below Next.
	// It is for who is about to forget what it knows of numbers from Next on, since they will be given
	// to other events. It may cost a write, of which readers see nothing. Errors: as of Submit.
	Sealed(ctx context.Context) (Bounds, error)

	// Peek is what this process knows of the bounds, Bytes left out: never less than what it has seen
	// acknowledged, or was given by a cursor. It does no I/O and never waits for any. Before the
	// partition's first use here it is the zero value; after its end it stays what it was.
	Peek() Bounds

	// Claim makes the caller's process the only one that appends for a producer: batches of that
	// producer that others have submitted, or submit from now on, with an older claim or with none,
	// are below the claim's Next, or never stored. Whoever claims reads up to there and knows what the
	// producer has stored; that stays so for as long as the claim holds. Another process that claims
	// ends it: batches with it are ErrFenced from then on. Whether an earlier claim of the same process
	// holds any longer is not said. A producer that nobody has claimed needs no claim. It may cost a
	// write. Errors: as of Submit.
	Claim(ctx context.Context, producer int64) (Claim, error)

	// Sole: no process but this one can append to the partition, so that all it holds beyond what
	// there was at first was appended here. It does no I/O, and does not change.
	Sole() bool

	// Trim allows everything below the number to be removed. The engine may keep
	// some of it for a while, and never removes what is at or above.
	Trim(ctx context.Context, below Sequence) error
}

// Receipt is the promise of one submitted batch.
type Receipt interface {
	// Start has the batch stored without waiting for it, and neither blocks nor fails. Who commits to
	// many partitions at once starts all of them before waiting for the first, and who does not want
	// to know the outcome starts only. It is not to be called after Wait.
	Start()

	// Wait returns once the batch is as durable as the engine promises, and is to be called at most
	// once. A write under way is not interrupted by ctx. When a batch is refused, those submitted
	// behind it before anyone was told are refused too; one submitted later may be stored, so that
	// who pipelines and wants order waits for what is under way before it goes on after a refusal.
	// Errors: ErrNoSpace, ErrUnavailable, ErrFenced, ErrRemoved, ErrClosed mean that nothing was
	// stored, unless the error is ErrUncertain as well; ErrUncertain, or ctx's own error, that the batch may or may not be stored, whole, now or a
	// little later. Nothing in doubt becomes readable before its fate is settled. After
	// ErrUncertain, what a Bounds asked for later does not show never becomes readable in this
	// process, and never at all once a batch submitted after that is stored: who looks, does not
	// find and appends again stores once.
	Wait(ctx context.Context) (Appended, error)
}

// Cursor reads a partition forward. One goroutine uses it at a time. What a run
// holds stays valid until the next call on the cursor.
type Cursor interface {
	// Next waits until there is something at the cursor's place, gives it and moves past it. When
	// retention has overtaken the cursor it goes on at the oldest event kept. Errors: ErrRemoved,
	// ErrClosed, *CorruptError, or ctx's. An error moves nothing.
	Next(ctx context.Context) (Run, error)

	// TryNext is Next without the waiting: at the end it gives a run without events, by Run.Len. The
	// end is never before what this process has seen acknowledged.
	TryNext(ctx context.Context) (Run, error)

	// TryNextAll is TryNext for as many runs as one read of the storage gives, appended to to. They
	// measure at most max bytes together, as Batch.Bytes does, but there is at least one where there
	// is something; where there is nothing to comes back as it was. All of them stay valid until the
	// next call. An error behind a run is left to the next call.
	TryNextAll(ctx context.Context, to []Run, max int) ([]Run, error)

	// Extents tells what comes next, from headers alone, and moves nothing: as many runs as measure
	// at most max bytes together, but at least one where there is something, appended to to. So who
	// has to say how long an answer is before it sends it need not have it in memory. What is read
	// then is just that, unless retention overtakes the cursor or what is stored is damaged, which
	// headers do not tell. Errors are those of TryNext.
	Extents(ctx context.Context, to []Extent, max int) ([]Extent, error)

	// Rest gives back the memory that the cursor reads into, until the next call: for who has many
	// cursors, and reads few of them at a time. What a run holds ends with it.
	Rest()

	// Await has wake called, once, when Next has something to say: at once if it has already. It is
	// called with locks of the engine held, so that it must neither wait nor use the engine. stop
	// takes it back, also when the cursor is closed, which does not end it; a call may be under way
	// when stop returns. Waker waits so at many cursors, which is how one goroutine is told of many
	// partitions.
	Await(wake func()) (stop func())

	// At is the number of the next event to be given.
	At() Sequence

	// Close frees the cursor. Safe twice.
	Close() error
}
