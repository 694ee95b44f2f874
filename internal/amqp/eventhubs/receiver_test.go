package eventhubs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

const firstPartition = "orders/ConsumerGroups/$Default/Partitions/0"

// H3: whatever is in a message comes back as it was sent, and the hub's own annotations
// beside it, each in its type.
func TestEverythingComesBackAsSent(t *testing.T) {
	y := newOrders(t, 1)
	s := y.session()
	sender := newSender(t, s, "orders", nil)
	receiver := newReceiver(t, s, firstPartition, listening{})
	when := time.UnixMilli(1700000000123).UTC()
	str := func(s string) *string { return &s }
	full := func(m *goamqp.Message) *goamqp.Message {
		m.Header = &goamqp.MessageHeader{Durable: true, Priority: 7, TTL: 5 * time.Second}
		m.Annotations = goamqp.Annotations{"x-mine": "kept", "x-number": int64(5)}
		m.Properties = &goamqp.MessageProperties{
			MessageID: "id", UserID: []byte("user"), To: str("to"), Subject: str("subject"), ReplyTo: str("reply"),
			CorrelationID: uint64(70000), ContentType: str("text/plain"), ContentEncoding: str("utf-8"),
			AbsoluteExpiryTime: &when, CreationTime: &when, GroupID: str("group"), GroupSequence: new(uint32), ReplyToGroupID: str("rg"),
		}
		m.ApplicationProperties = map[string]any{
			"string": "s", "int": int32(-1), "long": int64(1 << 40), "uint": uint32(9), "ulong": uint64(1 << 60), "bool": true,
			"double": 1.5, "float": float32(2.5), "time": when, "uuid": goamqp.UUID{1, 2, 3}, "bytes": []byte{1, 2}, "symbol": goamqp.Symbol("sym"),
		}
		m.Footer = goamqp.Annotations{"x-foot": "note"}
		return m
	}
	tests := []struct {
		what string
		m    *goamqp.Message
	}{
		{"data", full(text("body"))},
		{"no bytes", full(text(""))},
		{"several data sections", full(&goamqp.Message{Data: [][]byte{[]byte("a"), []byte("b"), {}}})},
		{"a value of text", full(&goamqp.Message{Value: "text"})},
		{"a value of a number", full(&goamqp.Message{Value: int64(-5)})},
		{"a value that is a map", full(&goamqp.Message{Value: map[string]any{"a": int64(1)}})},
		{"a value that is null", full(&goamqp.Message{Value: goamqp.Null{}})},
		{"a value that is a list", full(&goamqp.Message{Value: []any{"a", int64(1), true}})},
		{"a value that is a uuid", full(&goamqp.Message{Value: goamqp.UUID{9}})},
		{"sequences", full(&goamqp.Message{Sequence: [][]any{{"a", int64(1)}, {"b"}}})},
		{"an id that is a uuid", &goamqp.Message{Data: [][]byte{{1}}, Properties: &goamqp.MessageProperties{MessageID: goamqp.UUID{7}}}},
		{"an id that is bytes", &goamqp.Message{Data: [][]byte{{1}}, Properties: &goamqp.MessageProperties{MessageID: []byte{7}}}},
		{"an id that is a number", &goamqp.Message{Data: [][]byte{{1}}, Properties: &goamqp.MessageProperties{MessageID: uint64(7)}}},
		{"a large body", text(strings.Repeat("x", 300_000))},
		{"nothing", &goamqp.Message{Data: [][]byte{{}}}},
	}
	for i, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			t0 := time.Now().Truncate(time.Millisecond)
			testkit.Must(t, sender.Send(t.Context(), tt.m, nil))
			got := receive(t, receiver, 1)[0]
			testkit.Equal(t, annotation[int64](t, got, wire.AnnotationSequenceNumber), int64(i),
				"sequence number")
			testkit.Equal(t, annotation[string](t, got, wire.AnnotationOffset), strconv.Itoa(i), "offset")
			if at := annotation[time.Time](t, got, wire.AnnotationEnqueuedTime); at.Before(t0) || at.After(time.Now()) {
				t.Errorf("enqueued at %v, sent at %v", at, t0)
			}
			if _, there := got.Annotations[wire.AnnotationPartitionKey]; there {
				t.Error("there is a key")
			}
			for _, name := range []string{wire.AnnotationSequenceNumber, wire.AnnotationOffset, wire.AnnotationEnqueuedTime} {
				delete(got.Annotations, name)
			}
			want := testkit.Value(tt.m.MarshalBinary())(t)
			if len(got.Annotations) == 0 {
				got.Annotations = nil
			}
			back := testkit.Value(got.MarshalBinary())(t)
			var sent, returned goamqp.Message
			testkit.Must(t, sent.UnmarshalBinary(want))
			testkit.Must(t, returned.UnmarshalBinary(back))
			testkit.Diff(t, fmt.Sprintf("%#v", content(&sent)), fmt.Sprintf("%#v", content(&returned)))
		})
	}
}

