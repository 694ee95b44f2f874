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
	of *gathering

	// Written by the subscription's goroutine, and read by who gets it from ended.
	messages []streams.Message
	previous uint64
	more     bool
	err      error
}

// gathering is what one or two requests for the same have in common.
type gathering struct {
	prefix string        // of the stream's subjects
	ended  chan *reading // has room for all

	mu    sync.Mutex
	news  time.Time // when it began, or the newest part of either came; guarded by mu
	begun bool      // a part has come; guarded by mu
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
	got, err := s.gather(ctx, stream, ask)
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

// gather asks, and gives the whole answer; errPatience where nothing has come for some time. It asks once more where
// nothing comes of the first request: a server may have been lost with it. The first stays under way, since it may
// as well be one that has much to do, and whichever ends first is taken.
func (s *Storage) gather(ctx context.Context, stream string, ask request) (*reading, error) {
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case s.life.Err() != nil:
		return nil, streams.ErrClosed
	}
	both := &gathering{prefix: s.names.prefix(stream), ended: make(chan *reading, 2), news: time.Now()}
	var numbers []uint64
	defer func() { s.reader.forget(numbers...) }()
	begin := func() error {
		number, err := s.reader.ask("$JS.API.DIRECT.GET."+s.names.stream(stream), ask, &reading{of: both})
		if err == nil {
			numbers = append(numbers, number)
		}
		return err
	}
	if err := begin(); err != nil {
		return nil, err
	}
	timer := time.NewTimer(readAgain)
	defer timer.Stop()
	for failed := 0; ; {
		select {
		case got := <-both.ended:
			if failed++; got.err == nil || failed == len(numbers) {
				return got, got.err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-s.life.Done():
			return nil, streams.ErrClosed
		case <-timer.C:
			quiet, begun := both.quiet()
			if quiet >= patience {
				return nil, errPatience
			}
			if !begun && len(numbers) == 1 {
				_ = begin() // the first is still waited for
			}
			timer.Reset(patience - quiet)
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

func (r *reader) forget(numbers ...uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, number := range numbers {
		delete(r.under, number)
	}
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
		got.of.ended <- got
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
	if len(part.Subject) <= len(g.of.prefix) || part.Subject[:len(g.of.prefix)] != g.of.prefix {
		g.err = fmt.Errorf("the stream has a message under the subject %q", part.Subject)
		return true
	}
	g.messages = append(g.messages, streams.Message{Seq: streams.Seq(part.Seq), Subject: part.Subject[len(g.of.prefix):], Data: msg.Data})
	g.of.heard()
	return false
}

func (g *gathering) heard() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.news, g.begun = time.Now(), true
}

// quiet is how long nothing has come, and whether anything has before.
func (g *gathering) quiet() (time.Duration, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Since(g.news), g.begun
}
