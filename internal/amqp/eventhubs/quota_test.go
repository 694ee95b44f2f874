package eventhubs

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R4: what a client sends behind a message that a quota refused, before it can hear of that, is
// refused, too, whether events are numbered or not: sent again in order it is stored in order. Other
// links of the connection do not wait.
func TestNothingOvertakesWhatAQuotaRefused(t *testing.T) {
	for name, options := range map[string]*goamqp.SenderOptions{"plain": nil, "numbered": idempotent(nil, nil, nil)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newOrders(t, 1)
				y.hub("others", 1)
				testkit.Must(t, testkit.Err(y.broker.UpdateHub(t.Context(), "orders", broker.HubChange{QuotaEvents: ptr(int64(10))})))
				s := y.session()
				sender, other := newSender(t, s, "orders/Partitions/0", options), newSender(t, s, "others", nil)
				send := func(n int) goamqp.SendReceipt {
					m := text(fmt.Sprint(n))
					if options != nil {
						m = identityOf(t, sender).numbers(t, int32(n+1), fmt.Sprint(n))
					}
					return testkit.Value(sender.SendWithReceipt(t.Context(), m, nil))(t)
				}
				refused := func(r goamqp.SendReceipt) bool {
					rejected, is := testkit.Value(r.Wait(t.Context()))(t).(*goamqp.StateRejected)
					if is {
						wantError(t, rejected.Error, condBusy, "")
					}
					return is
				}
				var want []string
				for n := range 30 {
					want = append(want, fmt.Sprint(n))
				}
				ahead, next := 5, 0
				for next < len(want) { // it pipelines, and goes back to the first that was refused
					var receipts []goamqp.SendReceipt
					for n := next; n < min(next+ahead, len(want)); n++ {
						receipts = append(receipts, send(n))
						time.Sleep(30 * time.Millisecond) // on the way there is room again
					}
					for _, r := range receipts {
						if refused(r) {
							began := time.Now()
							testkit.Must(t, other.Send(t.Context(), text("x"), nil))
							testkit.Equal(t, time.Since(began), 0, "wait of another link")
							time.Sleep(time.Second)
							break
						}
						next++
					}
				}
				testkit.Diff(t, want, y.stored("orders", "0"))
			})
		})
	}
}

// R4: the quota of a policy holds for all its links together, whether events are numbered or not,
// and for nobody else's.
func TestTheQuotaOfAPolicyHoldsForAllItsLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newOrders(t, 1)
		y.hub("others", 1)
		y.policy("", "till", auth.Send)
		s := y.sessionAs("till")
		numbered, plain := newSender(t, s, "orders/Partitions/0", idempotent(nil, nil, nil)), newSender(t, y.sessionAs("till"), "others", nil)
		testkit.Must(t, testkit.Err(y.policies.Limit(t.Context(), "", "till", func(l *quota.Limit) { l.Events = 3 }))) // links stand already
		testkit.Must(t, numbered.Send(t.Context(), identityOf(t, numbered).numbers(t, 1, "a", "b"), nil))
		testkit.Must(t, plain.Send(t.Context(), text("c"), nil))
		testkit.Must(t, newSender(t, y.session(), "orders", nil).Send(t.Context(), text("d"), nil))
		wantError(t, plain.Send(t.Context(), text("e"), nil), condBusy, `The request was terminated because the entity is being throttled. Error code : 50002. Please wait 1 seconds and try again: the quota of policy "till" for events a second`)
		wantError(t, numbered.Send(t.Context(), identityOf(t, numbered).numbers(t, 3, "f"), nil), condBusy, "")
		time.Sleep(time.Second)
		testkit.Must(t, numbered.Send(t.Context(), identityOf(t, numbered).numbers(t, 3, "f"), nil))
		testkit.Diff(t, []string{"a", "b", "d", "f"}, y.stored("orders", "0"))
	})
}

// R4: a link that lives on by another policy than it was attached with is counted for that one.
func TestALinkIsCountedForThePolicyItStandsOn(t *testing.T) {
	const resource = "sb://localhost/orders"
	for what, end := range map[string]func(y *yard) error{
		"the first policy is deleted": func(y *yard) error { return y.policies.Delete(y.t.Context(), "orders", "first") },
		"its key is made anew": func(y *yard) error {
			return testkit.Err(y.policies.Regenerate(y.t.Context(), "orders", "first", access.PrimaryKey))
		},
		"its token has expired": func(*yard) error { time.Sleep(time.Minute + 2*grace); return nil },
	} {
		for name, options := range map[string]*goamqp.SenderOptions{"plain": nil, "numbered": idempotent(nil, nil, nil)} {
			t.Run(what+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					y := newOrders(t, 1)
					y.policy("orders", "first", auth.Send)
					y.policy("orders", "second", auth.Send)
					testkit.Must(t, testkit.Err(y.policies.Limit(t.Context(), "orders", "second", func(l *quota.Limit) { l.Events = 1 })))
					conn := y.dial(nil)
					authorizeAs(t, conn, "first", resource, time.Minute)
					authorizeAs(t, conn, "second", resource, time.Hour)
					sender := newSender(t, newSession(t, conn), "orders/Partitions/0", options)
					sent := 0
					send := func() error {
						m := text(fmt.Sprint(sent))
						if options != nil {
							m = identityOf(t, sender).numbers(t, int32(sent+1), fmt.Sprint(sent))
						}
						err := sender.Send(t.Context(), m, nil)
						if err == nil {
							sent++
						}
						return err
					}
					for range 10 {
						testkit.Must(t, send())
					}
					testkit.Must(t, end(y))
					synctest.Wait()
					testkit.Must(t, send())
					wantError(t, send(), condBusy, "")
				})
			})
		}
	}
}
