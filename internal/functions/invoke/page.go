package invoke

import (
	"errors"
	"io"
	"sync"

	"github.com/eventyard/eventyard/internal/grid/schema"
)

// maxKeptBytes is up to where a page's buffers are kept for the next call.
const maxKeptBytes = 4 << 20

// page is what a call is written on, and its answer read into. It is used for one call after
// another: who has it, says loan.
type page struct {
	body   []byte
	answer []byte
	// stored, id and envelope are for one event at a time.
	stored   []byte
	id       []byte
	envelope schema.Envelope
}

var pages = sync.Pool{New: func() any { return new(page) }}

// giveBack lets the next call have the page.
func (p *page) giveBack() {
	if cap(p.body)+cap(p.answer)+cap(p.stored) > maxKeptBytes {
		return
	}
	// What was an event's must not be kept alive, nor be found by the next.
	extensions := p.envelope.Extensions
	clear(extensions[:cap(extensions)])
	p.envelope = schema.Envelope{Extensions: extensions[:0]}
	p.body, p.answer, p.stored, p.id = p.body[:0], p.answer[:0], p.stored[:0], p.id[:0]
	pages.Put(p)
}

func (p *page) write(f Format, call *Call) error {
	if f == EventHubs {
		p.writeEventHubs(call)
		return nil
	}
	return p.writeCloudEvents(call)
}

// errTooLong: an answer is longer than it may be.
var errTooLong = errors.New("the answer is too long")

// readAnswer reads all of an answer, to its end, so that the connection can be used again.
func (p *page) readAnswer(from io.Reader, most int64) error {
	limited := io.LimitReader(from, most+1)
	for {
		if len(p.answer) == cap(p.answer) {
			p.answer = append(p.answer, 0)[:len(p.answer)]
		}
		n, err := limited.Read(p.answer[len(p.answer):cap(p.answer)])
		p.answer = p.answer[:len(p.answer)+n]
		switch {
		case int64(len(p.answer)) > most:
			return errTooLong
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}
