package eventhubs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/groupwire"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// yardCalls is a pair of links to $yard, by which any number of requests go at once.
type yardCalls struct {
	*rpc
	last    int
	secret  string                     // sent with each, unless it is empty
	lasts   time.Duration              // the same
	replies map[string]*goamqp.Message // that came before they were asked for
}

func newYardCalls(t testing.TB, s *goamqp.Session) *yardCalls {
	t.Helper()
	return &yardCalls{rpc: newRPC(t, s, groupwire.Node), replies: map[string]*goamqp.Message{}}
}

// start sends a request and gives its id.
func (c *yardCalls) start(operation, hub string, body any) string {
	c.t.Helper()
	data, ok := body.([]byte)
	if !ok {
		var err error
		data, err = json.Marshal(body)
		testkit.Must(c.t, err)
	}
	call := groupwire.Call{Operation: operation, Secret: c.secret, Lasts: c.lasts}
	return c.startMessage(&goamqp.Message{Data: [][]byte{data}, ApplicationProperties: call.Properties(hub)})
}

func (c *yardCalls) startMessage(m *goamqp.Message) string {
	c.t.Helper()
	c.last++
	id := fmt.Sprintf("%s/%d", c.replyTo, c.last)
	m.Properties = &goamqp.MessageProperties{MessageID: id, ReplyTo: &c.replyTo}
	testkit.Must(c.t, testkit.Err(c.sender.SendWithReceipt(c.t.Context(), m, nil)))
	return id
}

// reply awaits the reply to a request.
func (c *yardCalls) reply(id string) *goamqp.Message {
	c.t.Helper()
	for c.replies[id] == nil {
		m := testkit.Value(c.receiver.Receive(c.t.Context(), nil))(c.t)
		c.replies[m.Properties.CorrelationID.(string)] = m
	}
	return c.replies[id]
}

// answered tells whether the reply has come.
func (c *yardCalls) answered(id string) bool {
	for m := c.receiver.Prefetched(); m != nil; m = c.receiver.Prefetched() {
		c.replies[m.Properties.CorrelationID.(string)] = m
	}
	return c.replies[id] != nil
}

func (c *yardCalls) call(operation, hub string, body any) *goamqp.Message {
	c.t.Helper()
	return c.reply(c.start(operation, hub, body))
}

// good reads the body of a reply that is a success.
func good[R any](t testing.TB, m *goamqp.Message) R {
	t.Helper()
	wantStatus(t, m, groupwire.StatusOK, "OK")
	return testkit.Value(groupwire.DecodeReply[R](m.GetData()))(t)
}

var inDefault = groupwire.About{Group: "$default"} // in any case

func lease(partition, owner string, epoch int64) groupwire.Lease {
	return groupwire.Lease{Partition: partition, Owner: owner, Epoch: epoch}
}

// P8, H9: the whole life of a lease, a checkpoint and an entry, with the right to listen alone.
func TestYardKeepsWhatProcessorsShare(t *testing.T) {
	y := newYard(t)
	y.hub("Orders", 4)
	y.policy("orders", "listens", auth.Listen)
	c := newYardCalls(t, y.sessionAs("listens"))
	claimed := good[groupwire.ClaimReply](t, c.call(groupwire.OpClaim, "orders",
		groupwire.ClaimRequest{About: inDefault, Leases: []groupwire.Lease{lease("0", "a", 1), lease("3", "a", 1)}})).Leases
	if len(claimed) != 2 || claimed[0].Partition != "0" || claimed[0].Version == "" || claimed[1].Renewed.IsZero() {
		t.Fatalf("claimed %+v", claimed)
	}
	leases := good[groupwire.LeasesReply](t, c.call(groupwire.OpLeases, "ORDERS", groupwire.LeasesRequest{About: inDefault})).Leases
	if len(leases) != 2 || leases[0] != claimed[0] || leases[1] != claimed[1] {
		t.Errorf("leases are %+v", leases)
	}
	begun := good[groupwire.CheckpointReply](t, c.call(groupwire.OpBegin, "orders", groupwire.BeginRequest{About: inDefault, Lease: claimed[0]})).Checkpoint
	begun.Sequence, begun.Offset = 7, "7"
	saved := good[groupwire.CheckpointReply](t, c.call(groupwire.OpSave, "orders",
		groupwire.SaveRequest{About: inDefault, Lease: claimed[0], Checkpoint: begun})).Checkpoint
	if saved.Sequence != 7 || saved.Version == begun.Version {
		t.Errorf("saved %+v", saved)
	}
	points := good[groupwire.CheckpointsReply](t, c.call(groupwire.OpCheckpoints, "orders", groupwire.CheckpointsRequest{About: inDefault})).Checkpoints
	testkit.MustEqual(t, len(points), 1, "checkpoints are")
	testkit.Equal(t, points[0].Sequence, 7, "checkpoints are")
	entry := groupwire.Entry{Key: "presence/a", Value: []byte("here")}
	entry.Version = good[groupwire.EntryReply](t, c.call(groupwire.OpPut, "orders", groupwire.PutRequest{About: inDefault, Entry: entry})).Entry.Version
	entries := good[groupwire.EntriesReply](t, c.call(groupwire.OpEntries, "orders", groupwire.EntriesRequest{About: inDefault, Prefix: "presence/"})).Entries
	if len(entries) != 1 || string(entries[0].Value) != "here" || entries[0].Version != entry.Version {
		t.Errorf("entries are %+v", entries)
	}
	entry.Value = nil
	good[groupwire.RemoveReply](t, c.call(groupwire.OpRemove, "orders", groupwire.RemoveRequest{About: inDefault, Entry: entry}))

	// It is what the yard itself knows.
	there := testkit.Value(y.groups.Leases(t.Context(), processor.Group{Hub: "orders", Group: "$Default"}))(t)
	testkit.Equal(t, len(there), 2, "the yard knows %+v", there)
}

