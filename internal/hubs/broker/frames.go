package broker

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Frames is what a broker offers to those who send and read frames, which are batches in a form of their
// own. All methods may be called by many goroutines at once.
type Frames struct {
	broker  *Broker
	holdups holdups
	// tails are those that are to be looked at again.
	tails chan tailLook
}

// FrameTarget says where frames go.
type FrameTarget struct {
	Partition int
	// Account is who publishes, as ProducerConfig's.
	Account string
	// Quota and Created are as those of Target.
	Quota   *quota.Meter
	Created time.Time
	// Verify says whether the transaction goes on that frames of eventlog.FormTransaction are part of, in this
	// partition; its error is given back. It is asked once in each transaction, and perhaps more often.
	Verify func(ctx context.Context) error
}

// PendingFrames are frames under way, as Pending is events.
type PendingFrames struct{ frames []Pending }

// SubmitFrames submits frames to a partition of a hub, in order and without waiting. Their bytes may be
// used again when it returns. All of them are of one producer, or of none.
//
// Those of a producer are stored once, as by Producer.Submit; a repeat is answered with the position that
// it has. There is nobody who begins the producer's epochs: each begins with its first frame, and where
// the producer is known that has number 0. After an error some may be stored all the same: who sends
// all of them again stores none twice.
//
// Of those without one a prefix is stored, whatever fails.
//
// Errors: *NotFoundError, *quota.Error, ErrProducerFenced, ErrOutOfOrder, eventlog.ErrForm for what are no
// frames of one producer, and the engine's. It may have to wait as Producer.Submit and Submit have to.
func (f *Frames) SubmitFrames(ctx context.Context, name string, to FrameTarget, frames []eventlog.Batch) (*PendingFrames, error) {
	var p *PendingFrames
	err := checkFrames(frames)
	if err != nil {
		err = fmt.Errorf("publish to hub %.64q: %w", name, err)
	} else {
		var h *hub
		err = eventlog.Again(func() (err error) {
			if h, err = meant(ctx, f.broker, name, to.Created); err == nil {
				p, err = submitFrames(ctx, f.broker, h, to, frames)
			}
			return err
		}, eventlog.ErrFenced, eventlog.ErrRemoved)
		err = f.broker.gone(h, err)
	}
	if err != nil {
		f.broker.metrics.failed(err)
		return nil, err
	}
	return p, nil
}

// checkFrames refuses what no engine stores, what are no frames, and producers of the yard's own.
func checkFrames(frames []eventlog.Batch) error {
	if _, err := eventlog.CheckAll(frames); err != nil {
		return err
	}
	of := frames[0].Producer
	for i := range frames {
		who := frames[i].Producer
		switch {
		case frames[i].Form == eventlog.FormEvents:
			return fmt.Errorf("%w: single events are no frame", eventlog.ErrForm)
		case frames[i].Form == eventlog.FormControl:
			return fmt.Errorf("%w: transactions are ended by EndTransaction", eventlog.ErrForm)
		case frames[i].Form == eventlog.FormTransaction && !who.Set:
			return fmt.Errorf("%w: it is of a transaction, but not of a producer", eventlog.ErrForm)
		case who.Set != of.Set || who.ID != of.ID || who.Epoch != of.Epoch:
			return fmt.Errorf("%w: frames of several producers, submit those of each apart", eventlog.ErrForm)
		}
	}
	if of.Set && of.ID < 0 {
		return fmt.Errorf("producer %d: ids below 0 are the yard's own: %w", of.ID, ErrProducerFenced)
	}
	return nil
}

// submitFrames hands frames to the engine once, or to the ledger of their producer.
func submitFrames(ctx context.Context, b *Broker, h *hub, to FrameTarget, frames []eventlog.Batch) (*PendingFrames, error) {
	if to.Partition < 0 || to.Partition >= h.Partitions {
		return nil, &NotFoundError{Kind: KindPartition, Hub: h.Name, Name: strconv.Itoa(to.Partition), Partitions: h.Partitions}
	}
	if h.broken != nil {
		return nil, h.broken
	}
	if slices.ContainsFunc(frames, func(f eventlog.Batch) bool { return f.Form == eventlog.FormTransaction }) {
		if err := h.begin(ctx, to.Partition); err != nil {
			return nil, err
		}
	}
	p := &PendingFrames{frames: make([]Pending, len(frames))}
	for i := range frames {
		p.frames[i] = Pending{
			broker: b, hub: h, partition: to.Partition, count: frames[i].Count, bytes: frames[i].Bytes(), at: eventlog.NoSequence, verify: to.Verify, account: to.Account,
		}
	}
	submit := p.submit
	if frames[0].Producer.Set {
		submit = p.submitOnce
	}
	if err := submit(ctx, to.Quota, frames); err != nil {
		return nil, p.frames[0].failure(err)
	}
	return p, nil
}

