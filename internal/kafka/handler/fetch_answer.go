package handler

import (
	"context"
	"encoding/binary"
	"errors"
	"net"

	"github.com/eventyard/eventyard/internal/kafka"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

const (
	// readBytes is how much is read at a time.
	readBytes = 1 << 20
	// maxMadeBytes is how much an answer has at most of what is made for it: batches of single events,
	// and batches of Kafka between them. It is in memory as a whole.
	maxMadeBytes = 1 << 20
	// zstdVersion is that of the first fetch whose client may be given zstd.
	zstdVersion = 10
)

// plain tells whether a portion is sent as it is stored.
func (f *fetch) plain(p *portion) bool {
	return p.stretch.plain && f.request.Version >= zstdVersion || p.stretch.bytes == 0
}

// make makes the records that cannot be sent as they are stored, behind buf.
func (f *fetch) make(ctx context.Context, buf []byte) []byte {
	room := f.maxBytes()
	for i := range f.portions {
		if p := &f.portions[i]; f.plain(p) {
			room -= p.stretch.bytes
		}
	}
	first := room == f.maxBytes() // one batch goes out, however large it is
	ends := make([]int, len(f.portions))
	for i := range f.portions {
		from := len(buf)
		if p := &f.portions[i]; p.reader != nil {
			buf = f.makeOne(ctx, p, buf, min(room, maxMadeBytes-from, max(int(p.item.maxBytes), 1)), first)
		}
		room -= len(buf) - from
		first = first && len(buf) == from
		ends[i] = len(buf)
	}
	from := 0
	for i, end := range ends { // now that buf does not move any more
		f.portions[i].records = buf[from:end:end]
		from = end
	}
	return buf
}

// makeOne makes what a portion has to have made.
func (f *fetch) makeOne(ctx context.Context, p *portion, buf []byte, limit int, first bool) []byte {
	from := len(buf)
	if at := p.reader.cursor.At(); p.item.offset < int64(at) {
		buf = record.AppendGap(buf, eventlog.Sequence(p.item.offset), at) // what was passed over
	}
	if f.plain(p) {
		return buf
	}
	if limit <= 0 && !first { // there is no room any more
		p.stretch = stretch{first: p.stretch.first, next: p.stretch.first}
		return buf
	}
	made, err := f.convert(ctx, p, buf, limit, first)
	if err != nil {
		*p = f.fail(ctx, p, err)
		return buf[:from]
	}
	return made
}

// convert reads a portion's stretch, and appends it as batches of Kafka, of at most so many bytes. Of the
// first it is one batch at least. What does not fit is left for the next fetch.
func (f *fetch) convert(ctx context.Context, p *portion, buf []byte, limit int, first bool) ([]byte, error) {
	from, end := len(buf), p.stretch.next
	p.stretch = stretch{first: p.stretch.first, next: p.stretch.first, plain: true, aborted: p.stretch.aborted}
	fits := func(buf []byte) bool { return len(buf)-from <= limit }
	for p.reader.cursor.At() < end && (fits(buf) || len(buf) == from) {
		left := max(limit-(len(buf)-from), 1)
		runs, err := p.reader.cursor.TryNextAll(ctx, f.runs[:0], min(readBytes, left))
		f.runs = runs
		if damage, ok := errors.AsType[*eventlog.CorruptError](err); ok {
			at := p.reader.cursor.At()
			next := f.behind(p, damage, end)
			if buf, err = record.AppendGap(buf, at, next), p.reader.open(ctx, f.broker(), next); err == nil {
				continue
			}
		}
		if err != nil || len(runs) == 0 {
			return buf, err
		}
		for i := range runs {
			if runs[i].First >= end { // more was read than was looked at, and it may not be decided
				return buf, p.reader.open(ctx, f.broker(), runs[i].First)
			}
			longer, err := f.appendRun(p, buf, &runs[i])
			alone := len(buf) == from
			switch {
			case err != nil && alone:
				return buf, err
			case err != nil, !fits(longer) && !(first && alone):
				return buf, p.reader.open(ctx, f.broker(), runs[i].First) // it has been read, but not taken
			}
			buf = longer
			p.events += runs[i].Len()
			p.reader.made = p.reader.made || runs[i].Form == eventlog.FormEvents
		}
	}
	return buf, nil
}

// appendRun appends a run as a batch of Kafka.
func (f *fetch) appendRun(p *portion, buf []byte, run *eventlog.Run) ([]byte, error) {
	if kafkas(run.Form) {
		if f.request.Version < zstdVersion && record.Zstd(run.Raw) {
			return buf, errOldReader
		}
		return append(buf, run.Raw...), nil
	}
	buf, unread := record.AppendRun(buf, *run)
	if unread > 0 {
		f.peer.handler.metrics.damage.Inc()
		f.peer.log.Error("stored events cannot be read and were sent without their contents",
			"hub", p.hub.Name, "partition", p.item.partition, "first", int64(run.First), "events", unread)
	}
	return buf, nil
}

// behind is where to go on behind damage: at the end of the stretch where nothing else is known.
func (f *fetch) behind(p *portion, damage *eventlog.CorruptError, end eventlog.Sequence) eventlog.Sequence {
	f.passed(p, damage)
	if damage.Next > p.reader.cursor.At() {
		return damage.Next
	}
	return end
}

// write sends an answer: its length, then all that it says, with each portion's records between.
func (f *fetch) write(ctx context.Context, w *kafka.Writer, portions []*portion) error {
	topics := byTopic(portions)
	text := answerText{version: f.request.Version, committed: f.committed()}
	text.append(f.sessionID, topics)
	total := len(text.buf)
	for _, p := range portions {
		total += p.bytes()
	}
	if err := w.Open(total); err != nil {
		return err
	}
	at, next := 0, 0
	for _, t := range topics {
		for _, p := range t {
			if err := write(w, text.buf[at:text.cuts[next]]); err != nil {
				return err
			}
			at, next = text.cuts[next], next+1
			if err := f.deliver(ctx, w, p); err != nil {
				return err
			}
		}
	}
	return write(w, text.buf[at:])
}

// write writes a part of an answer. After the last nothing is taken, not even nothing.
func write(w *kafka.Writer, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	_, err := w.Write(p)
	return err
}

// byTopic puts the partitions of a topic together.
func byTopic(portions []*portion) (topics [][]*portion) {
	index := make(map[topic]int)
	for _, p := range portions {
		at, known := index[p.item.topic]
		if !known {
			at = len(topics)
			index[p.item.topic] = at
			topics = append(topics, nil)
		}
		topics[at] = append(topics[at], p)
	}
	return topics
}

// deliver sends a portion's records.
func (f *fetch) deliver(ctx context.Context, w *kafka.Writer, p *portion) error {
	if p.reader == nil {
		return nil
	}
	if err := write(w, p.records); err != nil {
		return err
	}
	if p.stretch.bytes > 0 {
		if err := f.stream(ctx, w, p); err != nil {
			return err
		}
	}
	if p.reader.cursor != nil {
		p.reader.asked = p.reader.cursor.At()
	}
	f.peer.handler.metrics.delivered.add(p.hub, p.events+p.stretch.events)
	return nil
}

// stream sends batches as they are stored: just the bytes that were promised, whatever has become of
// them since.
func (f *fetch) stream(ctx context.Context, w *kafka.Writer, p *portion) error {
	cursor, left, at := p.reader.cursor, p.stretch.bytes, p.stretch.first
	for left > 0 {
		runs, err := cursor.TryNextAll(ctx, f.runs[:0], min(readBytes, left))
		f.runs = runs
		if damage, ok := errors.AsType[*eventlog.CorruptError](err); ok {
			return f.makeUp(w, p, left, at, f.behind(p, damage, p.stretch.next))
		}
		if err != nil {
			return err
		}
		buffers := make(net.Buffers, 0, len(runs))
		for i := range runs {
			if r := &runs[i]; r.First != at || !kafkas(r.Form) || len(r.Raw) > left {
				break // retention has overtaken the reader
			}
			at = runs[i].Next()
			left -= len(runs[i].Raw)
			buffers = append(buffers, runs[i].Raw)
		}
		sent := len(buffers)
		if err := w.WriteBuffers(buffers); err != nil {
			return err
		}
		if sent < len(runs) || sent == 0 {
			return f.makeUp(w, p, left, at, max(cursor.At(), p.stretch.next))
		}
	}
	return nil
}

// makeUp sends what was promised and cannot be: a batch without records, by which the client goes on at
// next, and what looks like one that is cut off. There is room for the first: it stands for a batch.
func (f *fetch) makeUp(w *kafka.Writer, p *portion, left int, at, next eventlog.Sequence) error {
	p.reader.close()
	p.stretch.events = int(at - p.stretch.first)
	gap := record.AppendGap(nil, at, next)
	if err := write(w, gap); err != nil {
		return err
	}
	return write(w, record.AppendCut(nil, left-len(gap)))
}

// answerText is all of an answer but records.
type answerText struct {
	version int16
	// committed: the client reads what is committed only, and wants to know which transactions are not.
	committed bool
	buf       []byte
	// cuts are where the records of each partition belong, in order.
	cuts []int
}

// flexible tells whether lengths are short, and tags follow each structure.
func (a *answerText) flexible() bool { return a.version >= 12 }

// append writes the whole answer.
func (a *answerText) append(session int32, topics [][]*portion) {
	a.int32(0) // throttle time
	if a.version >= 7 {
		a.int16(codeNone)
		a.int32(session)
	}
	a.length(len(topics))
	for _, portions := range topics {
		if t := portions[0].item.topic; t.byID {
			a.buf = append(a.buf, t.id[:]...)
		} else {
			a.string(t.name)
		}
		a.length(len(portions))
		for _, p := range portions {
			a.portion(p)
		}
		a.tags()
	}
	a.tags()
}

// portion writes what is said of a partition.
func (a *answerText) portion(p *portion) {
	a.int32(p.item.partition)
	a.int16(p.code)
	a.int64(p.end)
	a.int64(p.stable)
	if a.version >= 5 {
		a.int64(p.start)
	}
	if a.committed {
		a.length(len(p.stretch.aborted))
		for _, t := range p.stretch.aborted {
			a.int64(t.Producer)
			a.int64(int64(t.First))
			a.tags()
		}
	} else {
		a.length(-1)
	}
	if a.version >= 11 {
		a.int32(-1) // no replica is to be preferred
	}
	if size := p.bytes(); a.flexible() {
		a.length(size)
	} else {
		a.int32(int32(size))
	}
	a.cuts = append(a.cuts, len(a.buf))
	a.tags()
}

func (a *answerText) int16(v int16) { a.buf = binary.BigEndian.AppendUint16(a.buf, uint16(v)) }
func (a *answerText) int32(v int32) { a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(v)) }
func (a *answerText) int64(v int64) { a.buf = binary.BigEndian.AppendUint64(a.buf, uint64(v)) }

// length writes that of a list, or of bytes where these are flexible; -1 means that there is none.
func (a *answerText) length(n int) {
	if a.flexible() {
		a.buf = binary.AppendUvarint(a.buf, uint64(n+1))
	} else {
		a.int32(int32(n))
	}
}

func (a *answerText) string(s string) {
	if a.flexible() {
		a.length(len(s))
	} else {
		a.int16(int16(len(s)))
	}
	a.buf = append(a.buf, s...)
}

func (a *answerText) tags() {
	if a.flexible() {
		a.buf = append(a.buf, 0)
	}
}
