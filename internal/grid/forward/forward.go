// Package forward answers for subscriptions whose shard another node holds: what is known of one, who
// receives from it and its dead letters are with the holder, and any node may be asked. It has the
// methods of the services that listeners use. Each looks here first, and asks the holder if the shard
// is there. That is one request between nodes; who is asked answers by itself, or says that the shard
// has moved.
//
// A shard that moves is nobody's for a moment. Who asks meanwhile is kept waiting, for Patience at
// most, and then told shards.ErrElsewhere.
//
// Rights are checked twice: by the listener, as ever, and by the holder, which is given what the caller
// has shown with the request (package caller) and judges it by its own policies. Sizes and numbers are
// bounded there as well: whoever has the nodes' way to each other may send anything.
package forward

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/sleep"
)

// ErrNoNode: nobody serves at that node. The request was not handled.
var ErrNoNode = errors.New("the node does not answer")

// Nodes carries requests between nodes, by the names that Owner gives.
type Nodes interface {
	// Ask asks a node and waits for the answer; ctx has a deadline. ErrNoNode means that the request
	// was not handled; after any other error it may have been.
	Ask(ctx context.Context, node, subject string, body []byte) ([]byte, error)
	// Handle sets who answers requests of a subject here, by many goroutines at once.
	Handle(subject string, handler func(ctx context.Context, body []byte) ([]byte, error))
}

// Placement knows who holds which shard. *placement.Placement is one.
type Placement interface {
	Owner(ctx context.Context, shard int) (string, error)
}

// Config is what a forwarder works with. All of it is required.
type Config struct {
	Delivery  *delivery.Service
	Dead      *deadletter.Service
	Nodes     Nodes
	Placement Placement
	// Grant gives what the caller has shown, from the context of its request, in a form of JSON that
	// Allow reads at another node; nil: nobody called. Allow says whether that allows a kind of request
	// about a subscription; its error is the caller's answer. It may wait for storage.
	Grant func(ctx context.Context) []byte
	Allow func(ctx context.Context, grant []byte, subject, subscription string) error
}

// Patience is how long a call waits for a shard that moves, AnswerTime how long the holder may take,
// beside what the caller is ready to wait for events.
const (
	Patience   = 5 * time.Second
	AnswerTime = 10 * time.Second
	pause      = 100 * time.Millisecond
)

// Bounds of the events, and of the letters of a page without the last, that one answer carries. With
// the largest event, and the form in which answers are sent, that is less than the 2 MiB which nodes
// can send each other at least.
const (
	receiveBytes = 512 << 10
	listBytes    = 256 << 10
)

// Forwarder is the services of all nodes, as seen from one. All methods may be called by many
// goroutines at once.
type Forwarder struct {
	cfg Config

	stats    kind[none, delivery.Stats]
	attempts kind[none, []delivery.AttemptRecord]
	probe    kind[none, none]
	receive  kind[receiving, []delivery.Received]
	settle   kind[settling, []settled]
	giveBack kind[[]string, none]
	list     kind[deadletter.Query, deadletter.Page]
	get      kind[int64, deadletter.Letter]
	redrive  kind[redriving, deadletter.Redriven]
	purge    kind[deadletter.Query, int]
	count    kind[none, deadletter.Counts]
	trace    kind[tracing, delivery.Trace]
}

type none struct{}

type receiving struct {
	Max, MaxBytes int
	Wait          time.Duration
}

type settling struct {
	How    delivery.Settlement
	Delay  time.Duration
	Tokens []string
}

// settled is delivery.Settled with an error that can be sent.
type settled struct {
	Token string
	Err   *failure
}

// tracing names an event of the subscription's source.
type tracing struct {
	Partition int
	Number    int64
}

type redriving struct {
	Query   deadletter.Query
	Options deadletter.RedriveOptions
}

// New makes one and answers what other nodes ask from then on.
func New(cfg Config) *Forwarder {
	f, d, dead := &Forwarder{cfg: cfg}, cfg.Delivery, cfg.Dead
	f.stats = register(f, "grid.stats", noBound, func(ctx context.Context, id string, _ none) (delivery.Stats, error) { return d.Stats(ctx, id) })
	f.attempts = register(f, "grid.attempts", noBound, func(ctx context.Context, id string, _ none) ([]delivery.AttemptRecord, error) {
		return d.Attempts(ctx, id)
	})
	f.probe = register(f, "grid.probe", noBound, func(ctx context.Context, id string, _ none) (none, error) { return none{}, d.Probe(ctx, id) })
	f.receive = register(f, "grid.receive", boundReceiving, func(ctx context.Context, id string, q receiving) ([]delivery.Received, error) {
		return d.ReceiveUpTo(ctx, id, q.Max, q.MaxBytes, q.Wait)
	})
	f.settle = register(f, "grid.settle", boundSettling, func(ctx context.Context, id string, q settling) ([]settled, error) {
		all, err := d.Settle(ctx, id, q.How, q.Delay, q.Tokens)
		return settledOf(all), err
	})
	f.giveBack = register(f, "grid.giveback", boundTokens, func(ctx context.Context, id string, tokens []string) (none, error) {
		return none{}, d.GiveBack(ctx, id, tokens)
	})
	f.list = register(f, "grid.dead.list", boundListing, dead.List)
	f.get = register(f, "grid.dead.get", noBound, dead.Get)
	f.redrive = register(f, "grid.dead.redrive", boundRedriving, func(ctx context.Context, id string, q redriving) (deadletter.Redriven, error) {
		return dead.Redrive(ctx, id, q.Query, q.Options)
	})
	f.purge = register(f, "grid.dead.purge", boundQuery, dead.Purge)
	f.count = register(f, "grid.dead.count", noBound, func(ctx context.Context, id string, _ none) (deadletter.Counts, error) { return dead.Counts(ctx, id) })
	f.trace = register(f, "grid.trace", boundTracing, func(ctx context.Context, id string, q tracing) (delivery.Trace, error) {
		return d.Trace(ctx, id, q.Partition, q.Number)
	})
	return f
}

