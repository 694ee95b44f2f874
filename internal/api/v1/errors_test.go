package v1

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// failing is a broker whose publishing fails.
type failing struct {
	*broker.Broker
	err error
}

func (f failing) Publish(context.Context, string, broker.Target, []eventlog.Event) (broker.Published, error) {
	return broker.Published{}, f.err
}

// H2: what storage says of a send reaches the client by status, and when to try again.
func TestSendAnswersErrorsOfStorage(t *testing.T) {
	for _, tt := range []struct {
		what       string
		err        error
		status     int
		retryAfter string
		logged     int // what the operator has to mend is logged, once for each request
	}{
		{"full", eventlog.ErrNoSpace, 507, "10", 0},
		{"in doubt", eventlog.ErrUncertain, 503, "", 0},
		{"given up", context.DeadlineExceeded, 503, "", 0},
		{"fenced", eventlog.ErrFenced, 503, "1", 0},
		{"out of reach", eventlog.ErrUnavailable, 503, "5", 0}, // C5
		{"broken", errors.New("the disk caught fire"), 500, "", 2},
	} {
		t.Run(tt.what, func(t *testing.T) {
			y := newYard(t, func(c *Config) { c.Broker = failing{c.Broker.(*broker.Broker), tt.err} })
			y.hub("orders", 1)
			y.errors.Want(tt.logged)
			got := y.want(tt.status, "POST", "/api/v1/hubs/orders/events", `[{"body":"x"}]`)
			testkit.Equal(t, got.header.Get("Retry-After"), tt.retryAfter, "Retry-After")
			xml := y.want(tt.status, "POST", "/orders/messages", "x", "Content-Type", "text/plain")
			if want := fmt.Sprintf("<Error><Code>%d</Code><Detail>", tt.status); !strings.HasPrefix(string(xml.body), want) {
				t.Errorf("REST error is %s", xml.body)
			}
		})
	}
}
