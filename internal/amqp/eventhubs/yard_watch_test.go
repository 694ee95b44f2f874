package eventhubs

import (
	"testing"
	"testing/synctest"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/groupwire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// first asks for a token.
func (c *yardCalls) first(hub string) string {
	c.t.Helper()
	r := good[groupwire.WatchReply](c.t, c.call(groupwire.OpWatch, hub, groupwire.WatchRequest{About: inDefault}))
	if r.Changed || r.Token == "" {
		c.t.Errorf("the first reply is %+v", r)
	}
	return r.Token
}

func (c *yardCalls) watch(hub, since string) (id string) {
	c.t.Helper()
	return c.start(groupwire.OpWatch, hub, groupwire.WatchRequest{About: inDefault, Since: since})
}

func (c *yardCalls) put(hub, key string) {
	c.t.Helper()
	good[groupwire.EntryReply](c.t, c.call(groupwire.OpPut, hub, groupwire.PutRequest{About: inDefault, Entry: groupwire.Entry{Key: key}}))
}

// Who waits for changes holds up nobody, is told of them, and misses none that is made
// between one request and the next.
func TestWaitingForChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newOrders(t, 1)
		y.hub("other", 1)
		c := newYardCalls(t, y.session())
		token := c.first("orders")
		poll := c.watch("orders", token)
		c.put("other", "k") // is none of its business
		synctest.Wait()
		if c.answered(poll) {
			t.Fatalf("told %+v", c.reply(poll))
		}
		c.put("orders", "a")
		reported := good[groupwire.WatchReply](t, c.reply(poll))
		if !reported.Changed || reported.Token == token {
			t.Errorf("told %+v", reported)
		}
		c.put("orders", "b")
		synctest.Wait() // nobody asks now
		if again := good[groupwire.WatchReply](t, c.reply(c.watch("orders", reported.Token))); !again.Changed {
			t.Errorf("told %+v", again)
		}
	})
}

func TestNothingChangesForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newOrders(t, 1)
		c := newYardCalls(t, y.session())
		token := c.first("orders")
		began := time.Now()
		reported := good[groupwire.WatchReply](t, c.reply(c.watch("orders", token)))
		if reported.Changed || reported.Token != token || time.Since(began) != pollWait {
			t.Errorf("told %+v after %s", reported, time.Since(began))
		}
	})
}

// A watch goes on for a while when nobody asks, and ends then. Who comes back after that is
// told that something may have changed.
func TestForsakenWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heldGroups{}
		y := newYard(t, holdGroups(h))
		y.hub("orders", 1)
		c := newYardCalls(t, y.session())
		token := c.first("orders")
		time.Sleep(pollGap - time.Second)
		synctest.Wait()
		testkit.MustEqual(t, h.watching.Load(), 1, "the watch ended at once")
		if reported := good[groupwire.WatchReply](t, c.reply(c.watch("orders", token))); reported.Changed {
			t.Errorf("told %+v", reported)
		}
		time.Sleep(pollGap)
		synctest.Wait()
		testkit.MustEqual(t, h.watching.Load(), 0, "the watch goes on for nobody")
		if reported := good[groupwire.WatchReply](t, c.reply(c.watch("orders", token))); !reported.Changed {
			t.Errorf("told %+v", reported)
		}
	})
}

// H9: when the right to the hub ends, so does the waiting, and nothing more is told.
func TestRevokedWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newOrders(t, 1)
		y.hub("other", 1)
		y.policy("orders", "listens", auth.Listen)
		y.policy("other", "stays", auth.Listen)
		conn := y.dial(nil)
		authorizeAs(t, conn, "listens", "sb://localhost/orders", time.Hour)
		authorizeAs(t, conn, "stays", "sb://localhost/other", time.Hour)
		c := newYardCalls(t, newSession(t, conn))
		poll := c.watch("orders", c.first("orders"))
		stays := c.watch("other", c.first("other"))
		synctest.Wait() // both wait
		testkit.Must(t, y.policies.Delete(t.Context(), "orders", "listens"))
		wantStatus(t, c.reply(poll), groupwire.StatusUnauthorized, textRevoked)
		wantStatus(t, c.call(groupwire.OpLeases, "orders", groupwire.LeasesRequest{About: inDefault}), groupwire.StatusUnauthorized, "Unauthorized access.")
		wantStatus(t, c.reply(stays), groupwire.StatusOK, "OK")
	})
}

