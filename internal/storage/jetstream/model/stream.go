package model

import (
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// stream is what the servers keep of one stream. Its owner's lock guards it.
type stream struct {
	maxBytes   int64
	messages   []stored // in their order
	last       streams.Seq
	bytes      int64
	replicas   []replica
	leader     int
	leaderless time.Time // until when nobody leads
	heardOf    time.Time // when all servers know that it is there

	// Of a stream that keeps the newest message of each subject: where those are, and how it was made. Nil
	// otherwise.
	newestOf map[string]streams.Seq
	config   jetstream.StreamConfig
}

type stored struct {
	streams.Message
	at time.Time
	// replaced is the sequence of the message that took its place; 0: it has it still.
	replaced streams.Seq
}

func (m stored) copy() streams.Message {
	copied := m.Message
	copied.Data = slices.Clone(m.Data)
	return copied
}

// replica is one server's copy, as readers see it.
type replica struct {
	through streams.Seq // what it has shown once it shows always
	harmed  map[streams.Seq]*harm
	away    time.Time // until when it does not answer
}

// harm is how a replica's copy of a message differs from the others.
type harm struct {
	missing bool
	data    []byte
}

func newStream(cfg streams.Config, heardOf time.Time) *stream {
	n := cfg.Replicas
	if n <= 0 {
		n = defaultReplicas
	}
	s := &stream{maxBytes: cfg.MaxBytes, heardOf: heardOf, replicas: make([]replica, n)}
	for i := range s.replicas {
		s.replicas[i].harmed = map[streams.Seq]*harm{}
	}
	return s
}

func size(subject string, data []byte) int64 { return int64(len(subject) + len(data)) }

// otherSequence: the newest message of a subject is another than expected; zero: there is none.
type otherSequence struct{ at streams.Seq }

func (e *otherSequence) Error() string { return fmt.Sprintf("wrong last sequence: %d", e.at) }

// store adds a message, if there is room, and if the newest of its subject is the one expected.
func (s *stream) store(subject string, data []byte, expect *streams.Seq, now time.Time) (streams.Seq, error) {
	if expect != nil && s.newestOf[subject] != *expect {
		return 0, &otherSequence{s.newestOf[subject]}
	}
	if s.maxBytes > 0 && s.bytes+size(subject, data) > s.maxBytes {
		return 0, streams.ErrNoSpace
	}
	s.last++
	s.bytes += size(subject, data)
	s.messages = append(s.messages, stored{Message: streams.Message{Seq: s.last, Subject: subject, Data: data}, at: now})
	if s.newestOf != nil {
		s.replace(subject, now)
	}
	return s.last, nil
}

// keptLong is how much later than a message all replicas have it.
const keptLong = time.Minute

// replace has the last message take the place of the one before it of the same subject, which stays
// for replicas that have not heard of it.
func (s *stream) replace(subject string, now time.Time) {
	if i, there := s.find(s.newestOf[subject]); there {
		s.messages[i].replaced = s.last
		s.bytes -= size(subject, s.messages[i].Data)
	}
	s.newestOf[subject] = s.last
	if len(s.messages) < 2*len(s.newestOf)+1000 {
		return
	}
	all := s.last
	for r := range s.replicas {
		s.catchUp(r, now.Add(-keptLong))
		all = min(all, s.replicas[r].through)
	}
	s.messages = slices.DeleteFunc(s.messages, func(m stored) bool { return m.replaced > 0 && m.replaced <= all })
}

// find gives the index of a sequence, or of the first behind it.
func (s *stream) find(seq streams.Seq) (int, bool) {
	return slices.BinarySearchFunc(s.messages, seq, func(m stored, seq streams.Seq) int {
		switch {
		case m.Seq < seq:
			return -1
		case m.Seq > seq:
			return 1
		}
		return 0
	})
}

// catchUp has a replica know all that was stored up to a time.
func (s *stream) catchUp(r int, t time.Time) {
	rep := &s.replicas[r]
	i, _ := s.find(rep.through + 1)
	for ; i < len(s.messages) && !s.messages[i].at.After(t); i++ {
		rep.through = s.messages[i].Seq
	}
	if i == len(s.messages) { // what is behind the last of them was removed: an old removal, seen at once
		rep.through = s.last
	}
}

// read answers a query as a server does: it ends with the message that reaches the limit, and says
// how far it has the stream only where it has given all and anything.
func (s *stream) read(r int, q streams.Query) streams.Part {
	var part streams.Part
	total := 0
	first, _ := s.find(q.From)
	for i := first; i < len(s.messages); i++ {
		m, shown := s.seen(r, i)
		if !shown || q.Subject != "" && m.Subject != q.Subject {
			continue
		}
		if n := len(part.Messages); n > 0 && (q.MaxMessages > 0 && n >= q.MaxMessages || q.MaxBytes > 0 && total >= q.MaxBytes) {
			part.More = true
			return part
		}
		part.Messages = append(part.Messages, m)
		total += int(size(m.Subject, m.Data))
	}
	if q.Subject == "" && len(part.Messages) > 0 {
		part.Through = part.Messages[len(part.Messages)-1].Seq
	}
	return part
}

// seen is a message as a replica shows it.
func (s *stream) seen(r, i int) (streams.Message, bool) {
	rep, m := &s.replicas[r], s.messages[i]
	h := rep.harmed[m.Seq]
	switch {
	case m.Seq > rep.through, m.replaced > 0 && m.replaced <= rep.through, h != nil && h.missing:
		return streams.Message{}, false
	case h != nil:
		m.Data = h.data
	}
	return m.copy(), true
}

// newest is the last message of a subject, or of all, that the leader has.
func (s *stream) newest(subject string) (streams.Message, error) {
	s.replicas[s.leader].through = s.last
	for i := len(s.messages) - 1; i >= 0; i-- {
		if m, shown := s.seen(s.leader, i); shown && (subject == "" || m.Subject == subject) {
			return m, nil
		}
	}
	return streams.Message{}, streams.ErrNoMessage
}

// state is what the leader says: of what it has lost, that it is not there.
func (s *stream) state(now time.Time) streams.State {
	state := streams.State{First: s.last + 1, Last: s.last, Bytes: s.bytes, MaxBytes: s.maxBytes}
	for _, m := range s.messages {
		if h := s.replicas[s.leader].harmed[m.Seq]; h == nil || !h.missing {
			state.First = min(state.First, m.Seq)
			state.Messages++
		}
	}
	for _, r := range s.replicas {
		if r.away.After(now) {
			state.Absent++
		}
	}
	return state
}

// present draws a replica that answers, if there is one.
func (s *stream) present(now time.Time, draw func(int) int) (int, bool) {
	var there []int
	for i, r := range s.replicas {
		if !r.away.After(now) {
			there = append(there, i)
		}
	}
	if len(there) == 0 {
		return 0, false
	}
	return there[draw(len(there))], true
}

// purge removes the messages below a sequence, of a subject or of all.
func (s *stream) purge(subject string, below streams.Seq) {
	s.messages = slices.DeleteFunc(s.messages, func(m stored) bool {
		goes := m.Seq < below && (subject == "" || m.Subject == subject)
		if goes {
			s.bytes -= size(m.Subject, m.Data)
			for r := range s.replicas {
				delete(s.replicas[r].harmed, m.Seq)
			}
		}
		return goes
	})
}
