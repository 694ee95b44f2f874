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
)

// The stored form, all numbers as varints, signed ones zigzagged:
//
//	version   1 byte: 1, or 2 where the event has hops
//	form      1 byte
//	lengths   of subscription, source, last outcome, reason, event: unsigned
//	numbers   partition, sequence, attempts, last status, redrives; in version 2 hops
//	times     published in Unix milliseconds; alive, last attempt, due as
//	          milliseconds after published
//	texts     in the order of their lengths, then the event, to the end
//
// There is one way only to write a pending delivery: a varint that is longer than it need be, or a
// byte too many, is no pending delivery.
//
// A later form has a higher version, up to maxVersion. Who meets one has gone back to an older
// release: nothing is wrong with the pending delivery, and it must not be thrown away.
const (
	version    = 1
	hopped     = 2
	maxVersion = 31
)

// maxHeadBytes is the most that stands before the texts.
const maxHeadBytes = 2 + 15*binary.MaxVarintLen64

// ErrInvalid: the bytes are not a pending delivery that Append has written.
var ErrInvalid = errors.New("not a stored pending delivery")

// ErrNewer: a newer release has written it, and can read it. It comes with ErrInvalid.
var ErrNewer = errors.New("it is from a newer release: use that again")

// Bytes is about how many bytes Append writes, and never less.
func (p *Delivery) Bytes() int {
	return maxHeadBytes + len(p.Subscription) + len(p.Source) + len(p.LastOutcome) + len(p.Reason) + len(p.Event)
}

// Append writes it behind dst. The form begins with a version byte.
func (p *Delivery) Append(dst []byte) []byte {
	dst = slices.Grow(dst, p.Bytes())
	form := byte(version)
	if p.Hops > 0 {
		form = hopped
	}
	dst = append(dst, form, byte(p.Form))
	for _, n := range [...]int{len(p.Subscription), len(p.Source), len(p.LastOutcome), len(p.Reason), len(p.Event)} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	for _, n := range [...]int64{int64(p.Partition), p.Sequence, int64(p.Attempts), int64(p.LastStatus), int64(p.Redrives)} {
		dst = binary.AppendVarint(dst, n)
	}
	if form == hopped {
		dst = binary.AppendVarint(dst, int64(p.Hops))
	}
	published := p.Published.UnixMilli()
	for _, n := range [...]int64{
		published, p.Alive.UnixMilli() - published, p.LastAttempt.UnixMilli() - published, p.Due.UnixMilli() - published,
	} {
		dst = binary.AppendVarint(dst, n)
	}
	dst = append(dst, p.Subscription...)
	dst = append(dst, p.Source...)
	dst = append(dst, p.LastOutcome...)
	dst = append(dst, p.Reason...)
	return append(dst, p.Event...)
}

// Parse reads it; Event shares the bytes. An error wraps ErrInvalid.
func Parse(b []byte) (Delivery, error) {
	if len(b) < 2 {
		return Delivery{}, fmt.Errorf("%w: it has %d bytes", ErrInvalid, len(b))
	}
	switch {
	case b[0] > hopped && b[0] <= maxVersion:
		return Delivery{}, fmt.Errorf("%w: its version is %d, known is %d: %w", ErrInvalid, b[0], hopped, ErrNewer)
	case b[0] < version || b[0] > hopped:
		return Delivery{}, fmt.Errorf("%w: there is no version %d", ErrInvalid, b[0])
	}
	r := reader{rest: b[2:]}
	lengths := [...]int{r.length(), r.length(), r.length(), r.length(), r.length()}
	p := Delivery{
		Form: schema.Form(b[1]), Partition: r.integer(), Sequence: r.number(), Attempts: r.integer(),
		LastStatus: r.integer(), Redrives: r.integer(),
	}
	if b[0] == hopped {
		if p.Hops = r.integer(); p.Hops <= 0 {
			r.fail("it is of version 2 and has no hops")
		}
	}
	published := r.number()
	p.Published = fromMilli(published)
	p.Alive = fromMilli(published + r.number())
	p.LastAttempt = fromMilli(published + r.number())
	p.Due = fromMilli(published + r.number())
	if r.fault != "" {
		return Delivery{}, fmt.Errorf("%w: %s", ErrInvalid, r.fault)
	}
	err := p.cut(r.rest, lengths)
	return p, err
}

// cut takes the texts and the event from the bytes behind the numbers. The texts are one
// string together, which is one allocation.
func (p *Delivery) cut(rest []byte, lengths [5]int) error {
	texts := 0
	for _, n := range lengths[:4] {
		texts += n // none is larger than the whole, so that this does not overflow
	}
	if texts+lengths[4] != len(rest) {
		*p = Delivery{}
		return fmt.Errorf("%w: %d bytes are left for texts and event of %d and %d", ErrInvalid, len(rest), texts, lengths[4])
	}
	all := string(rest[:texts])
	next := func(i int) string {
		text := all[:lengths[i]]
		all = all[lengths[i]:]
		return text
	}
	p.Subscription, p.Source = next(0), next(1)
	p.LastOutcome, p.Reason = retry.Outcome(next(2)), next(3)
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
