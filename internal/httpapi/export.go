package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/eventyard/eventyard/internal/eventlog"
)

// errClientGone: the client left, or took nothing for too long.
var errClientGone = errors.New("client is gone")

// export writes all events from the start up to the ends as they are now, as JSON
// lines, partition after partition.
func (d *Door) export(w http.ResponseWriter, r *http.Request, q hubQuery) error {
	ends, err := d.ends(r.Context(), q)
	if err != nil {
		return err
	}
	ctx, cancel := d.untilStopping(r)
	defer cancel()
	out := newStream(w, "application/x-ndjson", d.cfg.WriteTimeout)
	left := q.count
	for i, partition := range q.partitions {
		err := d.exportPartition(ctx, out, q, partition, ends[i], &left)
		if err != nil {
			d.breakOff(ctx, out, q.hub, err)
		}
		if q.count > 0 && left == 0 {
			break
		}
	}
	_ = out.flush() // who is gone needs no rest
	return nil
}

// ends finds out how far to read, and refuses while there is still a status to refuse
// with: once the first line is out, it is too late for a 404 or a 416.
func (d *Door) ends(ctx context.Context, q hubQuery) ([]eventlog.Sequence, error) {
	if _, err := d.cfg.Broker.Group(ctx, q.hub, q.group); err != nil {
		return nil, err
	}
	ends := make([]eventlog.Sequence, len(q.partitions))
	for i, partition := range q.partitions {
		info, err := d.cfg.Broker.Partition(ctx, q.hub, partition)
		if err != nil {
			return nil, err
		}
		if asked, ok := q.from.of(partition).Sequence(); ok && asked > info.Last+1 {
			return nil, &eventlog.PositionError{Asked: asked, Last: info.Last}
		}
		ends[i] = info.Last
	}
	return ends, nil
}

// exportPartition writes one partition up to and with the event numbered last. left,
// where the reading has a count, is how many more are wanted.
func (d *Door) exportPartition(ctx context.Context, out *stream, q hubQuery, partition string, last eventlog.Sequence, left *int) error {
	cursor, err := d.cfg.Broker.Cursor(ctx, q.hub, q.group, partition, q.from.of(partition))
	if err != nil {
		return err
	}
	defer cursor.Close()
	for cursor.Place() <= last {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		run, err := cursor.TryNext()
		if err != nil {
			return err
		}
		if len(run.Events) == 0 {
			return nil // retention has overtaken the end
		}
		for i := range run.Events {
			if run.First+eventlog.Sequence(i) > last {
				return nil
			}
			line := q.format.appendEvent(out.scratch[:0], partition, run, i)
			if err := out.write(append(line, '\n')); err != nil {
				return fmt.Errorf("%w: %w", errClientGone, err)
			}
			if *left--; *left == 0 {
				return nil
			}
		}
	}
	return nil
}

// breakOff ends an answer that cannot be finished. The status has been sent long ago,
// so the last line says why, and the connection is cut, so that no client takes the
// half for the whole.
func (d *Door) breakOff(ctx context.Context, out *stream, hub string, err error) {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if errors.Is(err, errClientGone) {
		panic(http.ErrAbortHandler)
	}
	d.logOurs("reading a hub broke off", err, "hub", hub)
	if line, err := json.Marshal(map[string]problem{"problem": judge(err)}); err == nil {
		_ = out.write(append(line, '\n'))
		_ = out.flush()
	}
	panic(http.ErrAbortHandler)
}
