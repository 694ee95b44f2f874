package eventhubs

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

func text(body string) *goamqp.Message { return goamqp.NewMessage([]byte(body)) }

func batchOf(t testing.TB, key any, messages ...*goamqp.Message) *goamqp.Message {
	t.Helper()
	m := &goamqp.Message{Format: formatBatch}
	if key != nil {
		m.Annotations = goamqp.Annotations{wire.AnnotationPartitionKey: key}
	}
	for _, event := range messages {
		data := testkit.Value(event.MarshalBinary())(t)
		m.Data = append(m.Data, data)
	}
	return m
}

// H2: to a named partition, with a key, or to whichever is next.
func TestPublishing(t *testing.T) {
	y := newOrders(t, 4)
	s := y.session()

	toPartition := newSender(t, s, "orders/Partitions/2", nil)
	testkit.Equal(t, toPartition.MaxMessageSize(), 1<<20, "the largest message")
	testkit.Must(t, toPartition.Send(t.Context(), text("named"), nil))
	withKey := text("named, with a key")
	withKey.Annotations = goamqp.Annotations{wire.AnnotationPartitionKey: "device-2"}
	testkit.Must(t, toPartition.Send(t.Context(), withKey, nil))
	testkit.Diff(t, []string{"named", "named, with a key"}, y.stored("orders", "2"))

	toHub := newSender(t, s, "/Orders", nil)
	for _, key := range []string{"7", "FWfAT", "device-1", "日本語"} {
		m := text("of " + key)
		m.Annotations = goamqp.Annotations{wire.AnnotationPartitionKey: key}
		testkit.Must(t, toHub.Send(t.Context(), m, nil))
		testkit.Must(t, toHub.Send(t.Context(), batchOf(t, key, text("batch of "+key)), nil))
		at := strconv.Itoa(broker.PartitionForKey(key, 4))
		got := strings.Join(y.stored("orders", at), "|")
		testkit.Equal(t, strings.Contains(got, "of "+key+"|batch of "+key), true, "partition %s of key %q has %s", at, key, got)
	}

	before := make([]int, 4)
	for i := range before {
		before[i] = len(y.stored("orders", strconv.Itoa(i)))
	}
	for i := range 8 {
		testkit.Must(t, toHub.Send(t.Context(), text(fmt.Sprint("any ", i)), nil))
	}
	for i := range before {
		testkit.Equal(t, len(y.stored("orders", strconv.Itoa(i)))-before[i], 2, "partition %d got", i)
	}
}

// H2: a batch is stored whole, in order, in one partition; of its envelope the key counts.
func TestPublishingABatch(t *testing.T) {
	y := newOrders(t, 4)
	sender := newSender(t, y.session(), "orders", nil)
	events := make([]*goamqp.Message, 100)
	for i := range events {
		events[i] = text(strconv.Itoa(i))
	}
	testkit.Must(t, sender.Send(t.Context(), batchOf(t, nil, events...), nil))
	for i := range 4 {
		if got := y.stored("orders", strconv.Itoa(i)); i == 0 && len(got) != 100 || i > 0 && len(got) > 0 {
			t.Errorf("partition %d has %d events", i, len(got))
		}
	}

	// Nothing in it: taken, and nothing stored.
	testkit.Must(t, sender.Send(t.Context(), batchOf(t, "key"), nil))

	// One that is no message spoils all of it.
	spoilt := batchOf(t, nil, text("good"))
	spoilt.Data = append(spoilt.Data, []byte("bad"))
	wantError(t, sender.Send(t.Context(), spoilt, nil), condDecode, "Event 1: decode at byte 0: ")
	unknown := text("x")
	unknown.Format = 77
	wantError(t, sender.Send(t.Context(), unknown, nil), condDecode, "The message cannot be read as events: ")
	total := 0
	for i := range 4 {
		total += len(y.stored("orders", strconv.Itoa(i)))
	}
	testkit.Equal(t, total, 100, "events are stored")

	// The events' own key, where all have the same, is as good as the envelope's.
	own := text("own key")
	own.Annotations = goamqp.Annotations{wire.AnnotationPartitionKey: "device-2"}
	testkit.Must(t, sender.Send(t.Context(), batchOf(t, nil, own, own), nil))
	at := strconv.Itoa(broker.PartitionForKey("device-2", 4))
	if got := y.stored("orders", at); len(got) < 2 || got[len(got)-1] != "own key" {
		t.Errorf("partition %s has %v", at, got)
	}
}