// submit is for frames without a producer.
func (p *PendingFrames) submit(ctx context.Context, by *quota.Meter, frames []eventlog.Batch) (err error) {
	for i := 0; i < len(p.frames) && err == nil; i++ {
		err = p.frames[i].paid.take(&p.frames[i], by)
	}
	var receipts []eventlog.Receipt
	if err == nil {
		receipts, err = p.frames[0].hub.partitions[p.frames[0].partition].SubmitAll(ctx, frames)
	}
	if err != nil {
		for i := range p.frames {
			p.frames[i].paid.refund()
		}
		return err
	}
	for i, r := range receipts {
		p.frames[i].receipt = r
	}
	return nil
}

// submitOnce is for frames with one.
func (p *PendingFrames) submitOnce(ctx context.Context, by *quota.Meter, frames []eventlog.Batch) error {
	l := p.frames[0].broker.ledgers.of(p.frames[0].hub, p.frames[0].partition)
	for i := range frames {
		if err := l.publish(ctx, nil, &p.frames[i], by, frames[i]); err != nil {
			return err
		}
	}
	return nil
}

// Start has the frames stored without waiting for it, and neither blocks nor fails: who submits to
// several partitions starts all of them before waiting for the first. It is not to be called after Wait.
func (p *PendingFrames) Start() {
	for i := range p.frames {
		if r := p.frames[i].receipt; r != nil { // what has a producer starts by itself
			r.Start()
		}
	}
}

// Wait returns once all frames are as durable as the engine promises. It is to be called exactly once,
// by any goroutine, also by who does not want to know: it counts what was published. Published is where
// the first frame was stored, and how many events there are in all; the Time of a repeat is zero unless
// it was under way. Errors as for Publish, and ErrRepeatTooOld: all is stored, but nobody remembers where.
func (p *PendingFrames) Wait(ctx context.Context) (Published, error) {
	var all Published
	var err error
	for i := range p.frames {
		stored, failed := p.frames[i].Wait(ctx)
		if i > 0 {
			stored.First, stored.Time = all.First, all.Time
		}
		stored.Count += all.Count
		all, err = stored, cmp.Or(err, failed)
	}
	switch {
	case err != nil:
		return Published{}, err
	case all.First == eventlog.NoSequence:
		return Published{}, p.frames[0].failure(ErrRepeatTooOld)
	}
	return all, nil
}

// NewProducerID chooses an id for a producer of frames, which begins with its first frame. It is random,
// so that no two have the same and nothing has to be stored.
func (*Frames) NewProducerID() int64 { return rand.Int64() }

// Span gives the first number that a partition keeps and the one that its next event will get, whether or not all between
// can be read by everybody. Errors as for Partition.
func (f *Frames) Span(ctx context.Context, hub, partition string) (first, next eventlog.Sequence, err error) {
	h, number, err := f.broker.locate(ctx, hub, partition)
	if err != nil {
		return 0, 0, err
	}
	return f.span(ctx, h, number)
}

func (f *Frames) span(ctx context.Context, h *hub, number int) (first, next eventlog.Sequence, err error) {
	bounds, err := h.partitions[number].Bounds(ctx)
	if err != nil {
		return 0, 0, f.broker.gone(h, fmt.Errorf("read %s/%d: %w", h.Name, number, err))
	}
	return h.begins(number, bounds).First, bounds.Next, nil
}

// RawCursor opens a reader of a partition that gives batches of every form as they are stored, for who
// sends frames on as they came. Errors as for Cursor.
func (f *Frames) RawCursor(ctx context.Context, hub, partition string, at eventlog.Position) (eventlog.Cursor, error) {
	h, number, err := f.broker.locate(ctx, hub, partition)
	if err != nil {
		return nil, err
	}
	cursor, err := h.open(ctx, number, at)
	if err != nil {
		return nil, f.broker.gone(h, fmt.Errorf("read %s/%s: %w", h.Name, partition, err))
	}
	return cursor, nil
}
