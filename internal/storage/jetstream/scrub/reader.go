package scrub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/jetstream/answers"
)

const (
	// What is read at once of each copy.
	readMessages, readBytes = 500, 1 << 20
	// answerTime is how long the next part of an answer is waited for, and tries how often it is asked
	// for: a server may be busy, or go away.
	answerTime = 4 * time.Second
	tries      = 5
	tryPause   = time.Second
)

// ErrNotSaid: the servers do not say which of them has answered.
var ErrNotSaid = errors.New("the servers do not say which of them has answered; see that this user may trace messages")

// StreamReader reads a stream by direct gets, which any server that has a copy answers: whichever the
// servers choose, however near another is. Requests are traced, and the trace says which it was.
type StreamReader struct {
	Conn *nats.Conn
	// Stream is its name at the servers.
	Stream string
}

var _ Reader = StreamReader{}

// Read is Reader's.
func (r StreamReader) Read(ctx context.Context, from uint64, wanted Wanted) (Answer, error) {
	return r.ask(ctx, map[string]any{"seq": from, "batch": readMessages, "max_bytes": readBytes}, wanted, func(next func() (*nats.Msg, error)) (a Answer, err error) {
		for previous := uint64(0); ; {
			msg, err := next()
			if err != nil {
				return a, err
			}
			part, err := answers.ReadPart(msg.Header, previous)
			if err != nil || part.Last {
				a.More = part.Pending > 0
				return a, err
			}
			previous = part.Seq
			a.Messages = append(a.Messages, Message{part.Seq, part.Subject, msg.Data})
		}
	})
}

// Get is Reader's.
func (r StreamReader) Get(ctx context.Context, seq uint64, wanted Wanted) (Answer, error) {
	return r.ask(ctx, map[string]any{"seq": seq}, wanted, func(next func() (*nats.Msg, error)) (a Answer, err error) {
		msg, err := next()
		if err != nil {
			return a, err
		}
		part, err := answers.ReadPart(msg.Header, 0)
		if err == nil && !part.Last {
			a.Messages = []Message{{part.Seq, part.Subject, msg.Data}}
		}
		return a, err
	})
}

// Who is Reader's: the request goes its way, and is not delivered.
func (r StreamReader) Who(ctx context.Context) (string, error) {
	a, err := r.ask(ctx, map[string]any{"seq": 1}, nil, nil)
	return a.Server, err
}

// readAnswer reads an answer, whose messages next gives as they come.
type readAnswer func(next func() (*nats.Msg, error)) (Answer, error)

// ask makes a request and has its answer read, again where nobody takes it. Nothing is read where read is
// nil.
func (r StreamReader) ask(ctx context.Context, request any, wanted Wanted, read readAnswer) (Answer, error) {
	data, err := json.Marshal(request)
	if err != nil {
		return Answer{}, err
	}
	for try := 1; ; try++ {
		a, err := r.askOnce(ctx, data, wanted, read)
		switch {
		case err == nil:
			return a, nil
		case ctx.Err() != nil:
			return Answer{}, context.Cause(ctx)
		case errors.Is(err, ErrSilent) || try == tries:
			return Answer{Server: a.Server}, fmt.Errorf("read stream %s: %w", r.Stream, err)
		}
		if err := sleep.For(ctx, tryPause, nil); err != nil {
			return Answer{}, err
		}
	}
}

// askOnce waits to hear who was asked before it waits for the answer: a server that is frozen says nothing,
// and the one that has passed the request on to it does.
func (r StreamReader) askOnce(ctx context.Context, data []byte, wanted Wanted, read readAnswer) (a Answer, err error) {
	inbox := r.Conn.NewInbox()
	answer, err := r.Conn.SubscribeSync(inbox)
	if err != nil {
		return a, err
	}
	defer func() { _ = answer.Unsubscribe() }() // the connection may be closed
	trace, err := r.Conn.SubscribeSync(inbox + ".trace")
	if err != nil {
		return a, err
	}
	defer func() { _ = trace.Unsubscribe() }()
	msg := &nats.Msg{Subject: "$JS.API.DIRECT.GET." + r.Stream, Reply: inbox, Data: data, Header: nats.Header{"Nats-Trace-Dest": {inbox + ".trace"}}}
	if read == nil {
		msg.Header.Set("Nats-Trace-Only", "true")
	}
	if err := r.Conn.PublishMsg(msg); err != nil {
		return a, err
	}
	server, err := answeredBy(ctx, trace)
	if err == nil && read != nil && wanted(server) {
		a, err = read(func() (*nats.Msg, error) { return next(ctx, answer, ErrSilent) })
	}
	a.Server = server
	return a, err
}

// next gives the next message that is heard.
func next(ctx context.Context, sub *nats.Subscription, late error) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, late)
	defer cancel()
	msg, err := sub.NextMsgWithContext(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return msg, err
}

// route is how a trace names connections between the servers of a cluster.
const route = 1

// traced is what a server says of a message that it was given.
type traced struct {
	Server struct {
		Name string `json:"name"`
	} `json:"server"`
	Events []struct {
		Type string `json:"type"`
		Kind int    `json:"kind"`
		Name string `json:"name"`
	} `json:"events"`
}

// answeredBy waits for the trace of a request: the server that it was given to has answered itself, or has
// passed it on.
func answeredBy(ctx context.Context, trace *nats.Subscription) (string, error) {
	for {
		msg, err := next(ctx, trace, ErrNotSaid)
		if err != nil {
			return "", err
		}
		var t traced
		if err := json.Unmarshal(msg.Data, &t); err != nil {
			return "", fmt.Errorf("%w: %w", ErrNotSaid, err)
		}
		server, given := t.Server.Name, false
		for _, e := range t.Events {
			switch {
			case e.Type == "in" && e.Kind != route:
				given = true
			case e.Type == "eg" && e.Kind == route:
				server = e.Name
			}
		}
		if given {
			return server, nil
		}
	}
}