func TestYardRequestsThatFail(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 4, "billing")
	c := newYardCalls(t, y.session())
	about := groupwire.About{Group: "billing"}
	good[groupwire.ClaimReply](t, c.call(groupwire.OpClaim, "orders", groupwire.ClaimRequest{About: about, Leases: []groupwire.Lease{lease("0", "a", 5)}}))
	good[groupwire.EntryReply](t, c.call(groupwire.OpPut, "orders", groupwire.PutRequest{About: about, Entry: groupwire.Entry{Key: "k"}}))
	tests := []struct {
		what, operation, hub string
		body                 any
		code                 int32
		text                 string
	}{
		{"no JSON", groupwire.OpLeases, "orders", []byte("leases"), 400, "Malformed"},
		{"nothing", groupwire.OpLeases, "orders", []byte{}, 400, "Malformed"},
		{"no group", groupwire.OpLeases, "orders", []byte("{}"), 400, "Malformed: it names no group."},
		{"what nobody knows", groupwire.OpLeases, "orders", []byte(`{"group":"billing","unless":1}`), 400, "Malformed"},
		{"too much", groupwire.OpPut, "orders", groupwire.PutRequest{About: about, Entry: groupwire.Entry{Key: "k", Value: make([]byte, groupwire.MaxValueBytes+1)}}, 400, "Too large"},
		{"another operation", "drop", "orders", groupwire.LeasesRequest{About: about}, 400, "$yard does not know the operation 'drop': it knows leases, claim,"},
		{"an operator's", "force", "orders", groupwire.LeasesRequest{About: about}, 400, "$yard does not know the operation 'force'"},
		{"no hub", groupwire.OpLeases, "", groupwire.LeasesRequest{About: about}, 400, "The request names no hub."},
		{"a hub that is not there", groupwire.OpLeases, "nope", groupwire.LeasesRequest{About: about}, 404,
			"The messaging entity 'sb://localhost/nope' could not be found."},
		{"a group that is not there", groupwire.OpLeases, "orders", groupwire.LeasesRequest{About: groupwire.About{Group: "Billing"}}, 404,
			"The messaging entity 'yard:eventhub:orders~|Billing' could not be found. There is a consumer group 'billing', and case matters here."},
		{"a partition that is not there", groupwire.OpClaim, "orders", groupwire.ClaimRequest{About: about, Leases: []groupwire.Lease{lease("4", "a", 1)}}, 400,
			"The specified partition is invalid"},
		{"a key that is none", groupwire.OpPut, "orders", groupwire.PutRequest{About: about, Entry: groupwire.Entry{Key: "a//b"}}, 400, ""},
		{"an entry that is there", groupwire.OpPut, "orders", groupwire.PutRequest{About: about, Entry: groupwire.Entry{Key: "k"}}, 409, "The record was changed by someone else"},
		{"another's lease", groupwire.OpBegin, "orders", groupwire.BeginRequest{About: about, Lease: lease("0", "b", 4)}, 410, "Another instance has taken the partition"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			wantStatus(t, c.call(tt.operation, tt.hub, tt.body), tt.code, tt.text)
		})
	}
	for what, m := range map[string]*goamqp.Message{
		"no body":           {},
		"a body of a value": {Value: `{"group":"billing"}`},
		"two bodies":        {Data: [][]byte{[]byte(`{"group":`), []byte(`"billing"}`)}},
	} {
		m.ApplicationProperties = map[string]any{"operation": groupwire.OpLeases, "name": "orders"}
		wantStatus(t, c.reply(c.startMessage(m)), 400, "Malformed")
		if t.Failed() {
			t.Fatal(what)
		}
	}
}

