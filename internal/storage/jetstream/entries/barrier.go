package entries

import (
	"context"
	"errors"
	"math/rand/v2"
)

// barrier has a message stored in a bucket that is behind all that was acknowledged to anybody
// before the call, and gives its sequence. Many calls share one message.
func (s *Store) barrier(ctx context.Context, b *bucket) (uint64, error) {
	written := make(chan reply, 1)
	select {
	case b.asking <- written:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	select {
	case r := <-written:
		return r.seq, r.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// writeBarriers writes one barrier at a time, for all who ask before it is sent: one that is on its
// way already may be in front of what they want to see.
func (s *Store) writeBarriers(ctx context.Context, b *bucket) {
	for {
		var asked []chan<- reply
		select {
		case <-ctx.Done():
			return
		case one := <-b.asking:
			asked = append(asked, one)
		}
		for more := true; more; {
			select {
			case one := <-b.asking:
				asked = append(asked, one)
			default:
				more = false
			}
		}
		seq, err := s.writeBarrier(ctx, b)
		for _, one := range asked {
			one <- reply{seq, err}
		}
	}
}

func (s *Store) writeBarrier(ctx context.Context, b *bucket) (uint64, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	for {
		m := message{kind: barrier, nonce: rand.Uint64()}
		encoded := m.encode()
		seq, err := s.send(ctx, s.layout.barrier(b.name), encoded, nil, func(uint64) bool { return false })
		switch {
		case err == nil:
			m.seq = seq
			b.receive(m)
			s.announce(b, seq, encoded)
			return seq, nil
		case !errors.Is(err, errDoubt):
			return 0, err
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		}
		// One too many does no harm.
	}
}
