package functions

import (
	"context"
	"errors"
	"net/http"
	"reflect"

	"github.com/eventyard/eventyard/internal/functions/invoke"
)

// HTTPConfig says how a program is called over HTTP. The zero HTTPConfig sends CloudEvents.
type HTTPConfig struct {
	// Format is cloudevents (or empty), a batch of CloudEvents 1.0, or eventhubs, JSON in the terms
	// of Event Hubs.
	Format string
	// Header is sent with every call.
	Header http.Header
	// Client sends; nil: one of its own. Redirects are not followed.
	Client *http.Client
}

// HTTP is a handler that calls a program in any language: docs/guides/functions-http.md has what is
// sent and what may be answered. A URL or format that makes no sense is an error of Host.Run.
func HTTP(url string, cfg HTTPConfig) Handler {
	f := &httpFunction{}
	f.caller, f.err = invoke.New(invoke.Config{URL: url, Format: invoke.Format(cfg.Format), Header: cfg.Header, Client: cfg.Client})
	return f.handle
}

// httpFunction is what is behind a handler that HTTP made.
type httpFunction struct {
	caller *invoke.Caller // nil: see err
	err    error
}

// whoKey is in the context with which a host asks a handler of HTTP's making for what is behind it.
type whoKey struct{}

// httpOf gives what is behind a handler; nil: HTTP did not make it, or something is around it. A
// function cannot be asked what it is but by calling it, which must not happen to those of others:
// so its code is looked at first.
func httpOf(h Handler) *httpFunction {
	if reflect.ValueOf(h).Pointer() != reflect.ValueOf((&httpFunction{}).handle).Pointer() {
		return nil
	}
	var f *httpFunction
	_ = h(context.WithValue(context.Background(), whoKey{}, &f), nil)
	return f
}

func (f *httpFunction) handle(ctx context.Context, b *Batch) error {
	if ask, ok := ctx.Value(whoKey{}).(**httpFunction); ok {
		*ask = f
		return nil
	}
	if f.err != nil {
		return f.err
	}
	answer, err := f.caller.Do(ctx, invoke.Call{
		Function: b.Function, Hub: b.Hub, Group: b.Group, Partition: b.Partition, Attempt: b.Attempt, Epoch: b.Epoch, Events: b.Events,
	})
	switch {
	case errors.Is(err, invoke.ErrNotConnected):
		return &unavailable{err, true}
	case err != nil:
		return err
	}
	return verdictOf(answer)
}

// verdictOf puts an answer into a handler's words.
func verdictOf(a invoke.Answer) error {
	if a.Each == nil {
		return wordOf(a.Result)
	}
	r := &Results{}
	for target, result := range a.Each {
		if result.Verdict == invoke.Untouched {
			r.Untouched = append(r.Untouched, target)
		} else if err := wordOf(result); err != nil {
			r.fail(target, err)
		}
	}
	return r.verdict()
}

func wordOf(r invoke.Result) error {
	switch r.Verdict {
	case invoke.Done:
		return nil
	case invoke.Skip:
		return Skip(r.Error)
	case invoke.Later:
		return RetryAfter(r.Wait, said(r.Error))
	case invoke.Poison:
		return Poison(said(r.Error))
	case invoke.Unavailable, invoke.Unreachable:
		err := error(&unavailable{errors.New(r.Error), r.Verdict == invoke.Unreachable})
		if r.Wait > 0 {
			err = RetryAfter(r.Wait, err)
		}
		return err
	}
	return errors.New(r.Error)
}

// said is what the program gave as its reason; nil: nothing.
func said(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}
