package natskv_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/natskv"
)

// A cluster's leader refuses a write to a key while another is in process there, and that may be
// the very one that it has just acknowledged.
func TestAKeyThatIsBusyIsNoConflict(t *testing.T) { // P3
	busy := &busyBucket{}
	s := natskv.Through(open(t, dial(t, startServer(t, nil)), natskv.Config{}), func(kv jetstream.KeyValue) jetstream.KeyValue {
		busy.KeyValue = kv
		return busy
	})
	f := processor.Entry{Key: "presence/a"}
	for range 3 {
		had := f
		busy.times = 2
		var err error
		if f, err = s.Put(t.Context(), group, f); err != nil {
			t.Fatal(err)
		}
		busy.times = 2
		testkit.ErrorIs(t, testkit.Err(s.Put(t.Context(), group, had)), processor.ErrConflict, "put in an old version")
		busy.times = 2
		testkit.ErrorIs(t, s.Remove(t.Context(), group, processor.Entry{Key: f.Key, Version: "999"}), processor.ErrConflict, "remove in another version")
	}
	busy.times = 2
	testkit.Must(t, s.Remove(t.Context(), group, f))
	busy.times = 2
	testkit.Must(t, testkit.Err(s.Put(t.Context(), group, processor.Entry{Key: f.Key}))) // over the mark of the removal
	ctx, cancel := context.WithCancelCause(t.Context())
	busy.times, busy.refused = 1000, func(left int) {
		if left == 990 {
			cancel(errors.New("enough"))
		}
	}
	if _, err := s.Put(ctx, group, processor.Entry{Key: "presence/b"}); err == nil || errors.Is(err, processor.ErrConflict) {
		t.Errorf("a key that stays busy: %v", err)
	}
}

// busyBucket refuses the next writes as a cluster's leader does.
type busyBucket struct {
	jetstream.KeyValue
	times   int
	refused func(left int)
}

func (b *busyBucket) refuse() error {
	if b.times == 0 {
		return nil
	}
	b.times--
	if b.refused != nil {
		b.refused(b.times)
	}
	why := &jetstream.APIError{Code: 400, ErrorCode: jetstream.JSErrCodeStreamWrongLastSequenceConstant, Description: "wrong last sequence"}
	return fmt.Errorf("%w: %w", why, jetstream.ErrKeyRevisionMismatch)
}

func (b *busyBucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if err := b.refuse(); err != nil {
		return 0, err
	}
	return b.KeyValue.Update(ctx, key, value, revision)
}

func (b *busyBucket) Purge(ctx context.Context, key string, options ...jetstream.KVDeleteOpt) error {
	if err := b.refuse(); err != nil {
		return err
	}
	return b.KeyValue.Purge(ctx, key, options...)
}
