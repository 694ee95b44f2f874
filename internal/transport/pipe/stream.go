package pipe

import (
	"io"
	"net"
	"sync"
	"time"
)

const (
	// firstBytes is the buffer that a stream begins with, maxBytes the largest: it grows
	// where its reader does not follow, and most connections say little.
	firstBytes = 4 << 10
	maxBytes   = 256 << 10
)

// stream is one direction: a ring of bytes between who writes and who reads.
type stream struct {
	mu sync.Mutex
	// All of these are guarded by mu.
	ring        []byte
	start, used int
	// written: there will be no more bytes. deaf: nobody reads them.
	written, deaf   bool
	readers, writer waiters
}

// waiters are those who wait at one side of a stream, until its deadline.
type waiters struct {
	cond     sync.Cond
	count    int
	deadline time.Time
	// timer wakes all at armed, which is the deadline or was: it is set by who waits, since
	// most deadlines are moved before anybody has.
	timer *time.Timer
	armed time.Time
}

func newStream() *stream {
	s := &stream{}
	s.readers.cond.L, s.writer.cond.L = &s.mu, &s.mu
	return s
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.deaf:
			return 0, net.ErrClosed
		case s.readers.expired():
			return 0, errDeadline
		case len(b) == 0:
			return 0, nil
		case s.used > 0:
			n := s.takeLocked(b)
			s.writer.wake()
			if s.used > 0 {
				s.readers.wake()
			}
			return n, nil
		case s.written:
			return 0, io.EOF
		}
		s.readers.wait()
	}
}

func (s *stream) write(b []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.written:
			return n, net.ErrClosed
		case s.writer.expired():
			return n, errDeadline
		case s.deaf:
			return n, io.ErrClosedPipe
		}
		if put := s.putLocked(b[n:]); put > 0 {
			n += put
			s.readers.wake()
		}
		if n == len(b) {
			s.writer.wake() // another may have been waiting for what room is left
			return n, nil
		}
		s.writer.wait()
	}
}

// takeLocked moves bytes out of the ring.
func (s *stream) takeLocked(b []byte) (n int) {
	for n < len(b) && s.used > 0 {
		end := min(s.start+s.used, len(s.ring))
		moved := copy(b[n:], s.ring[s.start:end])
		n += moved
		s.used -= moved
		s.start = (s.start + moved) % len(s.ring)
	}
	if s.used == 0 {
		s.start = 0
	}
	return n
}

// putLocked moves bytes into the ring, as many as there is room for.
func (s *stream) putLocked(b []byte) (n int) {
	s.growLocked(len(b))
	for n < len(b) && s.used < len(s.ring) {
		at := (s.start + s.used) % len(s.ring)
		end := len(s.ring)
		if at < s.start {
			end = s.start
		}
		moved := copy(s.ring[at:end], b[n:])
		n += moved
		s.used += moved
	}
	return n
}

// growLocked sees to it that there is room for more bytes, as far as there may be.
func (s *stream) growLocked(more int) {
	size := max(len(s.ring), firstBytes)
	for size < maxBytes && size < s.used+more {
		size *= 2
	}
	if size == len(s.ring) || more == 0 {
		return
	}
	ring := make([]byte, size)
	used := s.used
	if used > 0 {
		s.takeLocked(ring[:used])
	}
	s.ring, s.start, s.used = ring, 0, used
}

func (s *stream) closeReading() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf = true
	s.ring, s.start, s.used = nil, 0, 0
	s.endLocked(&s.readers)
}

func (s *stream) closeWriting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = true
	s.endLocked(&s.writer)
}

// endLocked wakes everybody when one side has closed, whose timer is not needed any more.
func (s *stream) endLocked(side *waiters) {
	s.readers.wake()
	s.writer.wake()
	if side.timer != nil {
		side.timer.Stop()
	}
}

// setDeadline moves the deadline of one side, unless that is closed.
func (s *stream) setDeadline(side *waiters, closed *bool, t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *closed {
		return net.ErrClosed
	}
	side.deadline = t
	side.wake() // those who wait look at it
	return nil
}
