package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
	"github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/grid"
	"github.com/eventyard/eventyard/internal/testkit"
)

// refusals are what clients were told that do not try again by themselves.
type refusals struct {
	mu  sync.Mutex
	all []heard // guarded by mu
}

// heard is what an attempt was told that began at some time.
type heard struct {
	begun time.Time
	kind  refusal
}

// refusal is a kind of errors after which a client tries again, where it is let.
type refusal string

const (
	busy     refusal = "server-busy"
	timedOut refusal = "timeout"
	detached refusal = "operation-cancelled"
	lost     refusal = "lost link or connection"
	// unanswered: the client has given up before there was an answer.
	unanswered refusal = "unanswered"
)

// add notes what an attempt was told. It returns an error after which the client would have given up.
func (r *refusals) add(begun time.Time, err error, of func(error) (refusal, bool)) error {
	kind, ok := of(err)
	if !ok {
		return fmt.Errorf("a client would not try again after this: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, heard{begun, kind})
	return nil
}

// counts are how many there were of each kind, of all attempts.
func (r *refusals) counts() map[refusal]int { return r.during(span{}) }

// during are those of attempts that began in a span.
func (r *refusals) during(s span) map[refusal]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	kinds := map[refusal]int{}
	for _, h := range r.all {
		if s.has(h.begun) {
			kinds[h.kind]++
		}
	}
	return kinds
}

// span is a time in which something was so; the zero one is all time.
type span struct{ from, to time.Time }

func (s span) has(at time.Time) bool {
	return s == span{} || !at.Before(s.from) && at.Before(s.to)
}

// judgeMinority judges what publishers of some kind were told whose attempts began while there was no majority. Call it
// when all of them have ended.
func (r *refusals) judgeMinority(t testing.TB, who string, s span) {
	t.Helper()
	kinds := r.during(s)
	testkit.That(t, kinds[busy]+kinds[timedOut] > 0, "no %s was told that there is no majority, but %v: this proves nothing", who, kinds)
	testkit.That(t, kinds[unanswered] == 0, "%d attempts of a %s had no answer within %v while there was no majority; others were told: %v", kinds[unanswered], who, answerTime, kinds)
	t.Logf("without a majority for %v, %ss were told: %v", s.to.Sub(s.from).Round(time.Second), who, kinds)
}

// refusalOf reads an error as the official client does when it decides on another attempt: azeventhubs,
// internal/errors.go, GetRecoveryKind.
func refusalOf(err error) (kind refusal, ok bool) {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return unanswered, true
	}
	if known, is := errors.AsType[*azeventhubs.Error](err); is { // what it wraps cannot be seen
		return lost, known.Code == azeventhubs.ErrorCodeConnectionLost
	}
	if said, is := errors.AsType[*amqp.Error](err); is {
		switch said.Condition {
		case "com.microsoft:server-busy":
			return busy, true
		case "com.microsoft:timeout":
			return timedOut, true
		case "com.microsoft:operation-cancelled":
			return detached, true
		}
		return "", false
	}
	var answer interface{ RPCCode() int } // of $cbs and of $management
	if errors.As(err, &answer) {
		switch answer.RPCCode() {
		case http.StatusServiceUnavailable:
			return busy, true
		case http.StatusRequestTimeout, http.StatusInternalServerError:
			return timedOut, true
		}
	}
	return "", false
}

// webRefusalOf reads an error of a publisher to a topic, or of the management API, as clients of Event Grid and of HTTP
// do: 503 says that the same may succeed later, and Retry-After when. Where it is not known whether it was done, nobody
// is asked to repeat it by itself.
func webRefusalOf(err error) (kind refusal, ok bool) {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return unanswered, true
	}
	var (
		status  int
		after   time.Duration
		unknown bool
	)
	if said, is := errors.AsType[*grid.CallError](err); is {
		status, after, unknown = said.Status, said.RetryAfter, strings.Contains(said.Message, "may or may not have been stored")
	} else if said, is := errors.AsType[*admin.Problem](err); is {
		status, after, unknown = said.Status, said.RetryAfter, said.Kind() == "outcome-unknown"
	} else {
		return lost, true // nobody answered
	}
	switch {
	case status == http.StatusServiceUnavailable && unknown && after == 0:
		return timedOut, true
	case status == http.StatusServiceUnavailable && !unknown && after > 0:
		return busy, true
	}
	return "", false
}

