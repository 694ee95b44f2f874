package access

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// Who shows keys or tokens that are not good gets the answer later and later: an address has some
// failures at once, then so many a second. Whoever shows a good one is let in without any wait,
// also from the same address: others may be behind the same proxy.
//
// A token that has expired, or whose policy is gone, was good once: nobody guesses by it.
var failurePace = quota.Rate{PerSecond: 5, Burst: 20}

const (
	// maxFailureDelay is how late an answer may be.
	maxFailureDelay = 5 * time.Second
	// maxFailureAddresses is of how many addresses the failures are known. Those beyond share one
	// pace.
	maxFailureAddresses = 10_000
)

// failureLog is how often failures are logged.
var failureLog = quota.Rate{PerSecond: 0.1, Burst: 10}

// failures is what is known of those who were not let in.
type failures struct {
	log  *slog.Logger
	pace quota.Rate

	count atomic.Int64 // of all since the start

	mu sync.Mutex
	// byAddress has the addresses with failures of late; the zero prefix is that of all others.
	byAddress map[netip.Prefix]*quota.Bucket // guarded by mu
	swept     time.Time                      // when those without were last let go; guarded by mu
	logging   *quota.Bucket
	unlogged  int // failures since the last that was logged; guarded by mu
}

func newFailures(log *slog.Logger, pace quota.Rate) *failures {
	return &failures{log: log, pace: pace, byAddress: map[netip.Prefix]*quota.Bucket{}, logging: quota.New(failureLog)}
}

// Refused is told why a key or token was not accepted, and by which address it was shown, as
// host:port. It returns when the client may be told, or ctx ends. Who has no address, inside the
// process, does not wait, and nobody does for what is no fault of the token.
func (f *failures) Refused(ctx context.Context, from string, err error) {
	if wait := f.RefusedFor(from, err); wait > 0 {
		sleep.For(ctx, wait, nil)
	}
}

// RefusedFor is Refused for who has more to do meanwhile: it returns how long to wait.
func (f *failures) RefusedFor(from string, err error) time.Duration {
	if errors.Is(err, auth.ErrUnavailable) || errors.Is(err, auth.ErrAudience) {
		return 0
	}
	f.count.Add(1)
	return f.note(from, err, time.Now())
}

// RefusedCount is how many keys and tokens were refused since the start.
func (f *failures) RefusedCount() int64 { return f.count.Load() }

// note counts and logs a failure, and gives how long its answer has to wait.
func (f *failures) note(from string, err error, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	var wait time.Duration
	if address, ok := admission.Address(from); ok && !errors.Is(err, auth.ErrExpired) && !errors.Is(err, auth.ErrRevoked) {
		b := f.bucketLocked(address, now)
		wait = min(b.Wait(now), maxFailureDelay)
		b.Charge(1, now)
	}
	f.logLocked(from, err, wait, now)
	return wait
}

// report logs a token that is good and not for this yard: nobody guesses by it, but its issuer or the
// yard may be set up wrongly, which only an operator can mend.
func (f *failures) report(from string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logLocked(from, err, 0, time.Now())
}

func (f *failures) logLocked(from string, err error, wait time.Duration, now time.Time) {
	if f.logging.Take(1, now) > 0 {
		f.unlogged++
		return
	}
	f.log.Warn("a key or token was refused", "remote", from, "reason", err, "delay", wait, "notLogged", f.unlogged)
	f.unlogged = 0
}

func (f *failures) bucketLocked(address netip.Prefix, now time.Time) *quota.Bucket {
	if b := f.byAddress[address]; b != nil {
		return b
	}
	if len(f.byAddress) >= maxFailureAddresses && now.Sub(f.swept) >= time.Second {
		f.swept = now
		maps.DeleteFunc(f.byAddress, func(_ netip.Prefix, b *quota.Bucket) bool { return b.IsFull(now) })
	}
	if len(f.byAddress) >= maxFailureAddresses {
		address = netip.Prefix{}
	}
	b := f.byAddress[address]
	if b == nil {
		b = quota.New(f.pace)
		f.byAddress[address] = b
	}
	return b
}
