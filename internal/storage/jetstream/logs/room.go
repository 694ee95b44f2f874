package logs

import (
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// reserved is what part of a stream's room is kept for marks and fences. A stream that events had filled to
// its end would stay full for ever: what is too old is removed behind a mark, and there would be no room for
// that.
const reserved = 8

// unboundedAge is for how long a stream without a limit is taken to have none: operators may give it one.
const unboundedAge = 5 * time.Minute

// room is how full a stream is, by the limit that it has, which need not be the one of this node's settings. The zero
// value is of one that nothing is known of. It is guarded by the stream's lock.
type room struct {
	most int64       // where the stream is full; zero: nowhere
	used int64       // what the servers said last, and what was heard of since
	last streams.Seq // the newest message that they counted
	said time.Time   // when they said it
}

// roomOf is the room of a stream as the servers say now.
func roomOf(state streams.State) room {
	return room{most: state.MaxBytes, used: state.Bytes, last: state.Last, said: time.Now()}
}

// known: the servers need not be asked.
func (r room) known() bool { return r.most == 0 && time.Since(r.said) < unboundedAge }

// add takes in a message that was heard of, unless the servers have counted it.
func (r *room) add(seq streams.Seq, bytes int64) {
	if seq > r.last {
		r.used += bytes
	}
}

// check refuses events where a stream holds what it may. What is not known any more, as of a stream that nobody
// has used for a while, is for the servers to judge. They are asked once in each interval.
func (r room) check(interval time.Duration) error {
	if r.most > 0 && r.used >= r.most-r.most/reserved && time.Since(r.said) < 3*interval {
		return eventlog.ErrNoSpace
	}
	return nil
}
