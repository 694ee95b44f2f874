package pending

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/tracing"
)

// The stored form, all numbers as varints, signed ones zigzagged:
//
//	version   1 byte: 1, or 2 where the event has hops, or 3 where attempts are kept, or 4 where there
//	          is a trace beside the event
//	form      1 byte
//	lengths   of subscription, source, last outcome, reason, event: unsigned
//	numbers   partition, sequence, attempts, last status, redrives; from version 2 on hops
//	times     published in Unix milliseconds; alive, last attempt, due as
//	          milliseconds after published
//	attempts  from version 3 on: their number, 1 to 10, unsigned, in version 4 also 0; of each when it began, in
//	          milliseconds after published, how many it took, its status, 1 for a
//	          probe or 0, and, unsigned, the lengths of its outcome and of what was said
//	trace     in version 4: 16 bytes of its id, 8 of the span's, 1 of flags, and, unsigned, the length of
//	          its state
//	texts     in the order of their lengths, outcomes and what was said then, the state last, then the
//	          event, to the end
//
// There is one way only to write a pending delivery: a varint that is longer than it need be, or a
// byte too many, is no pending delivery.
//
// A later form has a higher version, up to maxVersion. Who meets one has gone back to an older
// release: nothing is wrong with the pending delivery, and it must not be thrown away.
const (
	version    = 1
	hopped     = 2
	historied  = 3
	traced     = 4
	maxVersion = 31
)

// maxHeadBytes is the most that stands before the texts.
const maxHeadBytes = 2 + 16*binary.MaxVarintLen64

// traceBytes is what a trace takes beside its state.
const traceBytes = 16 + 8 + 1

// maxAttemptBytes is the most that an attempt takes beside its texts.
const maxAttemptBytes = 6 * binary.MaxVarintLen64

// ErrInvalid: the bytes are not a pending delivery that Append has written.
var ErrInvalid = errors.New("not a stored pending delivery")

// ErrNewer: a newer release has written it, and can read it. It comes with ErrInvalid.
var ErrNewer = errors.New("it is from a newer release: use that again")

// Bytes is about how many bytes Append writes, and never less.
func (p *Delivery) Bytes() int {
	n := maxHeadBytes + traceBytes + len(p.Trace.State) + len(p.Subscription) + len(p.Source) + len(p.LastOutcome) + len(p.Reason) + len(p.Event)
	for i := range p.History {
		n += maxAttemptBytes + len(p.History[i].Outcome) + len(p.History[i].Said)
	}
	return n
}

// version is the lowest that has all there is to say.
func (p *Delivery) version() byte {
	switch {
	case p.Trace.Valid():
		return traced
	case len(p.History) > 0:
		return historied
	case p.Hops > 0:
		return hopped
	}
	return version
}

// Append writes it behind dst. The form begins with a version byte.
func (p *Delivery) Append(dst []byte) []byte {
	dst = slices.Grow(dst, p.Bytes())
	form := p.version()
	dst = append(dst, form, byte(p.Form))
	for _, n := range [...]int{len(p.Subscription), len(p.Source), len(p.LastOutcome), len(p.Reason), len(p.Event)} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	for _, n := range [...]int64{int64(p.Partition), p.Sequence, int64(p.Attempts), int64(p.LastStatus), int64(p.Redrives)} {
		dst = binary.AppendVarint(dst, n)
	}
	if form >= hopped {
		dst = binary.AppendVarint(dst, int64(p.Hops))
	}
	published := p.Published.UnixMilli()
	for _, n := range [...]int64{
		published, p.Alive.UnixMilli() - published, p.LastAttempt.UnixMilli() - published, p.Due.UnixMilli() - published,
	} {
		dst = binary.AppendVarint(dst, n)
	}
	if form >= historied {
		dst = p.appendHistory(dst, published)
	}
	state := "" // of none there is none
	if form >= traced {
		state = p.Trace.State
		dst = append(append(append(dst, p.Trace.TraceID[:]...), p.Trace.SpanID[:]...), p.Trace.Flags)
		dst = binary.AppendUvarint(dst, uint64(len(state)))
	}
	dst = append(dst, p.Subscription...)
	dst = append(dst, p.Source...)
	dst = append(dst, p.LastOutcome...)
	dst = append(dst, p.Reason...)
	for i := range p.History {
		dst = append(dst, p.History[i].Outcome...)
		dst = append(dst, p.History[i].Said...)
	}
	return append(append(dst, state...), p.Event...)
}

// appendHistory writes the attempts without their texts.
func (p *Delivery) appendHistory(dst []byte, published int64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(p.History)))
	for i := range p.History {
		a := &p.History[i]
		probe := int64(0)
		if a.Probe {
			probe = 1
		}
		for _, n := range [...]int64{a.At.UnixMilli() - published, a.Took.Milliseconds(), int64(a.Status), probe} {
			dst = binary.AppendVarint(dst, n)
		}
		dst = binary.AppendUvarint(dst, uint64(len(a.Outcome)))
		dst = binary.AppendUvarint(dst, uint64(len(a.Said)))
	}
	return dst
}

