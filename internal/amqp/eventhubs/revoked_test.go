package eventhubs

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

const revoked = "RevokedToken: "

// renew deletes a hub and makes it anew.
func (y *yard) renew(name string) {
	y.t.Helper()
	time.Sleep(time.Millisecond) // by which the two are told apart
	testkit.Must(y.t, y.broker.DeleteHub(y.t.Context(), name))
	y.hub(name, 1)
}

// H9: links end with the policy or the key that they stand on, at once and in both
// directions, however the policy was shown; others stay.
func TestLinksEndWhenTheirPolicyDoes(t *testing.T) {
	const resource = "sb://localhost/orders"
	regenerate := func(key access.Key) func(*yard) error {
		return func(y *yard) error {
			_, err := y.policies.Regenerate(y.t.Context(), "orders", "ours", key)
			return err
		}
	}
	tests := []struct {
		what               string
		change             func(y *yard) error
		primary, secondary bool // which end
	}{
		{"the policy is deleted", func(y *yard) error { return y.policies.Delete(y.t.Context(), "orders", "ours") }, true, true},
		{"the primary key is made anew", regenerate(access.PrimaryKey), true, false},
		{"the secondary key is made anew", regenerate(access.SecondaryKey), false, true},
		{"another policy is deleted", func(y *yard) error { return y.policies.Delete(y.t.Context(), "orders", "theirs") }, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newOrders(t, 1)
				y.policy("orders", "ours", auth.Send|auth.Listen)
				y.policy("orders", "theirs", auth.Send|auth.Listen)
				plain := y.dial(&goamqp.ConnOptions{SASLType: goamqp.SASLTypePlain("ours", keyOf("ours")), HostName: "localhost"})
				token, second := y.dial(nil), y.dial(nil)
				authorizeAs(t, token, "ours", resource, time.Hour)
				put := auth.Sign(resource, "ours", keyOf("ours")+"2", time.Now().Add(time.Hour))
				wantStatus(t, newRPC(t, newSession(t, second), "$cbs").ask(putToken(resource, put)), 202, "Accepted")

				open := func(c *goamqp.Conn) (*goamqp.Sender, *goamqp.Receiver) {
					s := newSession(t, c)
					return newSender(t, s, "orders", nil), newReceiver(t, s, firstPartition, listening{})
				}
				check := func(what string, ended bool, c *goamqp.Conn, sender *goamqp.Sender, receiver *goamqp.Receiver) {
					t.Helper()
					if !ended {
						testkit.Must(t, sender.Send(t.Context(), text(what), nil))
						for texts(receive(t, receiver, 1)) != what {
						}
						return
					}
					_, err := receiver.Receive(t.Context(), nil)
					wantError(t, err, condUnauthorized, revoked)
					wantError(t, sender.Send(t.Context(), text("x"), nil), condUnauthorized, revoked)
					_, err = newSession(t, c).NewSender(t.Context(), "orders", nil)
					wantError(t, err, condUnauthorized, sendRefused)
				}
				s1, r1 := open(plain)
				s2, r2 := open(token)
				s3, r3 := open(second)
				began := time.Now()
				testkit.Must(t, tt.change(y))
				synctest.Wait()
				check("the key", tt.primary, plain, s1, r1)
				check("the token", tt.primary, token, s2, r2)
				check("the token by the other key", tt.secondary, second, s3, r3)
				testkit.Equal(t, time.Since(began), 0, "it took")
			})
		})
	}
}

// A connection that has lost its rights may put another token and begin again.
func TestATokenAfterARevokedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newOrders(t, 1)
		y.policy("", "ours", auth.Send)
		conn := y.dial(nil)
		authorizeAs(t, conn, "ours", "sb://localhost/orders", time.Hour)
		sender := newSender(t, newSession(t, conn), "orders", nil)
		testkit.Must(t, y.policies.Delete(t.Context(), "", "ours"))
		synctest.Wait()
		wantError(t, sender.Send(t.Context(), text("x"), nil), condUnauthorized, revoked)
		authorizeAs(t, conn, auth.RootPolicy, "sb://localhost/orders", time.Hour)
		testkit.Must(t, newSender(t, newSession(t, conn), "orders", nil).Send(t.Context(), text("x"), nil))
	})
}

// H9: a hub that takes the name of another takes none of its links: whoever sent to the
// old one is told that it is gone, and may find the new one if he has rights to it.
func TestASenderDoesNotMoveToANewHub(t *testing.T) {
	for what, opts := range map[string]*goamqp.SenderOptions{"plain": nil, "numbered": idempotent(nil, nil, nil)} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newOrders(t, 1)
				s := y.session() // with rights to all hubs
				sender := newSender(t, s, "orders/Partitions/0", opts)
				message := func(s *goamqp.Sender) *goamqp.Message {
					if opts == nil {
						return text("x")
					}
					me := identityOf(t, s)
					return me.numbers(t, me.last+1, "x")
				}
				y.renew("orders")
				const gone = "The messaging entity 'sb://localhost/orders' could not be found."
				wantError(t, sender.Send(t.Context(), message(sender), nil), condNotFound, gone)
				wantError(t, sender.Send(t.Context(), message(sender), nil), condNotFound, gone) // the link has ended
				if stored := y.stored("orders", "0"); len(stored) != 0 {
					t.Errorf("the new hub has %q", stored)
				}
				again := newSender(t, s, "orders/Partitions/0", nil)
				testkit.Must(t, again.Send(t.Context(), text("y"), nil))
			})
		})
	}
}

