// Package natswire carries what the nodes of a yard ask each other, as requests over NATS. A node
// listens on a subject of its own, y.YARD.n.ID.INCARNATION, and answers to the inbox of who asks.
// Nothing is stored, and nothing is sent twice.
package natswire

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/cluster"
)

// Limits of serving.
const (
	// maxHandlers is how many requests a node answers at once; further ones wait in the client's
	// queue, and their askers for as long as they like to.
	maxHandlers = 256
	// handlerTimeout bounds an answer whose asker gave no time.
	handlerTimeout = cluster.AskTimeout
	// maxWait is the most that an asker is believed to wait.
	maxWait = 5 * time.Minute
	// headroom is what headers may measure beside a body.
	headroom = 4 << 10
)

// Headers of requests and answers.
const (
	headerFrom    = "Yard-From"    // ID.INCARNATION
	headerSubject = "Yard-Subject" // of the request
	headerWait    = "Yard-Wait"    // how long the asker waits, as a Go duration
	headerError   = "Yard-Error"   // text of the handler's error
	headerSize    = "Yard-Too-Large"
)

// Wire is a cluster.Wire over one connection, which its owner closes when serving has stopped.
type Wire struct {
	conn *nats.Conn
	yard string
}

var validYard = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// New makes the wire of a yard: the name tells it from others at the same servers.
func New(conn *nats.Conn, yard string) (*Wire, error) {
	if !validYard.MatchString(yard) {
		return nil, fmt.Errorf("yard name %q: 1 to 32 letters, digits, '-' and '_' are allowed", yard)
	}
	return &Wire{conn, yard}, nil
}

// token makes a node's ID one token of a subject, whatever dots it has.
func token(id string) string { return base64.RawURLEncoding.EncodeToString([]byte(id)) }

func (w *Wire) subject(n cluster.Node) string {
	return "y." + w.yard + ".n." + token(n.ID) + "." + n.Incarnation
}

func encodeNode(n cluster.Node) string { return token(n.ID) + "." + n.Incarnation }

func decodeNode(text string) cluster.Node {
	encoded, incarnation, _ := strings.Cut(text, ".")
	id, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return cluster.Node{}
	}
	return cluster.Node{ID: string(id), Incarnation: incarnation}
}

// Ask asks a node; see cluster.Wire.
func (w *Wire) Ask(ctx context.Context, r cluster.Request) ([]byte, error) {
	if most := w.most(); len(r.Body) > most {
		return nil, fmt.Errorf("request of %d bytes, at most %d are allowed (max_payload of the servers): %w", len(r.Body), most, cluster.ErrTooLarge)
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cluster.AskTimeout)
		defer cancel()
	}
	deadline, _ := ctx.Deadline()
	m := nats.NewMsg(w.subject(r.To))
	m.Data = r.Body
	m.Header.Set(headerFrom, encodeNode(r.From))
	m.Header.Set(headerSubject, r.Subject)
	m.Header.Set(headerWait, time.Until(deadline).String())
	answer, err := w.conn.RequestMsgWithContext(ctx, m)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("%s: %w", r.To, cluster.ErrNoNode)
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	if size := answer.Header.Get(headerSize); size != "" {
		return nil, fmt.Errorf("answer of %s bytes, at most %d are allowed (max_payload of the servers): %w", size, w.most(), cluster.ErrTooLarge)
	}
	if text, failed := answer.Header[headerError]; failed {
		return nil, &cluster.RemoteError{Node: r.To, Subject: r.Subject, Text: strings.Join(text, " ")}
	}
	return answer.Data, nil
}

// most is how large a body may be.
func (w *Wire) most() int { return max(0, int(w.conn.MaxPayload())-headroom) }

// Serve answers requests to a node; see cluster.Wire.
func (w *Wire) Serve(self cluster.Node, handler cluster.Handler) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{wire: w, self: self, handler: handler, ctx: ctx, room: make(chan struct{}, maxHandlers)}
	subscription, err := w.conn.Subscribe(w.subject(self), s.take)
	if err == nil {
		// The servers know it when they have answered: who asks from then on is heard.
		err = w.conn.FlushTimeout(cluster.AskTimeout)
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("listen to other nodes: %w", err)
	}
	return func() {
		_ = subscription.Unsubscribe() // fails where the connection is closed, and nothing comes then
		cancel()
		s.stop()
	}, nil
}

// server answers the requests to one node.
type server struct {
	wire    *Wire
	self    cluster.Node
	handler cluster.Handler
	ctx     context.Context // of all handlers: ends when serving stops
	room    chan struct{}   // for one who answers

	mu sync.Mutex
	// stopped and running are guarded by mu, as nothing may be added to running once it is awaited.
	stopped bool
	running sync.WaitGroup
}

// take is called by the subscription's goroutine, for one request at a time. Where all are busy it
// waits, and what comes meanwhile waits behind it.
func (s *server) take(m *nats.Msg) {
	select {
	case s.room <- struct{}{}:
	case <-s.ctx.Done():
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.running.Go(func() {
		defer func() { <-s.room }()
		s.answer(m)
	})
}

func (s *server) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.running.Wait()
}

func (s *server) answer(m *nats.Msg) {
	wait, err := time.ParseDuration(m.Header.Get(headerWait))
	if err != nil || wait <= 0 {
		wait = handlerTimeout
	}
	ctx, cancel := context.WithTimeout(s.ctx, min(wait, maxWait))
	defer cancel()
	body, err := s.handler(ctx, cluster.Request{
		From: decodeNode(m.Header.Get(headerFrom)), To: s.self, Subject: m.Header.Get(headerSubject), Body: m.Data,
	})
	answer := nats.NewMsg(m.Reply)
	switch {
	case err != nil:
		answer.Header.Set(headerError, oneLine(err.Error()))
	case len(body) > s.wire.most():
		answer.Header.Set(headerSize, fmt.Sprint(len(body)))
	default:
		answer.Data = body
	}
	_ = m.RespondMsg(answer) // who asked hears nothing, and knows what that means
}

// oneLine makes a text fit for a header.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return text[:min(len(text), headroom/2)]
}