// content is a message without what go-amqp keeps for itself.
func content(m *goamqp.Message) []any {
	all := []any{m.Annotations, m.ApplicationProperties, m.Data, m.Value, m.Sequence, m.Footer}
	if m.Header != nil {
		all = append(all, *m.Header)
	}
	if p := m.Properties; p != nil {
		for _, v := range []*string{p.To, p.Subject, p.ReplyTo, p.ContentType, p.ContentEncoding, p.GroupID, p.ReplyToGroupID} {
			if v != nil {
				all = append(all, *v)
			}
		}
		all = append(all, p.MessageID, p.UserID, p.CorrelationID, fmt.Sprint(p.AbsoluteExpiryTime, p.CreationTime))
		if p.GroupSequence != nil {
			all = append(all, *p.GroupSequence)
		}
	}
	return all
}

// What belongs to the hub is the hub's: annotations of an event that was received and is
// sent on are not kept, its key is, and neither delivery count nor delivery annotations.
func TestTheHubsOwnAnnotationsAreTheHubs(t *testing.T) {
	y := newOrders(t, 1)
	s := y.session()
	m := text("x")
	m.Header = &goamqp.MessageHeader{DeliveryCount: 3}
	m.DeliveryAnnotations = goamqp.Annotations{"x-hop": "1"}
	m.Annotations = goamqp.Annotations{
		wire.AnnotationOffset: "77", wire.AnnotationSequenceNumber: int64(77), wire.AnnotationEnqueuedTime: time.Unix(0, 0),
		wire.AnnotationPartitionKey: "key", wire.AnnotationProducerID: int64(5), "x-mine": "kept",
	}
	testkit.Must(t, newSender(t, s, "orders/Partitions/0", nil).Send(t.Context(), m, nil))
	got := receive(t, newReceiver(t, s, firstPartition, listening{}), 1)[0]
	testkit.Equal(t, annotation[int64](t, got, wire.AnnotationSequenceNumber), 0, "sequence number")
	testkit.Equal(t, annotation[string](t, got, wire.AnnotationPartitionKey), "key", "key")
	if len(got.Annotations) != 5 || got.Annotations["x-mine"] != "kept" || got.DeliveryAnnotations != nil {
		t.Errorf("annotations are %v and %v", got.Annotations, got.DeliveryAnnotations)
	}
	if got.Header != nil && got.Header.DeliveryCount != 0 {
		t.Errorf("header is %+v", got.Header)
	}
}

// H4: from wherever a reader wants to begin.
func TestReadingFromEverywhere(t *testing.T) {
	y := newOrders(t, 1)
	y.store("orders", "0", "a", "b", "c", "d", "e")
	s := y.session()
	at := annotation[time.Time](t, receive(t, newReceiver(t, s, firstPartition, listening{}), 3)[2], wire.AnnotationEnqueuedTime).UnixMilli()
	tests := []struct{ from, want string }{
		{"", "a b c d e"},
		{"amqp.annotation.x-opt-offset > '-1'", "a b c d e"},
		{"amqp.annotation.x-opt-offset > -1", "a b c d e"},
		{"amqp.annotation.x-opt-offset > '2'", "d e"},
		{"amqp.annotation.x-opt-offset >= '2'", "c d e"},
		{"amqp.annotation.x-opt-sequence-number > '2'", "d e"},
		{"amqp.annotation.x-opt-sequence-number >= 2", "c d e"},
		{"amqp.annotation.x-opt-sequence-number > '-1'", "a b c d e"},
		{"amqp.annotation.x-opt-sequence-number > '4'", ""},
		{"amqp.annotation.x-opt-offset > '@latest'", ""},
		{"amqp.annotation.x-opt-offset >= @latest", ""},
		{fmt.Sprintf("amqp.annotation.x-opt-enqueued-time > '%d'", at+3600_000), ""},
		{"amqp.annotation.x-opt-enqueued-time > '-62135596800000'", "a b c d e"},
		{"amqp.annotation.x-opt-enqueuedtimeutc > 0", "a b c d e"},
	}
	type reading struct {
		from, want string
		r          *goamqp.Receiver
	}
	var all []reading
	for i, tt := range tests {
		group := fmt.Sprintf("g%d", i)
		y.hub("orders", 1, group)
		r := newReceiver(t, s, "orders/ConsumerGroups/"+group+"/Partitions/0", listening{from: tt.from})
		all = append(all, reading{tt.from, strings.TrimSpace(tt.want + " new"), r})
	}
	// The position was fixed before the attach was answered: this is new to all of them.
	y.store("orders", "0", "new")
	for _, a := range all {
		t.Run(fmt.Sprintf("from %q", a.from), func(t *testing.T) {
			testkit.Equal(t, texts(receive(t, a.r, len(strings.Fields(a.want)))), a.want, "it reads")
		})
	}
}