// H9: to listen to that hub, and nothing less.
func TestRightsToYard(t *testing.T) {
	y := newOrders(t, 1)
	y.hub("other", 1)
	y.policy("orders", "sends", auth.Send)
	y.policy("orders", "listens", auth.Listen)
	y.policy("other", "elsewhere", auth.Manage)
	const refused = "Unauthorized access. 'Listen' claim(s) are required to perform this operation. Resource: 'sb://localhost/orders/$yard'."
	for policy, code := range map[string]int32{auth.RootPolicy: 200, "listens": 200, "sends": 401, "elsewhere": 401} {
		c := newYardCalls(t, y.sessionAs(policy))
		text := "OK"
		if code == 401 {
			text = refused
		}
		for _, operation := range []string{groupwire.OpLeases, groupwire.OpWatch} {
			wantStatus(t, c.call(operation, "orders", groupwire.LeasesRequest{About: inDefault}), code, text)
		}
	}
	// Who has nothing at all is not even listened to.
	_, err := newSession(t, y.dial(nil)).NewSender(t.Context(), groupwire.Node, nil)
	var said *goamqp.Error
	if !errors.As(err, &said) || said.Condition != goamqp.ErrCondUnauthorizedAccess {
		t.Errorf("attached with %v", err)
	}
}

// A yard without groups has no such node, as Event Hubs has none.
func TestNoYardNode(t *testing.T) {
	y := newYard(t, func(s *setup) { s.groups = func(Groups) Groups { return nil } })
	s := y.session()
	var said *goamqp.Error
	if _, err := s.NewSender(t.Context(), groupwire.Node, nil); !errors.As(err, &said) || said.Condition != goamqp.ErrCondNotFound {
		t.Errorf("a sender attached with %v", err)
	}
	if _, err := s.NewReceiver(t.Context(), groupwire.Node, nil); !errors.As(err, &said) || said.Condition != goamqp.ErrCondNotFound {
		t.Errorf("a receiver attached with %v", err)
	}
}

// All entries come, whatever they measure together.
func TestYardEntriesComeInPages(t *testing.T) {
	y := newOrders(t, 1)
	g := processor.Group{Hub: "orders", Group: "$Default"}
	const entries = 100
	for i := range entries {
		_, err := y.groups.Put(t.Context(), g, processor.Entry{Key: fmt.Sprintf("big/%02d", i), Value: make([]byte, groupwire.MaxValueBytes)})
		testkit.Must(t, err)
	}
	c := newYardCalls(t, y.session())
	q := groupwire.EntriesRequest{About: inDefault, Prefix: "big/"}
	var keys []string
	pages := 0
	for more := true; more; pages++ {
		r := good[groupwire.EntriesReply](t, c.call(groupwire.OpEntries, "orders", q))
		for _, f := range r.Entries {
			keys = append(keys, f.Key)
		}
		q.After, more = keys[len(keys)-1], r.More
	}
	for i, key := range keys {
		testkit.Equal(t, key, fmt.Sprintf("big/%02d", i), "entry %d", i)
	}
	if len(keys) != entries || pages < 3 {
		t.Errorf("%d entries on %d pages", len(keys), pages)
	}
}

func TestYardRequestBeyondItsSize(t *testing.T) {
	y := newYard(t)
	c := newYardCalls(t, y.session())
	var said *goamqp.Error
	err := c.sender.Send(t.Context(), &goamqp.Message{Data: [][]byte{make([]byte, maxCallMessageBytes)}}, nil)
	if err == nil || errors.As(err, &said) && said.Condition != goamqp.ErrCondMessageSizeExceeded {
		t.Errorf("sent with %v", err)
	}
}

// heldGroups are real ones, some of whose calls wait.
type heldGroups struct {
	Groups
	held    chan struct{} // Leases waits until it is closed
	holding atomic.Int64
	// watching counts the watches that run.
	watching atomic.Int64
}

func holdGroups(h *heldGroups) func(*setup) {
	return func(s *setup) {
		s.groups = func(g Groups) Groups {
			h.Groups = g
			return h
		}
	}
}

