package v1

import (
	"fmt"
	"testing"

	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// What the services of the grid say has the status that a client can act on, however deep it is
// wrapped.
func TestErrorsOfTheGridAreReportedByStatus(t *testing.T) {
	for _, tt := range []struct {
		what   string
		err    error
		status int
		kind   string
	}{
		{"what cannot be so is the client's to mend", topics.ErrInvalid, 400, "invalid-definition"},
		{"a topic that is there is a conflict", topics.ErrTopicExists, 409, "topic-exists"},
		{"and so is a subscription", topics.ErrExists, 409, "subscription-exists"},
		{"a topic that is not there is not found", topics.ErrTopicNotFound, 404, "topic-not-found"},
		{"nor is a subscription", topics.ErrNotFound, 404, "subscription-not-found"},
		{"a name that several have has to be made clear", topics.ErrAmbiguous, 409, "ambiguous-subscription"},
		{"the yard's own topic stays", topics.ErrReserved, 409, "reserved-topic"},
		{"an endpoint's no is no fault of the request's form", topics.ErrHandshake, 422, "handshake-failed"},
		{"a link that is used up is gone", topics.ErrToken, 410, "validation-link"},
		{"a dead letter that is not there is not found", deadletter.ErrNotFound, 404, "dead-letter-not-found"},
		{"what is not delivered is in no state for it", delivery.ErrNotFound, 409, "not-delivered"},
		{"nor is what is pushed", delivery.ErrNotPull, 409, "not-pull"},
		{"a lost lock is a conflict", delivery.ErrLockLost, 409, "lock-lost"},
		{"a token that is none is the client's to mend", delivery.ErrToken, 400, "invalid-lock-token"},
	} {
		p := judge(fmt.Errorf("do it: %w", fmt.Errorf("deep down: %w", tt.err)))
		if p.Status != tt.status || p.kind() != tt.kind || p.Next == "" || p.Detail == "" {
			t.Errorf("%s: %+v", tt.what, p)
		}
	}
}