// The event at a time is found by its time: itself, or what follows it.
func TestReadingFromATime(t *testing.T) {
	y := newOrders(t, 1)
	y.store("orders", "0", "a")
	s := y.session()
	first := annotation[time.Time](t, receive(t, newReceiver(t, s, firstPartition, listening{}), 1)[0], wire.AnnotationEnqueuedTime)
	for !time.Now().Truncate(time.Millisecond).After(first) { // until the clock has moved
	}
	y.store("orders", "0", "b")
	for from, want := range map[string]string{
		fmt.Sprintf("amqp.annotation.x-opt-enqueued-time >= '%d'", first.UnixMilli()): "a",
		fmt.Sprintf("amqp.annotation.x-opt-enqueued-time > '%d'", first.UnixMilli()):  "b",
	} {
		if got := texts(receive(t, newReceiver(t, s, firstPartition, listening{from: from}), 1)); got != want {
			t.Errorf("from %q it reads %q, want %q", from, got, want)
		}
	}
}

func TestReceiversThatAreRefused(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 2, "Billing")
	y.store("orders", "0", "a", "b", "c")
	s := y.session()
	const offset, number = "amqp.annotation.x-opt-offset", "amqp.annotation.x-opt-sequence-number"
	tests := []struct {
		address   string
		l         listening
		condition wire.Symbol
		text      string
	}{
		{"nope/ConsumerGroups/$Default/Partitions/0", listening{}, condNotFound, "The messaging entity 'sb://localhost/nope' could not be found."},
		{"orders/ConsumerGroups/nope/Partitions/1", listening{}, condNotFound, "The messaging entity 'yard:eventhub:orders~1|nope' could not be found."},
		{"orders/ConsumerGroups/billing/Partitions/1", listening{}, condNotFound,
			"The messaging entity 'yard:eventhub:orders~1|billing' could not be found. There is a consumer group 'Billing', and case matters here."},
		{"orders/ConsumerGroups/$Default/Partitions/2", listening{}, condRange,
			"The specified partition is invalid for an EventHub partition sender or receiver. It should be between 0 and 1."},
		{"orders", listening{}, condArgument, "A receiver's address has the form HUB/ConsumerGroups/GROUP/Partitions/ID."},
		{"orders/Partitions/0", listening{}, condArgument, "A receiver's address has the form"},
		{"orders/ConsumerGroups/$Default/Publishers/p/Partitions/0", listening{}, condArgument, "A receiver's address has the form"},
		{firstPartition, listening{from: offset + " > '3'"}, condArgument, "The supplied offset '3' is invalid. The last offset in the system is '2'"},
		{firstPartition, listening{from: number + " > '488'"}, condArgument,
			"The supplied sequence number '488' is invalid. The last sequence number in the system is '2'"},
		{firstPartition, listening{from: number + " >= 488"}, condArgument,
			"The supplied sequence number '488' is invalid. The last sequence number in the system is '2'"},
		{"orders/ConsumerGroups/$Default/Partitions/1", listening{from: offset + " > '0'"}, condArgument,
			"The supplied offset '0' is invalid. The last offset in the system is '-1'"},
		{firstPartition, listening{from: offset + " > 'abc'"}, condArgument, "The selector filter cannot be understood: "},
		{firstPartition, listening{from: "nonsense"}, condArgument, "The selector filter cannot be understood: "},
		{firstPartition, listening{epoch: "one"}, condArgument, "The link property com.microsoft:epoch is no number that it can be."},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s from %q, epoch %v", tt.address, tt.l.from, tt.l.epoch), func(t *testing.T) {
			_, err := s.NewReceiver(t.Context(), tt.address, tt.l.options())
			wantError(t, err, tt.condition, tt.text)
		})
	}
	// Whoever is refused took nobody's place: an epoch that cannot read evicts nobody.
	r := newReceiver(t, s, firstPartition, listening{})
	_, err := s.NewReceiver(t.Context(), firstPartition, listening{epoch: int64(5), from: offset + " > '99'"}.options())
	wantError(t, err, condArgument, "The supplied offset '99' is invalid.")
	testkit.Equal(t, texts(receive(t, r, 3)), "a b c", "it reads")
	// $Default is found in any case, and so is the hub.
	receive(t, newReceiver(t, s, "/ORDERS/consumergroups/$DEFAULT/partitions/0/", listening{}), 3)
}