// What is retriable is what the client says it tries again after.
func TestRefusalOf(t *testing.T) {
	said := func(condition amqp.ErrCond) error {
		return fmt.Errorf("send: %w", &amqp.Error{Condition: condition})
	}
	for name, tt := range map[string]struct {
		err  error
		want refusal // empty: it is not tried again
	}{
		"busy":         {said("com.microsoft:server-busy"), busy},
		"time-out":     {said("com.microsoft:timeout"), timedOut},
		"cancelled":    {said("com.microsoft:operation-cancelled"), detached},
		"lost":         {&azeventhubs.Error{Code: azeventhubs.ErrorCodeConnectionLost}, lost},
		"unanswered":   {fmt.Errorf("send: %w", context.DeadlineExceeded), unanswered},
		"unauthorized": {&azeventhubs.Error{Code: azeventhubs.ErrorCodeUnauthorizedAccess}, ""},
		"full":         {said(amqp.ErrCondResourceLimitExceeded), ""},
		"no such hub":  {said(amqp.ErrCondNotFound), ""},
		"anything":     {errors.New("something else"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var r refusals
			testkit.Equal(t, r.add(time.Now(), tt.err, refusalOf) == nil, tt.want != "", "retriable")
			testkit.Equal(t, r.counts()[tt.want] == 1, tt.want != "", "counted: %v", r.counts())
		})
	}
}

// Over HTTP an answer says when to try again, or that it is not known what was done.
func TestWebRefusalOf(t *testing.T) {
	const soon = 5 * time.Second
	unknown := "the outcome is unknown: it may or may not have been stored"
	for name, tt := range map[string]struct {
		err  error
		want refusal // empty: it is not tried again
	}{
		"a publisher to wait":             {&grid.CallError{Status: 503, RetryAfter: soon}, busy},
		"a publisher not told when":       {&grid.CallError{Status: 503}, ""},
		"a publisher in doubt":            {&grid.CallError{Status: 503, Message: unknown}, timedOut},
		"a publisher to repeat in doubt":  {&grid.CallError{Status: 503, Message: unknown, RetryAfter: soon}, ""},
		"a publisher and a fault":         {&grid.CallError{Status: 500}, ""},
		"a publisher and no such topic":   {&grid.CallError{Status: 404}, ""},
		"a manager to wait":               {&admin.Problem{Status: 503, Type: "urn:eventyard:problem:storage-unavailable", RetryAfter: soon}, busy},
		"a manager in doubt":              {&admin.Problem{Status: 503, Type: "urn:eventyard:problem:outcome-unknown"}, timedOut},
		"a manager not told when":         {&admin.Problem{Status: 503, Type: "urn:eventyard:problem:storage-unavailable"}, ""},
		"a manager and a conflict":        {&admin.Problem{Status: 409}, ""},
		"nobody in time":                  {fmt.Errorf("publish: %w", context.DeadlineExceeded), unanswered},
		"a connection that was cut short": {errors.New("connection reset by peer"), lost},
	} {
		t.Run(name, func(t *testing.T) {
			kind, ok := webRefusalOf(tt.err)
			testkit.Equal(t, kind, tt.want)
			testkit.Equal(t, ok, tt.want != "", "retriable")
		})
	}
}

// Attempts are judged by when they began, and what was before or after a span is not of it.
func TestRefusalsDuringASpan(t *testing.T) {
	var r refusals
	begun := time.Unix(1000, 0)
	for i, err := range []error{context.DeadlineExceeded, &grid.CallError{Status: 503, RetryAfter: time.Second}, context.DeadlineExceeded} {
		testkit.Must(t, r.add(begun.Add(time.Duration(i)*time.Minute), err, webRefusalOf))
	}
	kinds := r.during(span{begun.Add(time.Minute), begun.Add(2 * time.Minute)})
	testkit.That(t, kinds[busy] == 1 && kinds[unanswered] == 0, "in the second minute: %v", kinds)
	testkit.Equal(t, r.counts()[unanswered], 2, "unanswered in all")
}