func (h *heldGroups) Leases(ctx context.Context, g processor.Group) ([]processor.Lease, error) {
	if h.held != nil {
		h.holding.Add(1)
		defer h.holding.Add(-1)
		select {
		case <-h.held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return h.Groups.Leases(ctx, g)
}

func (h *heldGroups) Watch(ctx context.Context, g processor.Group, ready func(), changed chan<- struct{}) error {
	h.watching.Add(1)
	defer h.watching.Add(-1)
	return h.Groups.Watch(ctx, g, ready, changed)
}

// More than there may be under way are turned away, and nothing of them is done; those that
// are under way are not disturbed.
func TestTooManyYardRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heldGroups{held: make(chan struct{})}
		y := newYard(t, holdGroups(h))
		y.hub("orders", 1)
		s := y.session()
		c, other := newYardCalls(t, s), newYardCalls(t, s)
		var ids []string
		for range maxCalls {
			ids = append(ids, c.start(groupwire.OpLeases, "orders", groupwire.LeasesRequest{About: inDefault}))
		}
		synctest.Wait()
		testkit.Equal(t, h.holding.Load(), maxCalls, "are under way")
		wantStatus(t, other.call(groupwire.OpLeases, "orders", groupwire.LeasesRequest{About: inDefault}), groupwire.StatusTooMany, "Too many requests")
		close(h.held)
		for _, id := range ids {
			wantStatus(t, c.reply(id), groupwire.StatusOK, "OK")
		}
		wantStatus(t, other.call(groupwire.OpLeases, "orders", groupwire.LeasesRequest{About: inDefault}), groupwire.StatusOK, "OK")
	})
}

// Large requests are bounded by what they measure together.
func TestTooLargeYardRequestsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heldGroups{held: make(chan struct{})}
		y := newYard(t, holdGroups(h))
		y.hub("orders", 1)
		c := newYardCalls(t, y.session())
		large := []byte(`{"group":"$Default"` + strings.Repeat(" ", 250<<10) + `}`)
		var ids []string
		for range maxCallBytes/len(large) + 1 {
			ids = append(ids, c.start(groupwire.OpLeases, "orders", large))
		}
		last := ids[len(ids)-1]
		wantStatus(t, c.reply(last), groupwire.StatusTooMany, "Too many requests")
		close(h.held)
		for _, id := range ids[:len(ids)-1] {
			wantStatus(t, c.reply(id), groupwire.StatusOK, "OK")
		}
	})
}

// A link that ends takes its requests with it, and so does a connection.
func TestYardRequestsEndWithTheirLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heldGroups{held: make(chan struct{})}
		y := newYard(t, holdGroups(h))
		y.hub("orders", 1)
		s := y.session()
		c, other := newYardCalls(t, s), newYardCalls(t, s)
		for range 5 {
			c.start(groupwire.OpLeases, "orders", groupwire.LeasesRequest{About: inDefault})
		}
		id := other.start(groupwire.OpLeases, "orders", groupwire.LeasesRequest{About: inDefault})
		synctest.Wait()
		testkit.Must(t, c.sender.Close(t.Context()))
		synctest.Wait()
		testkit.Equal(t, h.holding.Load(), 1, "are under way")
		close(h.held)
		wantStatus(t, other.reply(id), groupwire.StatusOK, "OK")
	})
}

