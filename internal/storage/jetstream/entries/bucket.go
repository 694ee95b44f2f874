package entries

import (
	"context"
	"sync"
	"time"
)

// bucket is one stream of entries, as this process knows it. Its messages go through the line into
// the replica, which all buckets share.
type bucket struct {
	name    string
	replica *replica
	wake    chan struct{}     // has a token when the feeder may have something to do
	asking  chan chan<- reply // who wants a barrier; the barrier's writer takes them

	mu       sync.Mutex
	line     line          // guarded by mu
	acked    uint64        // the highest sequence acknowledged to this process; guarded by mu
	progress chan struct{} // closed when complete moves; guarded by mu
	round    int           // of reading the whole stream; guarded by mu
	reading  bool          // the round has not ended; guarded by mu
	read     time.Time     // when the stream was last read to its end, by the wall clock; guarded by mu
}

// reply is what becomes of a barrier: the sequence it got.
type reply struct {
	seq uint64
	err error
}

func newBucket(name string, r *replica) *bucket {
	return &bucket{
		name: name, replica: r, wake: make(chan struct{}, 1), asking: make(chan chan<- reply),
		progress: make(chan struct{}), round: 1, reading: true,
	}
}

// receive takes in a message that was stored, from whomever. Those who look at its key see it also where what has
// replaced it was read before.
func (b *bucket) receive(m message) {
	b.change(func(now time.Time) []message {
		b.replica.show(m)
		return b.line.receive(m, now)
	})
}

// acknowledged takes in a message of our own, behind which reads have to stay from now on.
func (b *bucket) acknowledged(m message) {
	b.change(func(now time.Time) []message {
		b.acked = max(b.acked, m.seq)
		b.replica.show(m)
		return b.line.receive(m, now)
	})
}

// learn notes that a sequence was written, which has to be fetched.
func (b *bucket) learn(seq uint64) {
	b.change(func(time.Time) []message {
		b.line.learn(seq)
		return nil
	})
}

// fetched takes in a batch of the stream.
func (b *bucket) fetched(from uint64, batch []message, ended bool) {
	b.change(func(now time.Time) []message {
		if ended {
			b.read = now.Round(0) // without the monotonic clock, which stands still while a machine sleeps
		}
		return b.line.fetched(from, batch, ended, now)
	})
}

// settle names a sequence that ends the present doubt.
func (b *bucket) settle(seq uint64) {
	b.change(func(now time.Time) []message {
		b.line.settle(seq, now)
		return nil
	})
}

// change lets the line be changed, applies what it gives, and then tells who waits.
func (b *bucket) change(how func(now time.Time) []message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	before := b.line.complete
	b.replica.apply(b.name, b.round, now, how(now)...)
	if b.reading && !b.line.doubt && b.line.reached > 0 {
		b.reading = false
		b.replica.sweep(b.name, b.round, now)
	}
	if b.line.complete > before {
		close(b.progress)
		b.progress = make(chan struct{})
	}
	b.poke()
}

// rereadAfter begins to read the whole stream anew where it was not read to its end for so long that
// it may have forgotten deletions which we have not seen.
func (b *bucket) rereadAfter(long time.Duration) (again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now().Round(0)
	if b.read.IsZero() || now.Sub(b.read) < long {
		return false
	}
	b.round++
	b.reading, b.read = true, now
	b.line.restart()
	return true
}

// poke has the feeder look. The caller need not hold mu.
func (b *bucket) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// own waits until reads are behind all that was acknowledged to this process.
func (b *bucket) own(ctx context.Context) error {
	b.mu.Lock()
	acked := b.acked
	b.mu.Unlock()
	return b.wait(ctx, acked)
}

// wait waits until the state of no key is older than a sequence that was written.
func (b *bucket) wait(ctx context.Context, seq uint64) error {
	b.mu.Lock()
	b.line.learn(seq)
	if b.line.complete >= seq {
		b.mu.Unlock()
		return nil
	}
	for b.line.complete < seq {
		progress := b.progress
		b.poke()
		b.mu.Unlock()
		select {
		case <-progress:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		b.mu.Lock()
	}
	b.mu.Unlock()
	return nil
}

// gapPatience is how long a missing announcement is waited for before the stream is asked.
const gapPatience = 20 * time.Millisecond

// next tells when the feeder has to read the stream; zero or less: now. lastRead is when it last did
// so, idle how often it does without a reason.
func (b *bucket) next(now, lastRead time.Time, idle time.Duration) (later time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	due := lastRead.Add(idle)
	if soon := lastRead.Add(gapPatience); b.line.behind() || b.line.doubt {
		due = soon
		if gap := b.line.gapSince.Add(gapPatience); len(b.line.ahead) > 0 && gap.After(soon) {
			due = gap
		}
	}
	return due.Sub(now)
}

// position is up to where the stream was read.
func (b *bucket) position() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.line.reached
}

// unsettled: a barrier has to be written for a doubt to end.
func (b *bucket) unsettled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.line.unsettled()
}

// atOwn: reads are behind all that was acknowledged to this process.
func (b *bucket) atOwn() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.line.complete >= b.acked
}
