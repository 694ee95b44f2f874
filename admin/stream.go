package admin

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// stream is something that the yard keeps sending as server-sent events, asked for again whenever
// it breaks off. It belongs to the goroutine of whoever ranges over what it gives.
type stream struct {
	client *Client
	notice func(Notice)

	ever     bool // it has begun at least once, so that there is something to come back to
	lost     bool // the last notice was that of a loss
	failures int  // ends since something came
}

func newStream(c *Client, notice func(Notice)) *stream {
	if notice == nil {
		notice = func(Notice) {}
	}
	return &stream{client: c, notice: notice}
}

// streamed is what a stream is asked for and what becomes of it.
type streamed interface {
	// request is what to ask for at this moment.
	request() request
	// take gives an event to the consumer.
	take(ev sseEvent) error
	// ended judges why the yard ended the stream; nil: as usual.
	ended(end streamEnd) error
}

// streamEnd is the data of the event named end, the last of a stream.
type streamEnd struct{ Reason, Detail, Resume string }

// How a stream may end that is nobody's failure.
var (
	errDone   = errors.New("done")                       // all there is to give was given
	errResume = errors.New("to be resumed at once")      // the yard said where
	errStuck  = errors.New("nothing behind can be read") // not even by asking again
	errSilent = errors.New("nothing was heard of the yard for too long")
)

// run asks once after the other until an end is final.
func (s *stream) run(ctx context.Context, of streamed) error {
	for {
		err := s.once(ctx, of)
		var p *Problem // of a yard that would answer the same again
		final := errors.Is(err, errStuck) || errors.As(err, &p) && p.Status < http.StatusInternalServerError
		switch {
		case errors.Is(err, errDone):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !s.ever || final:
			return err
		}
		if !s.lost && !errors.Is(err, errResume) {
			s.lost = true
			s.notice(Notice{Lost: err})
		}
		s.failures++
		wait := s.client.cfg.Pause
		wait = cmp.Or(wait, min(50*time.Millisecond<<min(s.failures, 8), 3*time.Second))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// once asks and gives what comes until the stream ends. Its error says why.
func (s *stream) once(ctx context.Context, of streamed) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(s.client.cfg.Silence, func() { cancel(errSilent) })
	defer silence.Stop()
	response, err := s.client.do(ctx, of.request())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	events := &sseReader{lines: bufio.NewReaderSize(response.Body, 64<<10), heard: func() { silence.Reset(s.client.cfg.Silence) }}
	for {
		ev, err := events.next()
		switch {
		case err != nil:
			if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
				err = cause
			} else if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF // a stream says when it ends
			}
			return s.client.unreachable(err)
		case ev.kind == "end":
			return s.end(of, ev.data)
		}
		if err := of.take(ev); err != nil {
			return err
		}
	}
}

// back notes that the yard is heard.
func (s *stream) back() {
	if s.lost {
		s.notice(Notice{})
	}
	s.ever, s.lost = true, false
}

func (s *stream) end(of streamed, data []byte) error {
	var end streamEnd
	if err := json.Unmarshal(data, &end); err != nil {
		return fmt.Errorf("read the end of a stream: %w", err)
	}
	if err := of.ended(end); err != nil {
		return err
	}
	if end.Reason == "expired" {
		s.client.signer.renew()
		return errResume
	}
	return errors.New(end.Detail)
}
