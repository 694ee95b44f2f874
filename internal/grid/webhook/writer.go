package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/grid/hops"
	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/transport/egress"
	"github.com/eventyard/eventyard/tracing"
)

// maxKeptBytes is up to where a writer's buffer is kept for the next request.
const maxKeptBytes = 2 << 20

// writer writes one request. It is used for one after another.
type writer struct {
	envelope schema.Envelope
	body     []byte
	names    []byte          // what an id is made of
	values   []string        // of headers; each request has its own
	trace    tracing.Context // of the attempt's span; none: there is none
	free     func()          // gives the writer back, made once
}

var writers sync.Pool

func newWriter() *writer {
	if w, ok := writers.Get().(*writer); ok {
		return w
	}
	w := &writer{}
	w.free = func() {
		// What was an event's must not be kept alive, nor be found by the next.
		w.envelope = schema.Envelope{Extensions: w.envelope.Extensions[:0]}
		clear(w.envelope.Extensions[:cap(w.envelope.Extensions)])
		w.body, w.names, w.values, w.trace = w.body[:0], w.names[:0], nil, tracing.Context{}
		if cap(w.body) <= maxKeptBytes {
			writers.Put(w)
		}
	}
	return w
}

// scan looks at an event.
func (w *writer) scan(o *Order, p *pending.Delivery) error {
	w.envelope.Topic = o.Topic
	if err := w.envelope.Scan(p.Form, p.Event); err != nil {
		return fmt.Errorf("read event %d of %s/%d: %w", p.Sequence, p.Source, p.Partition, err)
	}
	w.envelope.Trace = p.Trace
	return nil
}

// request writes a batch's body, and gives the headers that belong to it.
func (w *writer) request(o *Order, batch []*pending.Delivery, now time.Time) (http.Header, error) {
	first := batch[0]
	if err := w.scan(o, first); err != nil {
		return nil, err
	}
	// What requests have in common, with room for what this one has of its own: five headers of
	// ours, two that the client adds, and three of a signature. To make a map larger than need be
	// costs as much as all that is put into it.
	room := len(o.header) + len(o.dynamic) + 7
	if o.signer != nil {
		room += 3
	}
	header := make(http.Header, room)
	maps.Copy(header, o.header)
	header[headerSubscription] = o.name
	w.values = make([]string, 0, len(o.dynamic)+4)
	if o.output == schema.EventGrid { // the data's version is that of the first event
		w.set(header, headerDataVersion, string(w.envelope.DataVersion))
	}
	for _, d := range o.dynamic { // all events of a Group say the same; what one does not have is left out
		if text, ok := scalar(w.envelope.Field(d.field)); ok {
			w.set(header, d.header, text)
		}
	}
	if w.trace.Valid() {
		w.trace.SetHeader(header)
	} else if len(batch) == 1 { // of several each may have another: they say so themselves
		w.setTrace(header)
	}
	if err := w.write(o, batch, header); err != nil {
		return nil, err
	}
	attempts, passed := 0, 0
	for _, p := range batch {
		attempts, passed = max(attempts, p.Attempts), max(passed, p.Hops)
	}
	header[headerDeliveryCount] = countValue(attempts)
	header[hops.Name] = countValue(passed + 1)
	id := w.identity(batch)
	if len(batch) == 1 {
		w.set(header, headerOutputID, id)
	}
	o.signer.Sign(header, id, now, w.body)
	return header, nil
}

// set sets a header to a value that can stand there; others are left out.
func (w *writer) set(header http.Header, name, value string) {
	if egress.Sendable(name, value) {
		w.values = append(w.values, value)
		n := len(w.values)
		header[name] = w.values[n-1 : n : n]
	}
}

// setTrace hands the trace of an event on: what a CloudEvent says as it says it, or what came beside it.
func (w *writer) setTrace(header http.Header) {
	if trace := w.envelope.Trace; trace.Valid() {
		w.set(header, headerTraceParent, trace.TraceParent())
		if trace.State != "" {
			w.set(header, headerTraceState, trace.State)
		}
		return
	}
	for _, x := range w.envelope.Extensions {
		name := ""
		switch string(x.Name) {
		case "traceparent":
			name = headerTraceParent
		case "tracestate":
			name = headerTraceState
		default:
			continue
		}
		if text, ok := scalar(x.Value); ok && text != "" {
			w.set(header, name, text)
		}
	}
}

// write writes the body: one object for a CloudEvent alone, an array for all else; or in binary
// mode the data, whose attributes are headers. The first event has been scanned.
func (w *writer) write(o *Order, batch []*pending.Delivery, header http.Header) (err error) {
	switch {
	case o.binary:
		return w.writeBinary(header)
	case o.output == schema.CloudEvents && !o.Batched:
		w.body, err = schema.AppendEvent(w.body, &w.envelope, o.output)
		return err
	}
	w.body = append(w.body, '[')
	for i, p := range batch {
		if i > 0 {
			w.body = append(w.body, ',')
			if err := w.scan(o, p); err != nil {
				return err
			}
		}
		if w.body, err = schema.AppendEvent(w.body, &w.envelope, o.output); err != nil {
			return err
		}
	}
	w.body = append(w.body, ']')
	return nil
}

// writeBinary copies the data: it is a part of the event's bytes, which are the caller's again
// before the request has ended.
func (w *writer) writeBinary(header http.Header) error {
	attributes, data, err := schema.Binary(&w.envelope)
	if err != nil {
		return err
	}
	delete(header, "Content-Type")
	for name, values := range attributes {
		if len(values) > 0 && egress.Sendable(name, values[0]) {
			header[name] = values
		}
	}
	w.body = append(w.body, data...)
	return nil
}

// identity names a batch: the same events to the same subscription have the same one, however
// often they are tried. It looks like a UUID, which is what receivers are used to.
func (w *writer) identity(batch []*pending.Delivery) string {
	w.names = w.names[:0]
	for _, p := range batch {
		w.names = append(append(w.names, p.Subscription...), 0)
		w.names = append(append(w.names, p.Source...), 0)
		w.names = append(strconv.AppendInt(w.names, int64(p.Partition), 10), 0)
		w.names = append(strconv.AppendInt(w.names, p.Sequence, 10), 0)
	}
	sum := sha256.Sum256(w.names)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // version 8: whatever its maker likes
	var text [36]byte
	at := 0
	for i, part := range [...][]byte{sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]} {
		if i > 0 {
			text[at] = '-'
			at++
		}
		at += hex.Encode(text[at:], part)
	}
	return string(text[:])
}

// group is what the scanned event's dynamic headers come to, so that different ones differ.
func (w *writer) group(o *Order) string {
	w.names = w.names[:0]
	add := func(field string) {
		text, ok := scalar(w.envelope.Field(field))
		if !ok {
			w.names = append(w.names, '-', 0)
			return
		}
		w.names = strconv.AppendInt(append(w.names, '+'), int64(len(text)), 10)
		w.names = append(append(w.names, ' '), text...)
	}
	for _, d := range o.dynamic {
		add(d.field)
	}
	if o.key.field != "" {
		add(o.key.field)
	}
	return string(w.names)
}
