package v1

import (
	"bufio"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// streamBufferBytes is gathered before a write, unless somebody flushes earlier.
const streamBufferBytes = 32 << 10

// maxScratchBytes is the most a kept scratch buffer may measure: one large event
// should not stay in memory for as long as a tail runs.
const maxScratchBytes = 256 << 10

// stream is an answer of no known length. It is used by the request's own goroutine
// only. Each write has a deadline of its own, so that a stream may last for days and
// a reader who takes nothing is still let go. It has memory only from a write to the next flush.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	// reading is nil for streams that read no events.
	reading *reading
	// memory is nil while nothing is to be sent.
	memory *streamMemory
}

// streamMemory is what a stream is composed in.
type streamMemory struct {
	buf *bufio.Writer
	// line is for whoever composes one.
	line []byte
}

var streamMemories = sync.Pool{New: func() any {
	return &streamMemory{buf: bufio.NewWriterSize(nil, streamBufferBytes)}
}}

// newStream begins an answer; the header goes out with the first flush.
func newStream(w http.ResponseWriter, contentType string, timeout time.Duration) *stream {
	s := &stream{w: w, control: http.NewResponseController(w), timeout: timeout}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies that hold answers back would hold a tail for ever
	w.WriteHeader(http.StatusOK)
	return s
}

// scratch is memory to compose in, until the next flush.
func (s *stream) scratch() *streamMemory {
	if s.memory == nil {
		s.memory = streamMemories.Get().(*streamMemory)
		s.memory.buf.Reset(deadlineWriter{s})
	}
	return s.memory
}

// write takes bytes, to be sent when there are enough of them or at the next flush.
// Composed in a line of scratch, they leave it for the next.
func (s *stream) write(p []byte) error {
	m := s.scratch()
	_, err := m.buf.Write(p)
	if cap(p) <= maxScratchBytes {
		m.line = p[:0]
	}
	return err
}

// flush sends everything on its way, and gives the memory back.
func (s *stream) flush() error {
	if s.memory != nil {
		err := s.memory.buf.Flush()
		s.memory.buf.Reset(nil)
		streamMemories.Put(s.memory)
		if s.memory = nil; err != nil {
			return err
		}
	}
	if err := s.extend(); err != nil {
		return err
	}
	return s.control.Flush()
}

// send writes a text and sends it on its way.
func (s *stream) send(text string) error {
	if err := s.write(append(s.scratch().line[:0], text...)); err != nil {
		return err
	}
	return s.flush()
}

// endJSON is the data of the last event of a tail, or of a watch.
type endJSON struct {
	Reason string `json:"reason"`
	Detail string `json:"detail"`
	// Resume is the position to go on from, in the hub of a tail.
	Resume string `json:"resume,omitempty"`
}

func (s *stream) sayEnd(end endJSON) {
	data, _ := json.Marshal(end) // it holds text only
	_ = s.send("event: end\ndata: " + string(data) + "\n\n")
}

// extend gives the next write its time. A writer without deadlines has none to set.
func (s *stream) extend() error {
	if s.reading != nil {
		return s.reading.extend(s.timeout)
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(s.timeout))
	return nil
}

type deadlineWriter struct{ s *stream }

func (d deadlineWriter) Write(p []byte) (int, error) {
	if err := d.s.extend(); err != nil {
		return 0, err
	}
	n, err := d.s.w.Write(p)
	if n > 0 && d.s.reading != nil {
		d.s.reading.share.Touch()
	}
	return n, err
}
