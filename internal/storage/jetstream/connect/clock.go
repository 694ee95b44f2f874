package connect

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"
)

// How far the clock of a node may be from that of the servers.
const (
	// heldWithin is how far the times that a node gives to events are from the servers' clock, at most:
	// one whose clock goes ahead would push the time of every partition that it writes to.
	heldWithin = time.Second
	// maxSkew is from where on a node does not start: tokens, certificates and retries go by its clock,
	// which nobody corrects.
	maxSkew = time.Minute
)

// Skew is how far the servers' clock is ahead of this node's, negative where it is behind. What was
// measured is right within the time that a message took.
type Skew struct{ Ahead, Within time.Duration }

// skewOf is the skew by what a server's clock showed between two looks at our own.
func skewOf(asked, answered, shown time.Time) Skew {
	half := answered.Sub(asked) / 2
	return Skew{Ahead: shown.Sub(asked.Add(half)), Within: half}
}

// beyond is by how much the skew is surely larger than a bound, with its sign; zero where it may not be.
func (s Skew) beyond(bound time.Duration) time.Duration {
	bound += s.Within
	switch {
	case s.Ahead > bound:
		return s.Ahead - bound
	case s.Ahead < -bound:
		return s.Ahead + bound
	}
	return 0
}

// Held: times of events are corrected by what it says.
func (s Skew) Held() bool { return s.beyond(heldWithin) != 0 }

// String says it of this node's clock.
func (s Skew) String() string {
	by, how := s.Ahead, "behind"
	if by < 0 {
		by, how = -by, "ahead of"
	}
	return fmt.Sprintf("the clock of this node is %s %s that of the NATS servers", by.Round(time.Millisecond), how)
}

// Skew asks the leader of a stream for its time. ErrUnavailable: it does not answer.
func (c *Conns) Skew(ctx context.Context, stream string) (Skew, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime/3)
	defer cancel()
	asked := time.Now()
	answer, err := c.Control.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+stream, nil)
	answered := time.Now()
	if err != nil {
		return Skew{}, fmt.Errorf("%w: time of stream %s: %w", ErrUnavailable, stream, err)
	}
	var info struct {
		Shown time.Time `json:"ts"`
	}
	if err := json.Unmarshal(answer.Data, &info); err != nil || info.Shown.IsZero() {
		return Skew{}, fmt.Errorf("%w: stream %s does not say the time", ErrUnavailable, stream)
	}
	return skewOf(asked, answered, info.Shown), nil
}

// Clock is this node's clock held to that of the servers. The zero Clock is right. All methods may be
// called by many goroutines at once.
type Clock struct{ skew atomic.Pointer[Skew] }

// Hold takes a measurement into account.
func (c *Clock) Hold(s Skew) { c.skew.Store(&s) }

// Skew is the newest measurement.
func (c *Clock) Skew() Skew {
	if s := c.skew.Load(); s != nil {
		return *s
	}
	return Skew{}
}

// Ahead is what to add to the time that this node shows: nothing where that is right within a second,
// else so much that it is.
func (c *Clock) Ahead() time.Duration { return c.Skew().beyond(heldWithin) }