// kind is one kind of request: how it is answered here, and by what subject elsewhere.
type kind[Q, A any] struct {
	f       *Forwarder
	subject string
	bound   func(Q) (Q, error)
	here    func(ctx context.Context, subscription string, q Q) (A, error)
}

// request and answer are what is sent.
type request[Q any] struct {
	Subscription string          `json:"subscription"`
	Grant        json.RawMessage `json:"grant,omitempty"`
	Question     Q               `json:"question"`
}

type answer[A any] struct {
	Answer A        `json:"answer"`
	Error  *failure `json:"error,omitempty"`
}

// register makes a kind, and answers requests of it: what bound makes of them, by here.
func register[Q, A any](f *Forwarder, subject string, bound func(Q) (Q, error), here func(ctx context.Context, subscription string, q Q) (A, error)) kind[Q, A] {
	k := kind[Q, A]{f, subject, bound, here}
	f.cfg.Nodes.Handle(subject, k.handle)
	return k
}

// handle answers another node. Nothing of the request is believed: Allow judges the caller first, and
// then the question is bounded.
func (k kind[Q, A]) handle(ctx context.Context, body []byte) ([]byte, error) {
	if len(body) > maxRequestBytes {
		return nil, fmt.Errorf("a request of %d bytes: at most %d are allowed", len(body), maxRequestBytes)
	}
	var r request[Q]
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("read a request of another node: %w", err)
	}
	var a answer[A]
	err := k.f.cfg.Allow(ctx, r.Grant, k.subject, r.Subscription)
	if err == nil {
		r.Question, err = k.bound(r.Question)
	}
	if err == nil {
		a.Answer, err = k.here(ctx, r.Subscription, r.Question)
	}
	a.Error = failureOf(err)
	return json.Marshal(a)
}

// call answers here, or asks the holder of the subscription's shard, for up to wait longer than an
// answer takes.
func (k kind[Q, A]) call(ctx context.Context, subscription string, q Q, wait time.Duration) (A, error) {
	for began := time.Now(); ; {
		a, err := k.here(ctx, subscription, q)
		if !errors.Is(err, shards.ErrElsewhere) {
			return a, err
		}
		if a, err = k.ask(ctx, subscription, q, wait); !isMoving(err) {
			return a, err
		}
		if time.Since(began) >= Patience || sleep.For(ctx, pause, nil) != nil {
			return a, fmt.Errorf("%w, which cannot be asked: %w", shards.ErrElsewhere, err)
		}
	}
}

// isMoving reports whether an error is one of those that pass when a shard has moved, and after which
// nothing has been done.
func isMoving(err error) bool {
	return errors.Is(err, shards.ErrElsewhere) || errors.Is(err, ErrNoNode)
}

// ask asks the holder once. Where there is none, ErrNoNode.
func (k kind[Q, A]) ask(ctx context.Context, subscription string, q Q, wait time.Duration) (A, error) {
	var got answer[A]
	node, err := k.f.cfg.Placement.Owner(ctx, shards.Of(subscription))
	if err != nil {
		return got.Answer, fmt.Errorf("%w: %w", ErrNoNode, err)
	}
	r := request[Q]{Subscription: subscription, Grant: k.f.cfg.Grant(ctx), Question: q}
	body, err := json.Marshal(r)
	if err != nil {
		return got.Answer, fmt.Errorf("ask another node: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, wait+AnswerTime)
	defer cancel()
	body, err = k.f.cfg.Nodes.Ask(ctx, node, k.subject, body)
	if err == nil {
		err = json.Unmarshal(body, &got)
	}
	if err != nil {
		return got.Answer, fmt.Errorf("ask node %s, which delivers the subscription: %w", node, err)
	}
	return got.Answer, got.Error.err()
}

// Answer is what a node answers another with, in the form of all kinds here: a value, or the error that
// the caller is to be told.
func Answer(value any, err error) ([]byte, error) {
	return json.Marshal(answer[any]{Answer: value, Error: failureOf(err)})
}

// ErrorIn gives the error that an answer between nodes holds, whatever its kind; nil: it holds none.
func ErrorIn(body []byte) error {
	var a answer[json.RawMessage]
	if err := json.Unmarshal(body, &a); err != nil {
		return err
	}
	return a.Error.err()
}
