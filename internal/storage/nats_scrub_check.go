package storage

import (
	"context"
	"strings"

	"github.com/eventyard/eventyard/internal/storage/jetstream/bodies"
	"github.com/eventyard/eventyard/internal/storage/jetstream/entries"
	"github.com/eventyard/eventyard/internal/storage/jetstream/logs"
	"github.com/eventyard/eventyard/internal/storage/jetstream/scrub"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// check is what judges a stream's messages, and in the end says what it has found.
type check interface {
	scrub.Check
	end(ctx context.Context, r *scrubbing) error
}

// check begins one for a stream, with the sequences to read.
func (r *scrubbing) check(ctx context.Context, name string) (c check, first, last uint64, err error) {
	if stream, is := r.n.streams.Ours(name); is {
		audit, err := logs.NewAudit(ctx, r.n.engine, stream)
		if err != nil {
			return nil, 0, 0, err
		}
		first, last := audit.Bounds()
		return logCheck{audit, name}, uint64(first), uint64(last), nil
	}
	info, err := streamInfo(ctx, r.n.conns.Control, name)
	if err != nil {
		return nil, 0, 0, err
	}
	first, last = info.State.FirstSeq, info.State.LastSeq
	if info.State.Msgs == 0 {
		first = last + 1
	}
	if audit := r.audits[name]; audit != nil {
		return entryCheck{audit, name}, first, last, nil
	}
	return bodyCheck{r.n.bodies.Audit(), name}, first, last, nil
}

// logCheck judges frames and marks.
type logCheck struct {
	*logs.Audit
	name string
}

func (c logCheck) Take(m scrub.Message) (first, next uint64) {
	subject := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	from, to := c.Audit.Take(streams.Message{Seq: streams.Seq(m.Seq), Subject: subject, Data: m.Data})
	return uint64(from), uint64(to)
}

func (c logCheck) end(ctx context.Context, r *scrubbing) error {
	found, more, err := c.End(ctx)
	for _, d := range found {
		f := damage(c.name, uint64(d.Seq), d.Text)
		f.FirstEvent, f.NextEvent = uint64(d.First), uint64(d.Next)
		if f.Log = d.Log; d.Log != "" {
			f.Partition = d.Partition
		}
		r.found(f)
	}
	r.report.Findings += more
	return err
}

// entryCheck judges entries.
type entryCheck struct {
	*entries.Audit
	name string
}

func (c entryCheck) Take(m scrub.Message) (first, next uint64) {
	c.Audit.Take(m.Seq, m.Subject, m.Data)
	return 0, 0
}

func (c entryCheck) end(ctx context.Context, r *scrubbing) error {
	found, more, err := c.End(ctx)
	for _, d := range found {
		f := damage(c.name, d.Seq, d.Text)
		if f.Entry = d.Key; d.Memory {
			f.Kind = MemoryDiffers
		}
		r.found(f)
	}
	r.report.Findings += more
	return err
}

// bodyCheck judges bodies of blobs.
type bodyCheck struct {
	*bodies.Audit
	name string
}

func (c bodyCheck) Take(m scrub.Message) (first, next uint64) {
	c.Audit.Take(m.Seq, m.Subject, m.Data)
	return 0, 0
}

func (c bodyCheck) end(ctx context.Context, r *scrubbing) error {
	found, more, err := c.End(ctx)
	for _, d := range found {
		f := damage(c.name, d.Seq, d.Text)
		f.Body = d.Body
		r.found(f)
	}
	r.report.Findings += more
	return err
}

func damage(stream string, seq uint64, text string) ScrubFinding {
	return ScrubFinding{Kind: Damaged, Stream: stream, FirstMessage: seq, LastMessage: seq, Messages: 1, Partition: -1, Text: text}
}