// H10: on request each delivery tells of the partition's newest event.
func TestRuntimeMetricsBesideDeliveries(t *testing.T) {
	y := newOrders(t, 1)
	y.store("orders", "0", "a", "b", "c")
	s := y.session()
	plainly := receive(t, newReceiver(t, s, firstPartition, listening{}), 3)
	if plainly[0].DeliveryAnnotations != nil {
		t.Errorf("nobody asked for %v", plainly[0].DeliveryAnnotations)
	}
	last := annotation[time.Time](t, plainly[2], wire.AnnotationEnqueuedTime)
	asked := receive(t, newReceiver(t, s, firstPartition, listening{capabilities: []string{string(capabilityMetrics), "com.microsoft:georeplication"}}), 3)
	for i, m := range asked {
		reported := m.DeliveryAnnotations
		if reported[wire.AnnotationLastSequence] != int64(2) || reported[wire.AnnotationLastOffset] != "2" {
			t.Errorf("event %d tells of %v", i, reported)
		}
		if at, ok := reported[wire.AnnotationLastTime].(time.Time); !ok || !at.Equal(last) {
			t.Errorf("event %d tells of %v, the last is of %v", i, reported, last)
		}
		if _, ok := reported[wire.AnnotationRetrieved].(time.Time); !ok || len(reported) != 4 {
			t.Errorf("event %d tells of %v", i, reported)
		}
	}
}

// H10: what is told was so when it was told, however long the client took to give credit.
func TestRuntimeMetricsAreNotOld(t *testing.T) {
	y := newOrders(t, 1)
	together := []eventlog.Event{{Message: plain(t, "a")}, {Message: plain(t, "b")}, {Message: plain(t, "c")}}
	testkit.Must(t, testkit.Err(y.broker.Publish(t.Context(), "orders", broker.Target{Partition: "0"}, together)))
	r := newReceiver(t, y.session(), firstPartition, listening{credit: -1, capabilities: []string{string(capabilityMetrics)}})
	for last := int64(2); last < 5; last++ {
		testkit.Must(t, r.IssueCredit(1))
		if reported := receive(t, r, 1)[0].DeliveryAnnotations; reported[wire.AnnotationLastSequence] != last {
			t.Errorf("the last is %d, and told was %v", last, reported)
		}
		y.store("orders", "0", "one more")
	}
}

// H4: credit is all that a client has to give; without it nothing is sent.
func TestCreditDecidesHowMuchIsSent(t *testing.T) {
	y := newOrders(t, 1)
	events := make([]eventlog.Event, 1000)
	for i := range events {
		events[i].Message = plain(t, strconv.Itoa(i))
	}
	testkit.Must(t, testkit.Err(y.broker.Publish(t.Context(), "orders", broker.Target{Partition: "0"}, events)))
	r := newReceiver(t, y.session(), firstPartition, listening{credit: -1})
	next := 0
	for _, credit := range []uint32{1, 2, 500, 497} {
		testkit.Must(t, r.IssueCredit(credit))
		for range credit {
			testkit.MustEqual(t, string(receive(t, r, 1)[0].GetData()), strconv.Itoa(next),
				"event: came where %d was expected", next)
			next++
		}
		if m := r.Prefetched(); m != nil {
			t.Fatalf("event %s came without credit", m.GetData())
		}
	}
}

// damage makes the events from first up to next unreadable.
func (y *yard) damage(first, next eventlog.Sequence) {
	y.log.Want(1)
	y.storage.Engine.Inject(func(op logtest.Op) error {
		if op.Kind == logtest.OpNext && op.At >= first && (op.At < next || next == eventlog.NoSequence) {
			return &eventlog.CorruptError{Where: "segment 0", Reason: "checksum", First: first, Next: next}
		}
		return nil
	})
}

// Damage hides nothing but itself.
func TestReceiversGoOnBehindDamage(t *testing.T) {
	y := newOrders(t, 1)
	y.damage(1, 3)
	y.store("orders", "0", "a", "b", "c", "d", "e")
	r := newReceiver(t, y.session(), firstPartition, listening{})
	testkit.Equal(t, texts(receive(t, r, 3)), "a d e", "it reads")
	testkit.Equal(t, y.metric("eventyard_amqp_damage_passed_total"), 1, "damage was passed")
	// An event is counted when it has been handed over, which may be after it was received.
	testkit.Eventually(t, "3 events are delivered", func() bool { return y.metric("eventyard_amqp_delivered_events_total") == 3 })
	testkit.Eventually(t, "3 events are read by the group", func() bool {
		return testutil.ToFloat64(y.broker.Reads("orders", broker.DefaultGroup)) == 3
	})
}

