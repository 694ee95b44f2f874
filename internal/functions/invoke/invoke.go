// Package invoke calls a function over HTTP: a batch of events as CloudEvents or as Event Hubs-like
// JSON out, a verdict on the batch or on single events back. It tries once, and decides nothing:
// what becomes of a batch that failed is its caller's to say. docs/guides/functions-http.md is what
// it promises to writers of functions.
package invoke

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/eventyard/eventyard/event"
)

// Format of a request's body.
type Format string

const (
	// CloudEvents is a batch of CloudEvents 1.0 (application/cloudevents-batch+json).
	CloudEvents Format = "cloudevents"
	// EventHubs is JSON with body, properties, systemProperties, partitionKey, sequenceNumber,
	// offset, enqueuedTimeUtc, … as Event Hubs' clients call them.
	EventHubs Format = "eventhubs"
)

// Config says what is called.
type Config struct {
	URL    string
	Format Format // empty: CloudEvents
	// Header is sent with every call, beside what is the yard's own.
	Header http.Header
	// Client sends; nil: one of its own. Redirects are not followed. The deadline is the caller's
	// context.
	Client *http.Client
	// MaxAnswerBytes is what is read of an answer; 0: 1 MiB.
	MaxAnswerBytes int64
	// MaxRetryAfter caps what an answer may ask for; 0: 1 h.
	MaxRetryAfter time.Duration
}

// Caller calls one URL. It may be used by many goroutines at once.
type Caller struct {
	cfg    Config
	client *http.Client
	url    *url.URL
	// header is what all requests have in common; it is never changed.
	header http.Header
}

// New gives one. A configuration that makes no sense is an error that says what to do.
func New(cfg Config) (*Caller, error) {
	cfg.Format = cmp.Or(cfg.Format, CloudEvents)
	if cfg.MaxAnswerBytes <= 0 {
		cfg.MaxAnswerBytes = 1 << 20
	}
	if cfg.MaxRetryAfter <= 0 {
		cfg.MaxRetryAfter = time.Hour
	}
	u, err := cfg.check()
	if err != nil {
		return nil, err
	}
	return &Caller{cfg: cfg, client: clientOf(cfg.Client), url: u, header: cfg.commonHeader()}, nil
}

// Call is what a function is called with.
type Call struct {
	Function, Hub, Group, Partition string
	Attempt                         int
	Epoch                           int64
	Events                          []event.Event
}

// Verdict is what the program says.
type Verdict int

const (
	Done Verdict = iota
	Failed
	Later // after Result.Wait, which is more than nothing
	Poison
	Skip
	Untouched // of single events only, and never of all
	// Unavailable: 502, 503 or 504, or the connection broke before the answer was there in full.
	// Result.Wait is what the program asks for; 0: nothing.
	Unavailable
	Unreachable // there was no connection
)

// Result is a verdict on all events, or on one.
type Result struct {
	Verdict Verdict
	Wait    time.Duration
	Error   string
}

// Answer is what came of a call.
type Answer struct {
	Result
	// Each has verdicts on single events by their index; nil: Result is for all. With it, events
	// that are not there are done.
	Each   map[int]Result
	Status int // 0: there was no answer
}

// Do calls. Its error is ctx's own, by its cause (and ErrNotConnected where that is so), and
// nothing else: all that the other side or the network does wrong is an answer, Failed, Unavailable
// or Unreachable, with a text that says what to do. An answer that is there in full counts, also
// when ctx ends at that moment. Nothing of the events is looked at after it has returned.
//
// A request may arrive twice: where a kept connection turns out to be closed before a byte of the
// answer came, it is sent once more over another.
func (c *Caller) Do(ctx context.Context, call Call) (Answer, error) {
	if ctx.Err() != nil {
		return Answer{}, context.Cause(ctx)
	}
	if len(call.Events) == 0 {
		return Answer{}, nil // nothing to do is done
	}
	if looped, any := endLoops(call.Events); any {
		return looped, nil
	}
	l := borrow()
	defer l.letGo()
	if err := l.write(c.cfg.Format, &call); err != nil {
		return failed(0, "the batch could not be written: "+err.Error()), nil
	}
	return c.exchange(ctx, &call, l)
}

// Close lets connections go that are kept for further calls, if the client is one of its own. The
// caller can still be used.
func (c *Caller) Close() {
	if c.cfg.Client == nil {
		c.client.CloseIdleConnections()
	}
}

// exchange sends what is written and reads the answer.
func (c *Caller) exchange(ctx context.Context, call *Call, l *loan) (Answer, error) {
	var response *http.Response
	var reach reach
	body, err := l.open()
	if err == nil {
		r := blank.WithContext(reach.trace(ctx))
		r.URL, r.Header = c.url, c.headerOf(ctx, call)
		r.Body, r.GetBody, r.ContentLength = body, l.open, int64(len(l.body))
		response, err = c.client.Do(r)
	}
	if err != nil {
		switch {
		case ctx.Err() == nil:
			verdict := reach.failed(err)
			return failedAs(verdict, 0, c.explain(verdict, err)), nil
		case reach.connecting.Load():
			return Answer{}, fmt.Errorf("%w: %w to %s://%s", context.Cause(ctx), ErrNotConnected, c.url.Scheme, c.url.Host)
		}
		return Answer{}, context.Cause(ctx)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusSwitchingProtocols {
		return failed(response.StatusCode, "answered 101 Switching Protocols: it has to answer in HTTP"), nil // what follows has no end, and heeds no context
	}
	if err := l.readAnswer(response.Body, c.cfg.MaxAnswerBytes); err != nil {
		if ctx.Err() != nil {
			return Answer{}, context.Cause(ctx)
		}
		verdict := Unavailable
		if errors.Is(err, errTooLong) {
			verdict = Failed
		}
		return failedAs(verdict, response.StatusCode, c.explainAnswer(response, err)), nil
	}
	r := reading{call: call, maxWait: c.cfg.MaxRetryAfter, now: time.Now()}
	return r.answer(response.StatusCode, response.Header, l.answer), nil
}

// failed is an answer for all events.
func failed(status int, text string) Answer { return failedAs(Failed, status, text) }

func failedAs(v Verdict, status int, text string) Answer {
	return Answer{Result: Result{Verdict: v, Error: shorten(text, maxErrorBytes)}, Status: status}
}