// H9: rights to a hub are none to the one that takes its name, nor to one whose name
// begins with its name.
func TestRightsEndWithTheirHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("a", 1)
		y.hub("a/b", 1)
		y.policy("a", "local", auth.Manage)
		logged := y.sessionAs("local")
		conn := y.dial(nil)
		authorizeAs(t, conn, auth.RootPolicy, "sb://localhost/a", time.Hour)
		put := newSession(t, conn)
		management := map[*goamqp.Session]*rpc{logged: newRPC(t, logged, "$management"), put: newRPC(t, put, "$management")}
		check := func(hub string, may bool) {
			t.Helper()
			for s, rpc := range management {
				sender, err := s.NewSender(t.Context(), hub, nil)
				if may {
					testkit.Must(t, err)
					testkit.Must(t, sender.Close(t.Context()))
					continue
				}
				wantError(t, err, condUnauthorized, sendRefused+hub+"'.")
				answer := rpc.ask(&goamqp.Message{ApplicationProperties: map[string]any{"operation": "READ", "type": typeHub, "name": hub}})
				wantStatus(t, answer, 401, "Unauthorized access.")
			}
		}
		check("a", true)
		check("a/b", false)
		testkit.Must(t, y.broker.DeleteHub(t.Context(), "a"))
		check("a/b", false)
		time.Sleep(time.Millisecond)
		y.hub("a", 1)
		check("a", false)
		check("a/b", false)
		authorizeAs(t, conn, auth.RootPolicy, "sb://localhost/a", time.Hour)
		testkit.Must(t, newSender(t, put, "a", nil).Send(t.Context(), text("x"), nil))
	})
}

// H9: a token for a path is one for what the path is a part of now, not for a hub that is
// made there later; and an audience without a scheme begins with a host.
func TestAudiencesAreReadInOneWay(t *testing.T) {
	y := newYard(t)
	y.hub("a", 1)
	y.policy("a", "local", auth.Send)
	conn := y.dial(nil)
	s := newSession(t, conn)
	c := newRPC(t, s, "$cbs")
	life := 24 * 365 * 100 * time.Hour
	wantStatus(t, c.ask(putToken("a/b", sasToken("sb://x/a/b", "local", life))), 401, textSignature)
	wantStatus(t, c.ask(putToken("x/a/b", sasToken("sb://x/a/b", auth.RootPolicy, life))), 404, "The messaging entity 'sb://localhost/a/b' could not be found.")
	wantStatus(t, c.ask(putToken("a/b", sasToken("sb://x/a", "local", life))), 401, textAudience)
	wantStatus(t, c.ask(putToken("a", sasToken("sb://x/a", "local", life))), 401, textAudience)
	wantStatus(t, c.ask(putToken("ftp://x/a", sasToken("sb://x/a", "local", life))), 401, "Token is malformed")
	wantStatus(t, c.ask(putToken("b/a", sasToken("x/a", "local", life))), 202, "Accepted")
	y.hub("a/b", 1)
	_, err := s.NewSender(t.Context(), "a/b", nil)
	wantError(t, err, condUnauthorized, sendRefused+"a/b'.")
	newSender(t, s, "a", nil)
}

// H9: who shows nothing does not keep a connection, whatever signs of life he gives.
func TestConnectionsWithoutATokenEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newOrders(t, 1)
		y.policy("", "ours", auth.Send)
		idle, refused, late, logged := y.dial(nil), y.dial(nil), y.dial(nil), y.sessionAs("ours")
		wrong := newRPC(t, newSession(t, refused), "$cbs")
		wantStatus(t, wrong.ask(putToken("sb://localhost/orders", "SharedAccessSignature sr=x")), 401, "")
		time.Sleep(DefaultTokenTimeout - 1)
		authorizeAs(t, late, auth.RootPolicy, "sb://localhost/orders", time.Hour)
		sender := newSender(t, newSession(t, late), "orders", nil)
		time.Sleep(time.Nanosecond)
		for what, conn := range map[string]*goamqp.Conn{"idle": idle, "refused": refused} {
			<-conn.Done()
			remote := remoteError(t, conn.Err())
			if string(remote.Condition) != string(condConnectionForced) || !strings.Contains(remote.Description, "no rights for 30s: put a token at $cbs") {
				t.Errorf("%s: ended with %v", what, remote)
			}
		}
		testkit.Equal(t, y.metric("eventyard_amqp_abandoned_connections_total"), 2, "were counted")
		time.Sleep(30 * time.Minute)
		testkit.Must(t, sender.Send(t.Context(), text("x"), nil))
		testkit.Must(t, newSender(t, logged, "orders", nil).Send(t.Context(), text("x"), nil))
		testkit.Must(t, y.policies.Delete(t.Context(), "", "ours"))
		time.Sleep(DefaultTokenTimeout + time.Millisecond) // not at the same moment as the end
		if _, err := logged.NewSender(t.Context(), "orders", nil); err == nil || !strings.Contains(err.Error(), string(condConnectionForced)) {
			t.Errorf("who lost his rights is told %v", err)
		}
	})
}
