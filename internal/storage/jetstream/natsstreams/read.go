package natsstreams

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/storage/jetstream/answers"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// How much one request asks for at most, so that no server takes us for a slow reader and cuts the
// connection; how many messages, unless the query says.
const (
	maxReadBytes = 4 << 20
	readMessages = 1000
)

// reader asks for messages, and gathers the parts of the answers.
type reader struct {
	conn    *nats.Conn
	inbox   string
	answers *nats.Subscription

	mu    sync.Mutex
	last  uint64              // the number of the newest request
	under map[uint64]*reading // those under way
}

// reading is one request.
type reading struct {
	prefix string // of the stream's subjects
	ended  chan struct{}

	// Written by the subscription's goroutine; err, more and messages are read once ended is closed.
	messages []streams.Message
	previous uint64
	more     bool
	err      error

	mu   sync.Mutex
	news time.Time // when the newest part came
}

func newReader(conn *nats.Conn) (*reader, error) {
	r := &reader{conn: conn, inbox: conn.NewInbox() + ".", under: make(map[uint64]*reading)}
	var err error
	r.answers, err = listen(conn, r.inbox, r.heard)
	return r, err
}

func (r *reader) close() { _ = r.answers.Unsubscribe() }

// Read is streams.Storage's.
func (s *Storage) Read(ctx context.Context, stream string, q streams.Query) (streams.Part, error) {
	part, err := s.read(ctx, stream, q)
	if errors.Is(err, answers.ErrNobody) { // there is no stream, or no server that has it
		if _, err = s.State(ctx, stream); err == nil {
			err = fmt.Errorf("%w: no replica answers", streams.ErrUnavailable)
		}
	}
	if err != nil {
		return streams.Part{}, fmt.Errorf("read stream %s from %d: %w", stream, q.From, err)
	}
	return part, nil
}

func (s *Storage) read(ctx context.Context, stream string, q streams.Query) (streams.Part, error) {
	if err := checkStream(stream); err != nil {
		return streams.Part{}, err
	}
	ask := request{
		Seq: max(1, uint64(q.From)), Batch: cmp.Or(q.MaxMessages, readMessages),
		MaxBytes: min(cmp.Or(q.MaxBytes, maxReadBytes), maxReadBytes),
	}
	if q.Subject != "" {
		if err := checkSubject(q.Subject); err != nil {
			return streams.Part{}, err
		}
		ask.NextFor = s.names.prefix(stream) + q.Subject
	}
	got, err := s.gather(ctx, stream, ask, readAgain)
	if errors.Is(err, errPatience) {
		got, err = s.gather(ctx, stream, ask, patience-readAgain)
	}
	if err != nil {
		return streams.Part{}, err
	}
	part := streams.Part{Messages: got.messages, More: got.more}
	if n := len(part.Messages); n > 0 && !part.More && q.Subject == "" {
		part.Through = part.Messages[n-1].Seq
	}
	return part, nil
}

// request is what a direct get takes.
type request struct {
	Seq      uint64 `json:"seq"`
	NextFor  string `json:"next_by_subj,omitempty"`
	Batch    int    `json:"batch"`
	MaxBytes int    `json:"max_bytes"`
}

// gather asks, and gives the whole answer; errPatience where nothing has come for some time.
func (s *Storage) gather(ctx context.Context, stream string, ask request, patience time.Duration) (*reading, error) {
	got := &reading{prefix: s.names.prefix(stream), ended: make(chan struct{}), news: time.Now()}
	return got, s.await(ctx, "$JS.API.DIRECT.GET."+s.names.stream(stream), ask, got, patience)
}

// await sends a request and waits for the end of its answer, for as long as parts of it come.
func (s *Storage) await(ctx context.Context, subject string, ask request, got *reading, patience time.Duration) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case s.life.Err() != nil:
		return streams.ErrClosed
	}
	number, err := s.reader.ask(subject, ask, got)
	if err != nil {
		return err
	}
	defer s.reader.forget(number)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case <-got.ended:
			return got.err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.life.Done():
			return streams.ErrClosed
		case <-timer.C:
			left := patience - got.quiet()
			if left <= 0 {
				return errPatience
			}
			timer.Reset(left)
		}
	}
}

func (r *reader) ask(subject string, ask request, got *reading) (uint64, error) {
	if !r.conn.IsConnected() {
		if r.conn.IsClosed() {
			return 0, streams.ErrClosed
		}
		return 0, errUnconnected
	}
	data, err := json.Marshal(ask)
	if err != nil {
		return 0, err
	}
	r.mu.Lock()
	r.last++
	number := r.last
	r.under[number] = got
	r.mu.Unlock()
	if err := r.conn.PublishRequest(subject, r.inbox+strconv.FormatUint(number, 10), data); err != nil {
		r.forget(number)
		return 0, plain(err)
	}
	return number, nil
}

func (r *reader) forget(number uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.under, number)
}

// heard takes in a part of an answer.
func (r *reader) heard(msg *nats.Msg) {
	number := numbered(r.inbox, msg.Subject)
	r.mu.Lock()
	got := r.under[number]
	r.mu.Unlock()
	if got == nil {
		return
	}
	if got.take(msg) {
		r.forget(number)
		close(got.ended)
	}
}

// take adds a part; true: it was the last, or the answer is of no use.
func (g *reading) take(msg *nats.Msg) (ended bool) {
	part, err := answers.ReadPart(msg.Header, g.previous)
	switch {
	case errors.Is(err, answers.ErrNobody):
		g.err = err
		return true
	case err != nil:
		g.err = fmt.Errorf("%w: %w", streams.ErrUnavailable, err)
		return true
	case part.Last:
		g.more = part.Pending > 0
		return true
	}
	g.previous = part.Seq
	if len(part.Subject) <= len(g.prefix) || part.Subject[:len(g.prefix)] != g.prefix {
		g.err = fmt.Errorf("the stream has a message under the subject %q", part.Subject)
		return true
	}
	g.messages = append(g.messages, streams.Message{Seq: streams.Seq(part.Seq), Subject: part.Subject[len(g.prefix):], Data: msg.Data})
	g.mu.Lock()
	g.news = time.Now()
	g.mu.Unlock()
	return false
}

// quiet is how long nothing has come.
func (g *reading) quiet() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Since(g.news)
}
