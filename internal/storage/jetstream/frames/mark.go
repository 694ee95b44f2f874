package frames

import (
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Mark is the state of the partitions of a stream as of a sequence: that of the last frame folded
// into it. Whoever begins to read begins with the newest one. It may come in several parts, each a
// frame, of the same writer and sequence; a partition is in one of them.
type Mark struct {
	AsOf StreamSeq
	// Part counts from 0 to Parts-1.
	Part, Parts int
	// Partitions are in the order of their names.
	Partitions []PartitionState
}

// PartitionState is a fold as plain values.
type PartitionState struct {
	// Name tells the partitions of a stream apart: 1 to MaxNameBytes bytes.
	Name string
	State
	// Writers are those known, processes before producers, by rising id.
	Writers []WriterState
}

// MaxNameBytes is the most that the name of a partition may measure.
const MaxNameBytes = 255

// WriterState is a row of a partition's table of writers.
type WriterState struct {
	Writer WriterID
	Epoch  Epoch
	Q      uint64
	// Used is the time, in milliseconds, of the last frame that counted or fence that held.
	Used int64
}

// Snapshot gives the fold's state for a mark. A fold with a hole has none: ok is false.
func (p *Partition) Snapshot(name string) (s PartitionState, ok bool) {
	if p.hole != nil {
		return PartitionState{}, false
	}
	return PartitionState{Name: name, State: p.state, Writers: p.writers.known(p.state.Time)}, true
}

// Restore makes the fold that a mark describes. It goes on with the first frame behind asOf.
func Restore(asOf StreamSeq, s PartitionState) *Partition {
	p := &Partition{state: s.State, at: asOf, past: newHistory(point{at: asOf, next: s.Next})}
	for _, w := range s.Writers {
		p.writers.set(w.Writer, writer{epoch: w.Epoch, q: w.Q, used: w.Used}, s.Time)
	}
	return p
}

// Find gives a partition of the mark.
func (m *Mark) Find(name string) (PartitionState, bool) {
	i, ok := slices.BinarySearchFunc(m.Partitions, name, func(p PartitionState, name string) int { return strings.Compare(p.Name, name) })
	if !ok {
		return PartitionState{}, false
	}
	return m.Partitions[i], true
}

// Agrees compares a mark, or any base, with this fold: false means that one of the two is wrong.
// What is before or behind all that the fold remembers is not compared.
func (p *Partition) Agrees(asOf StreamSeq, next eventlog.Sequence) bool {
	return asOf > p.at || p.past.agrees(asOf+1, Base{Seq: asOf, Next: next})
}

// When a mark is due: after so many bytes or frames of the stream, or once it has been in use for
// so long without one.
const (
	MarkBytes  = 16 << 20
	MarkFrames = 4096
	MarkAge    = time.Minute
)

// Unmarked counts what a stream has got since its newest mark. The zero value is that of a stream
// just marked.
type Unmarked struct {
	Frames int
	Bytes  int64
	since  int64 // when the first of them was added
}

// Add counts a frame of any kind but marks, counted or void, seen at now (milliseconds).
func (u *Unmarked) Add(bytes int, now int64) {
	if u.Frames == 0 {
		u.since = now
	}
	u.Frames++
	u.Bytes += int64(bytes)
}

// Due reports whether it is time for a mark. A stream at rest needs none.
func (u *Unmarked) Due(now int64) bool {
	return u.Frames >= MarkFrames || u.Bytes >= MarkBytes || u.Frames > 0 && now-u.since >= MarkAge.Milliseconds()
}
