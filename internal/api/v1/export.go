package v1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// errClientGone: the client left, or took nothing for too long.
var errClientGone = errors.New("client is gone")

// export writes all events from the start up to the ends as they are now, as JSON
// lines, partition after partition. Damage is told by a line of its own and does not
// hide what is behind it; but the answer is then not whole, and does not end as one.
func (d *Handler) export(w http.ResponseWriter, r *http.Request, q hubQuery) error {
	ends, err := d.ends(r.Context(), q)
	if err != nil {
		return err
	}
	ctx, cancel, err := d.untilOver(r)
	if err != nil {
		return err
	}
	defer cancel()
	x := &export{hubQuery: q, handler: d, reads: d.cfg.Broker.Reads(q.hub, q.group), out: newStream(w, "application/x-ndjson", d.cfg.WriteTimeout), left: q.count}
	x.out.reading = d.newReading(w, r)
	defer x.out.reading.end()
	for i, partition := range q.partitions {
		if err := x.partition(ctx, partition, ends[i]); err != nil {
			x.breakOff(ctx, err)
		}
		if x.done() {
			break
		}
	}
	if x.damages > 0 {
		x.breakOff(ctx, &frame.Refusal{
			Status: http.StatusInternalServerError,
			Code:   "damaged-events",
			Title:  "Stored events are damaged",
			Detail: fmt.Sprintf("%d stretches of events cannot be read and are left out; all others were given", x.damages),
			Next:   "the lines with a problem and a partition say which",
		})
	}
	_ = x.out.flush() // who is gone needs no rest
	return nil
}

// ends finds out how far to read, and refuses while there is still a status to refuse
// with: once the first line is out, it is too late for a 404 or a 416.
func (d *Handler) ends(ctx context.Context, q hubQuery) ([]eventlog.Sequence, error) {
	if _, err := d.cfg.Broker.Group(ctx, q.hub, q.group); err != nil {
		return nil, err
	}
	ends := make([]eventlog.Sequence, len(q.partitions))
	for i, partition := range q.partitions {
		info, err := d.cfg.Broker.Partition(ctx, q.hub, partition)
		if err != nil {
			return nil, err
		}
		if asked, ok := q.from.of(partition).Sequence(); ok && asked > info.Next {
			return nil, &eventlog.PositionError{Asked: asked, Last: info.Next - 1}
		}
		ends[i] = info.Last
	}
	return ends, nil
}

// export is one such answer under way.
type export struct {
	hubQuery
	handler *Handler
	out     *stream
	reads   prometheus.Counter
	// left, where the reading has a count, is how many more events are wanted.
	left int
	// damages counts the stretches of events that could not be read.
	damages int
}

func (x *export) done() bool { return x.count > 0 && x.left == 0 }

// partition writes one partition up to and with the event numbered last, and goes on
// behind every damage that something readable follows.
func (x *export) partition(ctx context.Context, id string, last eventlog.Sequence) error {
	at := x.from.of(id)
	for lost := eventlog.NoSequence; ; {
		err := x.stretch(ctx, id, at, last)
		damage, ok := errors.AsType[*eventlog.CorruptError](err)
		if !ok {
			return err
		}
		x.damages++
		x.handler.logOurs("reading a hub met damage", err, "hub", x.hub, "partition", id)
		if err := x.report(admin.ProblemLine{Problem: problemOf(judge(err)), Partition: id}); err != nil {
			return err
		}
		if damage.Next <= lost || damage.Next > last {
			return nil
		}
		lost, at = damage.Next, eventlog.At(damage.Next)
	}
}

// stretch writes what there is from a position up to and with last.
func (x *export) stretch(ctx context.Context, id string, at eventlog.Position, last eventlog.Sequence) error {
	cursor, err := x.open(ctx, id, at)
	if err != nil {
		return err
	}
	defer func() { _ = cursor.Close() }()
	for cursor.At() <= last && !x.done() {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if !x.out.reading.share.TryTake(maxRunBytes) {
			_ = cursor.Close()
			if cursor, err = x.open(ctx, id, eventlog.At(cursor.At())); err != nil {
				return err
			}
		}
		run, err := x.next(ctx, id, cursor, last)
		if err != nil {
			return err
		}
		if len(run.Events) == 0 {
			return nil
		}
		x.out.reading.share.Keep(runBytes(run))
		if err := x.write(id, run, last); err != nil {
			return err
		}
	}
	return nil
}

// open opens a cursor once there is memory for what it reads.
func (x *export) open(ctx context.Context, id string, at eventlog.Position) (eventlog.Cursor, error) {
	if err := x.out.reading.hold(ctx, maxRunBytes); err != nil {
		return nil, err
	}
	return x.cursor(ctx, x.handler.cfg.Broker, id, at)
}

// next gives the next run. Where there is none although the end is not reached, either
// retention has overtaken the end, or what is left is no event, or one of a transaction that is not decided, and an
// empty run says so. Or the events are on their way from where they are stored.
func (x *export) next(ctx context.Context, id string, cursor eventlog.Cursor, last eventlog.Sequence) (eventlog.Run, error) {
	run, err := cursor.TryNext(ctx)
	if err != nil || len(run.Events) > 0 {
		return run, err
	}
	info, err := x.handler.cfg.Broker.Partition(ctx, x.hub, id)
	if err != nil {
		return run, err
	}
	if info.First > last || cursor.At() > min(info.Last, last) {
		return run, nil
	}
	return cursor.Next(ctx)
}

func (x *export) write(id string, run eventlog.Run, last eventlog.Sequence) error {
	given := 0
	defer func() { x.reads.Add(float64(given)) }()
	for i := range run.Events {
		if run.First+eventlog.Sequence(i) > last || x.done() {
			return nil
		}
		line := x.format.appendEvent(x.out.scratch().line[:0], id, run, i)
		if err := x.line(line); err != nil {
			return err
		}
		x.left--
		given++
	}
	return nil
}

func (x *export) line(line []byte) error {
	if err := x.out.write(append(line, '\n')); err != nil {
		return fmt.Errorf("%w: %w", errClientGone, err)
	}
	return nil
}

func (x *export) report(l admin.ProblemLine) error {
	line, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("encode problem: %w", err)
	}
	return x.line(line)
}

// breakOff ends an answer that is not whole. The status has been sent long ago, so the last line
// says why, and the connection is cut, so that no client takes the part for the whole.
func (x *export) breakOff(ctx context.Context, err error) {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if errors.Is(err, errClientGone) {
		panic(http.ErrAbortHandler)
	}
	if !as[*frame.Refusal](err) { // damage has been logged where it was met
		x.handler.logOurs("reading a hub broke off", err, "hub", x.hub)
	}
	if x.report(admin.ProblemLine{Problem: problemOf(judge(err))}) == nil {
		_ = x.out.flush()
	}
	panic(http.ErrAbortHandler)
}