// A client that takes no replies may not have us remember many: its requests are turned away.
// Others, and other links, are not held up.
func TestYardRepliesThatNobodyTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newOrders(t, 1)
		g := processor.Group{Hub: "orders", Group: "$Default"}
		for i := range 20 {
			_, err := y.groups.Put(t.Context(), g, processor.Entry{Key: fmt.Sprintf("big/%02d", i), Value: make([]byte, groupwire.MaxValueBytes)})
			testkit.Must(t, err)
		}
		s := y.session()
		receiver, err := s.NewReceiver(t.Context(), groupwire.Node, &goamqp.ReceiverOptions{Credit: -1, TargetAddress: "slow"})
		testkit.Must(t, err)
		slow := &yardCalls{rpc: &rpc{t: t, sender: newSender(t, s, groupwire.Node, nil), receiver: receiver, replyTo: "slow"}, replies: map[string]*goamqp.Message{}}
		var turnedAway *goamqp.Error
		sent := 0
		for ; turnedAway == nil && sent < 100; sent++ {
			m := &goamqp.Message{
				Data:                  [][]byte{[]byte(`{"group":"$Default"}`)},
				ApplicationProperties: map[string]any{"operation": groupwire.OpEntries, "name": "orders"},
				Properties:            &goamqp.MessageProperties{MessageID: fmt.Sprint(sent), ReplyTo: &slow.replyTo},
			}
			if err := slow.sender.Send(t.Context(), m, nil); err != nil && !errors.As(err, &turnedAway) {
				t.Fatal(err)
			}
		}
		if turnedAway == nil || turnedAway.Condition != goamqp.ErrCond(condTooMany) {
			t.Fatalf("%d requests were taken, then %v", sent, turnedAway)
		}
		other := newYardCalls(t, s)
		wantStatus(t, other.call(groupwire.OpLeases, "orders", groupwire.LeasesRequest{About: inDefault}), groupwire.StatusOK, "OK")
		// What there was room for is there when it is wanted, and then it goes on.
		testkit.Must(t, receiver.IssueCredit(uint32(sent+10)))
		kept := 0
		for i := range sent - 1 {
			r := slow.reply(fmt.Sprint(i))
			if r.ApplicationProperties["status-code"] == int32(groupwire.StatusOK) {
				kept++
				continue
			}
			wantStatus(t, r, groupwire.StatusFailed, "The reply was dropped")
		}
		if kept < 3 || kept > 8 {
			t.Errorf("%d replies were kept", kept)
		}
		wantStatus(t, slow.call(groupwire.OpLeases, "orders", groupwire.LeasesRequest{About: inDefault}), groupwire.StatusOK, "OK")
	})
}

// Whatever a stranger sends is taken apart, or refused, and shares nothing with what it came in.
func FuzzParseCall(f *testing.F) {
	for _, m := range []*goamqp.Message{
		{Data: [][]byte{[]byte(`{"group":"$Default"}`)}, ApplicationProperties: map[string]any{"operation": "leases", "name": "orders"}},
		{Value: "x"}, {Data: [][]byte{{}, {}}},
	} {
		raw, err := m.MarshalBinary()
		testkit.Must(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		q, body, err := parseCall(raw)
		if err != nil {
			return
		}
		if q.size != len(raw) || len(body) > len(raw) {
			t.Errorf("%d bytes hold %d", len(raw), len(body))
		}
		before := string(body)
		clear(raw)
		testkit.Equal(t, string(body), before, "the body is the sender's")
	})
}

// P1: whatever owners call themselves and positions measure that the yard takes, it can tell all of
// them of as many partitions as a hub may have.
func TestYardListsAllOfALargeGroup(t *testing.T) {
	const partitions = 1024
	y := newYard(t)
	y.hub("wide", partitions)
	c := newYardCalls(t, y.session())
	g := processor.Group{Hub: "wide", Group: "$Default"}
	longest := func(refused func(text string) error) string { // of what is written longest
		text := strings.Repeat("\"", 1024)
		for refused(text) != nil && text != "" {
			text = text[1:]
		}
		return text
	}
	claim := func(partition, owner string) error {
		_, err := y.groups.Claim(t.Context(), g, []processor.Lease{{Partition: partition, Owner: owner, Epoch: 1}})
		return err
	}
	owner := longest(func(text string) error { return claim("0", text) })
	offset := longest(func(text string) error {
		_, err := y.groups.Force(t.Context(), g, processor.Checkpoint{Partition: "0", Offset: text})
		return err
	})
	hubID := longest(func(text string) error {
		_, err := y.groups.Force(t.Context(), g, processor.Checkpoint{Partition: "1", HubID: text})
		return err
	})
	for i := 1; i < partitions; i++ {
		testkit.Must(t, claim(fmt.Sprint(i), owner))
		if i > 1 {
			_, err := y.groups.Force(t.Context(), g, processor.Checkpoint{Partition: fmt.Sprint(i), Offset: offset, HubID: hubID})
			testkit.Must(t, err)
		}
	}
	leases := good[groupwire.LeasesReply](t, c.call(groupwire.OpLeases, "wide", groupwire.LeasesRequest{About: inDefault})).Leases
	checkpoints := good[groupwire.CheckpointsReply](t, c.call(groupwire.OpCheckpoints, "wide", groupwire.CheckpointsRequest{About: inDefault})).Checkpoints
	if len(leases) != partitions || len(checkpoints) != partitions || leases[9].Owner != owner || owner == "" || offset == "" || hubID == "" {
		t.Errorf("%d leases, %d checkpoints; of %d, %d and %d bytes", len(leases), len(checkpoints), len(owner), len(offset), len(hubID))
	}
}