func TestDamageWithNothingBehindItEndsTheLink(t *testing.T) {
	y := newOrders(t, 1)
	y.damage(1, eventlog.NoSequence)
	y.store("orders", "0", "a", "b")
	r := newReceiver(t, y.session(), firstPartition, listening{})
	receive(t, r, 1)
	_, err := r.Receive(t.Context(), nil)
	wantError(t, err, condInternal, "Stored events are damaged: event 1 and those after it cannot be read.")
}

// An event whose bytes are not what the listener stores has its place all the same.
func TestAnEventThatCannotBeRead(t *testing.T) {
	y := newOrders(t, 1)
	y.log.Want(1)
	_, err := y.broker.Publish(t.Context(), "orders", broker.Target{Partition: "0"}, []eventlog.Event{{Message: []byte("nonsense")}, {Message: plain(t, "b")}})
	testkit.Must(t, err)
	got := receive(t, newReceiver(t, y.session(), firstPartition, listening{}), 2)
	if n := annotation[int64](t, got[0], wire.AnnotationSequenceNumber); n != 0 || got[0].Data != nil || string(got[1].GetData()) != "b" {
		t.Errorf("it reads %v %q, %q", n, got[0].Data, got[1].GetData())
	}
}

// metric sums a counter over its labels.
func (y *yard) metric(name string) float64 {
	y.t.Helper()
	families := testkit.Value(y.registry.Gather())(y.t)
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

// R2: senders are bounded likewise.
func TestSendersAreBounded(t *testing.T) {
	y := newYard(t, func(s *setup) { s.handler.Senders = admission.NewQuota("senders", 2, 10) })
	y.hub("orders", 1)
	s := y.session()
	first := testkit.Value(s.NewSender(t.Context(), "orders", nil))(t)
	testkit.Must(t, testkit.Err(s.NewSender(t.Context(), "orders", nil)))
	attach := func() error {
		l, err := s.NewSender(t.Context(), "orders", nil)
		if err == nil {
			err = l.Close(t.Context())
		}
		return err
	}
	refused, ok := errors.AsType[*goamqp.Error](attach())
	testkit.MustEqual(t, ok, true, "refused")
	testkit.Equal(t, refused.Condition, goamqp.ErrCondResourceLimitExceeded)
	testkit.That(t, strings.Contains(refused.Description, "This policy or token has as many senders as one may have, which is 2"), "told %s", refused.Description)
	testkit.Must(t, first.Close(t.Context()))
	for range 3 { // also one that is refused for another reason leaves nothing behind
		testkit.That(t, testkit.Err(s.NewSender(t.Context(), "orders/Partitions/7", nil)) != nil, "a partition that is not there")
		testkit.Eventually(t, "room for another", func() bool { return attach() == nil })
	}
}

// R2: receivers are bounded by policy and in all. Who is refused is told, and one that ends makes room.
func TestReceiversAreBounded(t *testing.T) {
	y := newYard(t, func(s *setup) { s.handler.Receivers = admission.NewQuota("receivers", 2, 10) })
	y.hub("orders", 1)
	s := y.session()
	first := newReceiver(t, s, firstPartition, listening{})
	newReceiver(t, s, firstPartition, listening{})
	attach := func() error {
		r, err := s.NewReceiver(t.Context(), firstPartition, nil)
		if err == nil {
			err = r.Close(t.Context())
		}
		return err
	}
	err := attach()
	refused, ok := errors.AsType[*goamqp.Error](err)
	testkit.MustEqual(t, ok, true, "refused by %v", err)
	testkit.Equal(t, refused.Condition, goamqp.ErrCondResourceLimitExceeded)
	testkit.That(t, strings.Contains(refused.Description, "This policy or token has as many receivers as one may have, which is 2"), "told %s", refused.Description)
	testkit.Must(t, first.Close(t.Context()))
	for range 3 { // also one that is refused for another reason leaves nothing behind
		_, err := s.NewReceiver(t.Context(), "orders/ConsumerGroups/nobody/Partitions/0", nil)
		testkit.That(t, err != nil, "a group that is not there")
		testkit.Eventually(t, "room for another", func() bool { return attach() == nil })
	}
}
