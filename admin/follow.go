package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"
)

// Notice tells whoever reads a hub that something happened between two events.
type Notice struct {
	// Lost is why the tail broke off; nil means that it is back.
	Lost error
	// Skipped: reading went on behind events that are damaged, as Lost says.
	Skipped bool
}

// Follow gives every event from the start on and goes on with each new one, until ctx
// ends, the count is reached, the hub is deleted, or the yard refuses. A tail that
// breaks off is asked for again from the last position, so that no event is missed
// and none comes twice; notice, if not nil, hears of it. Only the first attempt may
// fail: where no yard ever answered there is nothing to come back to.
func (c *Client) Follow(ctx context.Context, q Query, notice func(Notice)) iter.Seq2[json.RawMessage, error] {
	if notice == nil {
		notice = func(Notice) {}
	}
	return func(yield func(json.RawMessage, error) bool) {
		f := &follower{stream: stream{client: c, notice: notice}, query: q, yield: yield}
		if err := f.run(ctx, f.tail); err != nil {
			yield(nil, err)
		}
	}
}

// follower is one Follow under way, in the goroutine of whoever ranges over it.
type follower struct {
	stream
	query Query // From and Count move along with what was given
	yield func(json.RawMessage, error) bool
}

// stream is something that the yard keeps sending, asked for again whenever it breaks off.
type stream struct {
	client *Client
	notice func(Notice)

	ever     bool // it has begun at least once, so that there is something to come back to
	lost     bool // the last notice was that of a loss
	failures int  // ends since something came
}

// How a tail may end that is nobody's failure.
var (
	errDone   = errors.New("done")                       // all there is to give was given
	errResume = errors.New("to be resumed at once")      // the yard said where
	errStuck  = errors.New("nothing behind can be read") // not even by asking again
	errSilent = errors.New("nothing was heard of the yard for too long")
)

// run asks once after the other until an end is final.
func (s *stream) run(ctx context.Context, once func(context.Context) error) error {
	for {
		err := once(ctx)
		switch {
		case errors.Is(err, errDone):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !s.ever || isFinal(err):
			return err
		}
		if !s.lost && !errors.Is(err, errResume) {
			s.lost = true
			s.notice(Notice{Lost: err})
		}
		s.failures++
		if !s.client.pause(ctx, s.failures) {
			return ctx.Err()
		}
	}
}

// isFinal: the yard has answered, and would answer the same again.
func isFinal(err error) bool {
	var p *Problem
	return errors.Is(err, errStuck) || errors.As(err, &p) && p.Status < http.StatusInternalServerError
}

// pause waits before a stream that broke off, so often in a row, is asked for again. False means
// that ctx has ended.
func (c *Client) pause(ctx context.Context, failures int) bool {
	wait := c.cfg.Pause
	if wait == 0 {
		wait = min(50*time.Millisecond<<min(failures, 8), 3*time.Second)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// tail asks once and gives what comes until the tail ends. Its error says why.
func (f *follower) tail(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(f.client.cfg.Silence, func() { cancel(errSilent) })
	defer silence.Stop()

	query := f.query.values()
	query.Set("follow", "true")
	response, err := f.client.do(ctx, request{
		method: http.MethodGet, path: []string{"hubs", f.query.Hub, "events"}, query: query,
		header: http.Header{"Accept": {"text/event-stream"}},
	})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	events := &sseReader{lines: bufio.NewReaderSize(response.Body, 64<<10), heard: func() { silence.Reset(f.client.cfg.Silence) }}
	for {
		ev, err := events.next()
		if err != nil {
			if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
				err = cause
			} else if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF // a tail says when it ends
			}
			return f.client.unreachable(err)
		}
		f.back(ev.id)
		if err := f.take(ev); err != nil {
			return err
		}
	}
}

// back notes that the yard is heard. A tail begins with its place, before any event:
// who asked for the latest and loses it then comes back to the same latest.
func (f *follower) back(position string) {
	if f.lost {
		f.notice(Notice{})
	}
	f.ever, f.lost = true, false
	if position != "" {
		f.query.From = position
	}
}

func (f *follower) take(ev sseEvent) error {
	switch ev.kind {
	case "event":
		f.failures = 0
		if !f.yield(ev.data, nil) {
			return errDone
		}
		if f.query.Count > 0 {
			if f.query.Count--; f.query.Count == 0 {
				return errDone
			}
		}
		return nil
	case "end":
		return f.end(ev.data)
	default:
		return nil // a place alone, or something of a later yard for a later client
	}
}

// end judges why the yard ended the tail.
func (f *follower) end(data []byte) error {
	var end struct{ Reason, Detail, Resume string }
	if err := json.Unmarshal(data, &end); err != nil {
		return fmt.Errorf("read the end of a tail: %w", err)
	}
	moved := end.Resume != "" && end.Resume != f.query.From
	if moved {
		f.query.From = end.Resume
	}
	switch {
	case end.Reason == "count":
		return errDone
	case end.Reason == "expired":
		f.client.signer.renew()
		return errResume
	case end.Reason == "deleted":
		return HubDeleted(f.query.Hub)
	case end.Reason == "damaged" && moved:
		f.notice(Notice{Lost: errors.New(end.Detail), Skipped: true})
		return errResume
	case end.Reason == "damaged":
		return fmt.Errorf("%s: %w", end.Detail, errStuck)
	default:
		return errors.New(end.Detail)
	}
}