func TestPublishingTooMuch(t *testing.T) {
	y := newYard(t, func(s *setup) { s.handler.MaxMessageBytes = 2000 })
	y.hub("orders", 1)
	sender := newSender(t, y.session(), "orders", nil)
	testkit.Equal(t, sender.MaxMessageSize(), 2000, "the largest message")
	c := y.rawAs(auth.RootPolicy) // go-amqp would not send it
	c.accepted(0, wire.Attach{Name: "s", Role: wire.RoleSender, Source: &wire.Source{}, Target: &wire.Target{Address: wire.Some("orders")}})
	c.send(0, 0, false, plain(t, strings.Repeat("x", 3000)))
	d := c.disposition()
	const want = "The received message (delivery-id:0, size:3008 bytes) exceeds the limit (2000 bytes) currently allowed on the link."
	if d.State.Outcome != wire.OutcomeRejected || d.State.Error.Condition != condMessageSize || !strings.HasPrefix(d.State.Error.Description, want) {
		t.Errorf("the disposition is %+v %v", d, d.State.Error)
	}
	c.send(0, 0, false, plain(t, "small"))
	if d := c.disposition(); d.State.Outcome != wire.OutcomeAccepted || !d.Settled {
		t.Errorf("the disposition is %+v", d)
	}
	testkit.Diff(t, []string{"small"}, y.stored("orders", "0"))
}

func TestKeysThatCannotBe(t *testing.T) {
	y := newOrders(t, 1)
	sender := newSender(t, y.session(), "orders", nil)
	wantError(t, sender.Send(t.Context(), batchOf(t, strings.Repeat("k", 129), text("x")), nil), condArgument, "")
	// One that is no text is no key.
	testkit.Must(t, sender.Send(t.Context(), batchOf(t, int32(5), text("x")), nil))
	testkit.Diff(t, []string{"x"}, y.stored("orders", "0"))
}

// Messages that were sent settled are stored, and nothing is said of them.
func TestPublishingSettled(t *testing.T) {
	y := newOrders(t, 1)
	sender := newSender(t, y.session(), "orders", &goamqp.SenderOptions{SettlementMode: goamqp.SenderSettleModeSettled.Ptr()})
	testkit.Must(t, sender.Send(t.Context(), text("a"), nil))
	testkit.Must(t, sender.Send(t.Context(), text("b"), nil))
	r := newReceiver(t, y.session(), "orders/ConsumerGroups/$Default/Partitions/0", listening{})
	testkit.Equal(t, texts(receive(t, r, 2)), "a b", "stored")
}

// Many messages are under way at once, and each is settled when it is stored.
func TestPublishingManyAtOnce(t *testing.T) {
	y := newOrders(t, 3)
	var senders sync.WaitGroup
	for i := range 4 {
		sender := newSender(t, y.session(), "orders/Partitions/"+strconv.Itoa(i%3), nil)
		senders.Go(func() {
			var receipts []goamqp.SendReceipt
			for n := range 300 {
				receipt, err := sender.SendWithReceipt(t.Context(), text(fmt.Sprintf("%d %d", i, n)), nil)
				if err != nil {
					t.Error(err)
					return
				}
				receipts = append(receipts, receipt)
			}
			for _, receipt := range receipts {
				if state, err := receipt.Wait(t.Context()); err != nil {
					t.Error(err)
				} else if _, accepted := state.(*goamqp.StateAccepted); !accepted {
					t.Errorf("a message came to %T", state)
				}
			}
		})
	}
	senders.Wait()
	next := make([]int, 4)
	for p := range 3 {
		for _, body := range y.stored("orders", strconv.Itoa(p)) {
			var i, n int
			fmt.Sscan(body, &i, &n)
			testkit.MustEqual(t, n, next[i], "sender %d: follows %d", i, next[i]-1)
			next[i]++
		}
	}
	testkit.Diff(t, []int{300, 300, 300, 300}, next)
}

func TestSendersThatAreRefused(t *testing.T) {
	y := newOrders(t, 4)
	s := y.session()
	tests := []struct {
		address   string
		condition wire.Symbol
		text      string
	}{
		{"nope", condNotFound, "The messaging entity 'sb://localhost/nope' could not be found."},
		{"amqps://host/nope/Partitions/0", condNotFound, "The messaging entity 'sb://localhost/nope' could not be found."},
		{"orders/Partitions/4", condRange, "The specified partition is invalid for an EventHub partition sender or receiver. It should be between 0 and 3."},
		{"orders/Partitions/00", condRange, "The specified partition is invalid"},
		{"orders/Partitions/-1", condRange, "The specified partition is invalid"},
		{"orders/Partitions/x", condRange, "The specified partition is invalid"},
		{"/", condInvalidField, "The link's address names nothing."},
		{"orders/ConsumerGroups/$Default", condArgument, "A sender's address has the form HUB, "},
		{"orders/ConsumerGroups/$Default/Partitions/0", condArgument, "A sender's address has the form HUB, "},
	}
	for _, tt := range tests {
		t.Run(tt.address, func(t *testing.T) {
			_, err := s.NewSender(t.Context(), tt.address, nil)
			wantError(t, err, tt.condition, tt.text)
		})
	}
	testkit.Must(t, newSender(t, s, "orders/Publishers/me", nil).Send(t.Context(), text("x"), nil))
}

