package frames

import "github.com/eventyard/eventyard/internal/storage/eventlog"

// Outcome is what became of a frame.
type Outcome uint8

// The outcomes of a frame.
const (
	// Counted: its events have numbers.
	Counted Outcome = iota + 1
	// Fenced: the fence holds; its writer is at (epoch, 0).
	Fenced
	// Void: it changes nothing.
	Void
	// Old: the fold is past it already; nothing was changed.
	Old
	// Hole: this fold or that of the frame's writer is not that of the stream. Nothing was changed,
	// and nothing more is until the fold goes on from a mark.
	Hole
)

func (o Outcome) String() string {
	return [...]string{"none", "counted", "fenced", "void", "old", "hole"}[min(o, Hole)]
}

// Reason says why a frame is void.
type Reason uint8

// The reasons, and NoReason with all other outcomes.
const (
	NoReason Reason = iota
	// Behind: a data frame's epoch or q has passed, a fence's epoch is not higher. Also what is
	// seen of a frame that the stream has twice.
	Behind
	// Ahead: a frame or a fence before this one is missing, or the writer is unknown.
	Ahead
	// Stale: its own time lies too far behind the partition's.
	Stale
	// Foreign: the frame is none that belongs to a partition.
	Foreign
)

func (r Reason) String() string {
	return [...]string{"", "behind", "ahead", "stale", "foreign"}[min(r, Foreign)]
}

// Verdict is what the rule says of one frame.
type Verdict struct {
	Outcome Outcome
	Reason  Reason
	// First is the number of the frame's first event and Time the time of them all, if it counts.
	First eventlog.Sequence
	Time  int64
	// Missing is set with Hole.
	Missing Missing
}

// Missing are the numbers that a fold with a hole cannot speak for, First to Next-1: from where
// both folds last agreed up to where the later of the two is. A mark behind them ends the hole, at
// the number that it names.
type Missing struct{ First, Next eventlog.Sequence }
