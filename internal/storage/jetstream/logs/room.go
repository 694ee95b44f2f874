package logs

import (
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// reserved is what part of a stream's room is kept for marks and fences. A stream that events had filled to
// its end would stay full for ever: what is too old is removed behind a mark, and there would be no room for
// that.
const reserved = 8

// room is how full a stream is. It is guarded by the stream's lock.
type room struct {
	used int64     // what the servers said last, and what was heard of since
	said time.Time // when they said it
}

// check refuses events where a stream holds what it may. What is not known any more, as of a stream that nobody
// has used for a while, is for the servers to judge.
func (r room) check(cfg Config) error {
	most := cfg.MaxStreamBytes
	if most > 0 && r.used >= most-most/reserved && time.Since(r.said) < 3*cfg.TendInterval {
		return eventlog.ErrNoSpace
	}
	return nil
}