// A hub that is deleted takes its links with it, in both directions.
func TestADeletedHubEndsItsLinks(t *testing.T) {
	y := newOrders(t, 1)
	s := y.session()
	sender := newSender(t, s, "orders", nil)
	receiver := newReceiver(t, s, "orders/ConsumerGroups/$Default/Partitions/0", listening{})
	testkit.Must(t, sender.Send(t.Context(), text("x"), nil))
	receive(t, receiver, 1)
	testkit.Must(t, y.broker.DeleteHub(t.Context(), "orders"))

	const gone = "The messaging entity 'sb://localhost/orders' could not be found."
	_, err := receiver.Receive(t.Context(), nil)
	wantError(t, err, condNotFound, gone)
	wantError(t, sender.Send(t.Context(), text("y"), nil), condNotFound, gone)
	_, err = y.session().NewSender(t.Context(), "orders", nil)
	wantError(t, err, condNotFound, gone)
}

// stuck is an engine whose appends, once submitted, wait until they are let go.
type stuck struct {
	submitted chan struct{}
	release   chan error
}

func stuckYard(t *testing.T) (*yard, *stuck) {
	e := &stuck{submitted: make(chan struct{}, 1000), release: make(chan error)}
	y := newOrders(t, 1)
	y.storage.Engine.Inject(func(op logtest.Op) error {
		if op.Kind != logtest.OpWait {
			return nil
		}
		e.submitted <- struct{}{}
		if err := <-e.release; err != nil {
			return logtest.Unheard(err)
		}
		return nil
	})
	t.Cleanup(func() { close(e.release) })
	return y, e
}

// Nothing is accepted before it is stored, and what cannot be stored is told as such.
func TestNothingIsAcceptedEarly(t *testing.T) {
	y, engine := stuckYard(t)
	sender := newSender(t, y.session(), "orders/Partitions/0", nil)
	first := testkit.Value(sender.SendWithReceipt(t.Context(), text("a"), nil))(t)
	<-engine.submitted
	second := testkit.Value(sender.SendWithReceipt(t.Context(), text("b"), nil))(t)
	<-engine.submitted // the first is not stored, and the second is under way all the same
	select {
	case engine.release <- eventlog.ErrUncertain:
	case <-t.Context().Done():
	}
	engine.release <- nil
	reported := 0
	for _, receipt := range []goamqp.SendReceipt{first, second} {
		state := testkit.Value(receipt.Wait(t.Context()))(t)
		if rejected, ok := state.(*goamqp.StateRejected); ok {
			reported++
			wantError(t, rejected.Error, condTimeout, "The outcome is unknown: ")
		}
	}
	testkit.Equal(t, reported, 1, "of 2 were told to be in doubt")
}

// What was submitted is stored although its sender has gone; the connection's end waits for it.
func TestWhatWasSubmittedIsStored(t *testing.T) {
	y, engine := stuckYard(t)
	conn := y.dial(&goamqp.ConnOptions{SASLType: goamqp.SASLTypePlain("RootManageSharedAccessKey", keyOf("RootManageSharedAccessKey"))})
	sender := newSender(t, newSession(t, conn), "orders", nil)
	testkit.Must(t, testkit.Err(sender.SendWithReceipt(t.Context(), text("a"), nil)))
	<-engine.submitted
	testkit.Must(t, conn.Close())
	engine.release <- nil
	c := testkit.Value(y.broker.Cursor(t.Context(), "orders", broker.DefaultGroup, "0", eventlog.Earliest()))(t)
	defer c.Close()
	run := testkit.Value(c.Next(t.Context()))(t)
	testkit.Equal(t, bodyOf(t, run.Events[0].Message), "a", "stored")
}

// H2: the bytes under way are bounded, whatever credit there is: the connection is not
// read while there are too many.
func TestTheBytesUnderWayAreBounded(t *testing.T) {
	y, engine := stuckYard(t)
	sender := newSender(t, y.session(), "orders", nil)
	body := text(strings.Repeat("x", 1000_000))
	var receipts sync.WaitGroup
	const count = 3 * maxUnderWay / 1000_000
	receipts.Go(func() {
		for range count {
			receipt, err := sender.SendWithReceipt(t.Context(), body, nil)
			if err != nil {
				t.Error(err)
				return
			}
			receipts.Go(func() {
				testkit.Check(t, testkit.Err(receipt.Wait(t.Context())))
			})
		}
	})
	underWay, most := 0, 0
	for done := 0; done < count; {
		select {
		case <-engine.submitted:
			underWay++
			most = max(most, underWay)
			continue
		default:
		}
		select {
		case <-engine.submitted:
			underWay++
			most = max(most, underWay)
		case engine.release <- nil:
			underWay--
			done++
		}
	}
	receipts.Wait()
	if most > maxUnderWay/1000_000 {
		t.Errorf("%d messages of a megabyte were under way", most)
	}
}
