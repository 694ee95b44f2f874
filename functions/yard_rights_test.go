package functions_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/server"
	"github.com/eventyard/eventyard/servertest"
)

// R1, F5, F7: a host needs the rights to listen and to send: its circuit opens, probes and closes
// by itself; but to hold it takes an operator.
func TestAHostNeedsNoRightToManage(t *testing.T) {
	worker := server.Policy{Name: "worker", Rights: []string{"listen", "send"}, PrimaryKey: "worker-key-of-a-length-that-is-allowed-0123456789"}
	yard := servertest.Start(t, servertest.Listeners, func(c *server.Config) { c.Policies = []server.Policy{worker} })
	yard.Hub(t, "orders", 2)
	yard.Hub(t, "bill-poison", 1)
	endpoint, _, _ := strings.Cut(yard.ConnectionString(), ";")
	client, err := hub.Dial(t.Context(), fmt.Sprintf("%s;SharedAccessKeyName=%s;SharedAccessKey=%s;UseDevelopmentEmulator=true",
		endpoint, worker.Name, worker.PrimaryKey), hub.Config{Log: yard.Config.Log})
	testkit.Must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	var well atomic.Bool
	var done atomic.Int64
	host := functions.NewHost(client, quiet())
	host.Handle("bill", functions.Each(func(context.Context, event.Event) error {
		if !well.Load() {
			return errors.New("not well")
		}
		done.Add(1)
		return nil
	}), functions.Binding{
		Hub: "orders", Retry: functions.None(), Breaker: functions.Breaker{Failures: 1, Within: time.Minute, Probe: 100 * time.Millisecond},
	})
	for i := range 10 {
		testkit.Must(t, client.Hub("orders").SendTo(t.Context(), fmt.Sprint(i%2), event.Text(fmt.Sprint(i))))
	}
	run(t, host)
	testkit.Eventually(t, "the circuit opens", func() bool {
		s := host.Status()
		return len(s) == 1 && strings.Contains(s[0].Circuit.State, "open")
	})
	testkit.ErrorIs(t, host.Hold(t.Context(), "bill", "not allowed"), hub.ErrUnauthorized)
	well.Store(true)
	testkit.Eventually(t, "all is done or put away", func() bool {
		s := host.Status()
		return len(s) == 1 && s[0].Done+s[0].Poisoned == 10 && done.Load() > 0
	})
}
