package logs

import (
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// heard is what is known of one message of a stream: from an announcement, an acknowledgement, or
// the message itself.
type heard struct {
	seq     streams.Seq
	subject string
	header  frames.Header
	// mark is the whole message where it is a mark. Nobody folds on behind one without it.
	mark []byte
	// damaged: what was read is no frame.
	damaged error
}

// line puts what is heard of a stream into the order of its sequences, which are dense. It is pure.
type line struct {
	at      streams.Seq // up to here all was taken
	highest streams.Seq // that anything was heard of
	ahead   map[streams.Seq]heard
}

// maxAhead bounds what is remembered of what came too early; the rest is read when its turn comes.
const maxAhead = 8192

// add takes notice of a message. What was taken already is left out.
func (l *line) add(h heard) {
	l.highest = max(l.highest, h.seq)
	if h.seq <= l.at || len(l.ahead) >= maxAhead && h.seq != l.at+1 {
		return
	}
	if l.ahead == nil {
		l.ahead = map[streams.Seq]heard{}
	}
	l.ahead[h.seq] = h
}

// take gives what comes next, if it is known.
func (l *line) take() (heard, bool) {
	h, ok := l.ahead[l.at+1]
	if ok {
		delete(l.ahead, h.seq)
		l.at = h.seq
	}
	return h, ok
}

// next is the first sequence behind the line of which something is known, and at most a bound.
func (l *line) next(bound streams.Seq) streams.Seq {
	for seq := range l.ahead {
		bound = min(bound, seq)
	}
	return bound
}

// skip goes on behind a sequence.
func (l *line) skip(to streams.Seq) {
	for seq := range l.ahead {
		if seq <= to {
			delete(l.ahead, seq)
		}
	}
	l.at = to
	l.highest = max(l.highest, to)
}

// missing: something was heard of that lies behind what is not known.
func (l *line) missing() bool { return l.highest > l.at }

// forget begins anew, before the first message, and remembers how far the stream is known to go.
func (l *line) forget() { *l = line{highest: l.highest} }