// Parse reads it; Event shares the bytes. An error wraps ErrInvalid.
func Parse(b []byte) (Delivery, error) {
	if len(b) < 2 {
		return Delivery{}, fmt.Errorf("%w: it has %d bytes", ErrInvalid, len(b))
	}
	switch {
	case b[0] > traced && b[0] <= maxVersion:
		return Delivery{}, fmt.Errorf("%w: its version is %d, known is %d: %w", ErrInvalid, b[0], traced, ErrNewer)
	case b[0] < version || b[0] > traced:
		return Delivery{}, fmt.Errorf("%w: there is no version %d", ErrInvalid, b[0])
	}
	r := reader{rest: b[2:]}
	lengths := [...]int{r.length(), r.length(), r.length(), r.length(), r.length()}
	p := Delivery{
		Form: schema.Form(b[1]), Partition: r.integer(), Sequence: r.number(), Attempts: r.integer(),
		LastStatus: r.integer(), Redrives: r.integer(),
	}
	if b[0] >= hopped {
		if p.Hops = r.integer(); p.Hops < 0 || p.Hops == 0 && b[0] == hopped {
			r.fail("it is of version 2 and has no hops")
		}
	}
	published := r.number()
	p.Published = fromMilli(published)
	p.Alive = fromMilli(published + r.number())
	p.LastAttempt = fromMilli(published + r.number())
	p.Due = fromMilli(published + r.number())
	var said [2 * MaxHistory]int
	if b[0] >= historied {
		p.History = r.history(published, &said, b[0])
	}
	state := 0
	if b[0] >= traced {
		p.Trace, state = r.trace()
	}
	if r.fault != "" {
		return Delivery{}, fmt.Errorf("%w: %s", ErrInvalid, r.fault)
	}
	err := p.cut(r.rest, lengths, said, state)
	return p, err
}

// history reads the attempts, and the lengths of their texts.
func (r *reader) history(published int64, said *[2 * MaxHistory]int, form byte) []Attempt {
	n := r.length()
	switch {
	case n == 0 && form >= traced:
		return nil
	case n < 1 || n > MaxHistory:
		r.fail("it is of version 3 and has no attempts, or too many")
		return nil
	}
	all := make([]Attempt, n)
	for i := range all {
		a := &all[i]
		a.At, a.Took, a.Status = fromMilli(published+r.number()), r.milliseconds(), r.integer()
		switch probe := r.number(); probe {
		case 0, 1:
			a.Probe = probe == 1
		default:
			r.fail("an attempt is a probe or is none")
		}
		said[2*i], said[2*i+1] = r.length(), r.length()
	}
	return all
}

// trace reads that beside the event, and the length of its state.
func (r *reader) trace() (c tracing.Context, state int) {
	if len(r.rest) < traceBytes {
		r.fail("its trace is cut off")
		return c, 0
	}
	rest := r.rest[copy(c.TraceID[:], r.rest):]
	rest = rest[copy(c.SpanID[:], rest):]
	c.Flags, r.rest = rest[0], rest[1:]
	if state = r.length(); !c.Valid() {
		r.fail("it is of version 4 and has no trace")
	}
	return c, state
}

// cut takes the texts and the event from the bytes behind the numbers. The texts are one
// string together, which is one allocation.
func (p *Delivery) cut(rest []byte, lengths [5]int, said [2 * MaxHistory]int, state int) error {
	texts := state
	for _, n := range lengths[:4] {
		texts += n // none is larger than the whole, so that this does not overflow
	}
	for _, n := range said {
		texts += n
	}
	if texts+lengths[4] != len(rest) {
		*p = Delivery{}
		return fmt.Errorf("%w: %d bytes are left for texts and event of %d and %d", ErrInvalid, len(rest), texts, lengths[4])
	}
	all := string(rest[:texts])
	next := func(length int) string {
		text := all[:length]
		all = all[length:]
		return text
	}
	p.Subscription, p.Source = next(lengths[0]), next(lengths[1])
	p.LastOutcome, p.Reason = retry.Outcome(next(lengths[2])), next(lengths[3])
	for i := range p.History {
		p.History[i].Outcome, p.History[i].Said = retry.Outcome(next(said[2*i])), next(said[2*i+1])
	}
	p.Trace.State = next(state)
	p.Event = rest[texts:]
	return nil
}

// fromMilli gives the time that was written. The zero time comes back as itself.
func fromMilli(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// reader takes numbers from the front of bytes. After a fault it gives zeros.
type reader struct {
	rest  []byte
	fault string
}

// length reads that of a text, which is not longer than what there is.
func (r *reader) length() int {
	n, size := binary.Uvarint(r.rest)
	r.move(size)
	if n > uint64(len(r.rest)) {
		r.fail("a text is longer than the whole")
		return 0
	}
	return int(n)
}

// integer reads a number that was an int.
func (r *reader) integer() int {
	n := r.number()
	if n < math.MinInt || n > math.MaxInt {
		r.fail("a number is too large for this machine")
		return 0
	}
	return int(n)
}

// milliseconds reads a duration that was written as such.
func (r *reader) milliseconds() time.Duration {
	n := r.number()
	if n < math.MinInt64/int64(time.Millisecond) || n > math.MaxInt64/int64(time.Millisecond) {
		r.fail("a duration is too long")
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

func (r *reader) number() int64 {
	n, size := binary.Varint(r.rest)
	r.move(size)
	return n
}

// move goes past a varint of that size, as encoding/binary reports it.
func (r *reader) move(size int) {
	switch {
	case size <= 0:
		r.fail("a number is cut off or too large")
	case size > 1 && r.rest[size-1] == 0:
		r.fail("a number is written longer than it need be")
	default:
		r.rest = r.rest[size:]
	}
}

func (r *reader) fail(fault string) {
	if r.fault == "" {
		r.fault = fault
	}
	r.rest = nil
}