// A group that is deleted is not there for who waits, either.
func TestGroupDeletedWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 1, "billing")
		c := newYardCalls(t, y.session())
		about := groupwire.About{Group: "billing"}
		good[groupwire.EntryReply](t, c.call(groupwire.OpPut, "orders", groupwire.PutRequest{About: about, Entry: groupwire.Entry{Key: "k"}}))
		first := good[groupwire.WatchReply](t, c.call(groupwire.OpWatch, "orders", groupwire.WatchRequest{About: about}))
		poll := c.start(groupwire.OpWatch, "orders", groupwire.WatchRequest{About: about, Since: first.Token})
		synctest.Wait()
		testkit.Must(t, y.broker.DeleteGroup(t.Context(), "orders", "billing"))
		for r := c.reply(poll); ; { // told of the change, or of the end
			if r.ApplicationProperties["status-code"] == int32(groupwire.StatusNotFound) {
				break
			}
			reported := good[groupwire.WatchReply](t, r)
			r = c.call(groupwire.OpWatch, "orders", groupwire.WatchRequest{About: about, Since: reported.Token})
		}
	})
}

// Those who wait leave places for those who do something. Where there are too many, who has
// waited longest is sent to ask again.
func TestTooManyWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newOrders(t, 1)
		c := newYardCalls(t, y.session())
		token := c.first("orders")
		var polls []string
		for range maxPolls {
			polls = append(polls, c.watch("orders", token))
		}
		synctest.Wait() // all of them wait
		wantStatus(t, c.reply(c.watch("orders", token)), groupwire.StatusTooMany, "At most")
		wantStatus(t, c.call(groupwire.OpLeases, "orders", groupwire.LeasesRequest{About: inDefault}), groupwire.StatusOK, "OK")
		time.Sleep(2 * pollLeast)
		last := c.watch("orders", token)
		synctest.Wait()
		answered := 0
		for _, poll := range polls {
			if c.answered(poll) {
				answered++
				if reported := good[groupwire.WatchReply](t, c.reply(poll)); reported.Changed || reported.Token != token {
					t.Errorf("told %+v", reported)
				}
			}
		}
		testkit.Equal(t, answered, 1)
		testkit.Equal(t, c.answered(last), false)
	})
}

// A connection that breaks leaves nobody waiting behind.
func TestConnectionEndsWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heldGroups{}
		y := newYard(t, holdGroups(h))
		y.hub("orders", 1)
		conn := y.dial(&goamqp.ConnOptions{SASLType: goamqp.SASLTypePlain(auth.RootPolicy, keyOf(auth.RootPolicy)), HostName: "localhost"})
		c := newYardCalls(t, newSession(t, conn))
		c.watch("orders", c.first("orders"))
		synctest.Wait()
		testkit.Must(t, conn.Close())
		synctest.Wait()
		testkit.Equal(t, h.watching.Load(), 0, "watch on")
	})
}

// Who waits for changes of a group hears of those of the next one of its name, also where
// there was nothing recorded that could be seen to go.
func TestGroupMadeAnewWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 1, "billing")
		c := newYardCalls(t, y.session())
		about := groupwire.About{Group: "billing"}
		first := good[groupwire.WatchReply](t, c.call(groupwire.OpWatch, "orders", groupwire.WatchRequest{About: about}))
		testkit.Must(t, y.broker.DeleteGroup(t.Context(), "orders", "billing"))
		testkit.Must(t, testkit.Err(y.broker.CreateGroup(t.Context(), "orders", "billing")))
		good[groupwire.EntryReply](t, c.call(groupwire.OpPut, "orders", groupwire.PutRequest{About: about, Entry: groupwire.Entry{Key: "k"}}))
		reported := good[groupwire.WatchReply](t, c.call(groupwire.OpWatch, "orders", groupwire.WatchRequest{About: about, Since: first.Token}))
		testkit.Equal(t, reported.Changed, true, "told %+v", reported)
	})
}
