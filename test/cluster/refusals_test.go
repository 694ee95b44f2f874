package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
	"github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/testkit"
)

// refusals are what official clients were told that do not try again by themselves, by kind.
type refusals struct {
	mu    sync.Mutex
	kinds map[refusal]int // guarded by mu
}

// refusal is a kind of errors after which the official client tries again, where it is let.
type refusal string

const (
	busy     refusal = "server-busy"
	timedOut refusal = "timeout"
	detached refusal = "operation-cancelled"
	lost     refusal = "lost link or connection"
	// unanswered: the sender has given up before there was an answer.
	unanswered refusal = "unanswered"
)

// add counts an error. It returns one after which the client would have given up.
func (r *refusals) add(err error) error {
	kind, ok := refusalOf(err)
	if !ok {
		return fmt.Errorf("the official client would not try again after this: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kinds == nil {
		r.kinds = map[refusal]int{}
	}
	r.kinds[kind]++
	return nil
}

// counts are how many there were of each kind.
func (r *refusals) counts() map[refusal]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.kinds)
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
			testkit.Equal(t, r.add(tt.err) == nil, tt.want != "", "retriable")
			testkit.Equal(t, r.counts()[tt.want] == 1, tt.want != "", "counted: %v", r.counts())
		})
	}
}
