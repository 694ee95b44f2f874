package frames

import (
	"cmp"
	"maps"
	"slices"
)

// writer is what the rule knows of a writer.
type writer struct {
	epoch Epoch
	q     uint64
	used  int64 // the time of its last frame that counted, or fence that held
}

// writers is the table of a partition. Whether a writer is known depends on the partition's time
// alone, not on when its row is removed: that is done in passing, and may differ between nodes.
type writers struct {
	rows map[WriterID]writer
	most int // rows are looked through once there are more
}

// fewRows are kept without a look at their age.
const fewRows = 16

// find gives the zero writer, which is also where an unknown one begins, unless it is known.
func (t *writers) find(id WriterID, now int64) (writer, bool) {
	w, ok := t.rows[id]
	if !ok || w.used+id.life() <= now {
		return writer{}, false
	}
	return w, true
}

func (t *writers) set(id WriterID, w writer, now int64) {
	if t.rows == nil {
		t.rows, t.most = map[WriterID]writer{}, fewRows
	}
	t.rows[id] = w
	if len(t.rows) > t.most {
		t.sweep(now)
		t.most = max(fewRows, 2*len(t.rows)) // so that each row pays for a constant number of looks
	}
}

func (t *writers) sweep(now int64) {
	maps.DeleteFunc(t.rows, func(id WriterID, w writer) bool { return w.used+id.life() <= now })
}

// known gives the writers that are known, in order.
func (t *writers) known(now int64) []WriterState {
	t.sweep(now)
	all := make([]WriterState, 0, len(t.rows))
	for id, w := range t.rows {
		all = append(all, WriterState{Writer: id, Epoch: w.epoch, Q: w.q, Used: w.used})
	}
	slices.SortFunc(all, func(a, b WriterState) int { return a.Writer.compare(b.Writer) })
	return all
}

// compare orders processes before producers.
func (id WriterID) compare(other WriterID) int {
	switch {
	case id.Producer == other.Producer:
		return cmp.Compare(id.ID, other.ID)
	case other.Producer:
		return -1
	default:
		return 1
	}
}
