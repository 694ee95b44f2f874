package eventhubs

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

func read(kind, hub string, more ...any) *goamqp.Message {
	m := &goamqp.Message{ApplicationProperties: map[string]any{"operation": "READ", "type": kind, "name": hub}, Data: [][]byte{[]byte("[]")}}
	for i := 0; i < len(more); i += 2 {
		m.ApplicationProperties[more[i].(string)] = more[i+1]
	}
	return m
}

// H10: what is told about a hub, each value in exactly its type.
func TestReadingAHub(t *testing.T) {
	y := newYard(t)
	y.hub("Orders", 3)
	hub := testkit.Value(y.broker.Hub("orders"))(t)
	got := newRPC(t, y.session(), "$management").ask(read(typeHub, "ORDERS"))
	wantStatus(t, got, 200, "OK")
	testkit.Diff(t, map[string]any{
		"name": "Orders", "type": "com.microsoft:eventhub", "created_at": hub.Created, "partition_count": int32(3),
		"partition_ids": []string{"0", "1", "2"}, "georeplication_factor": int32(1),
	}, got.Value)
}

// H10: what is told about a partition, before its first event and later.
func TestReadingAPartition(t *testing.T) {
	y := newOrders(t, 2)
	c := newRPC(t, y.session(), "$management")
	ask := func() map[string]any {
		t.Helper()
		m := c.ask(read(typePartition, "orders", "partition", "1"))
		wantStatus(t, m, 200, "OK")
		value := m.Value.(map[string]any)
		if at, ok := value["runtime_info_retrieval_time_utc"].(time.Time); !ok || time.Since(at) < 0 {
			t.Errorf("retrieved at %v", value["runtime_info_retrieval_time_utc"])
		}
		delete(value, "runtime_info_retrieval_time_utc")
		return value
	}
	want := map[string]any{
		"name": "orders", "type": "com.microsoft:partition", "partition": "1",
		"begin_sequence_number": int64(-1), "last_enqueued_sequence_number": int64(-1), "last_enqueued_offset": "-1",
		"last_enqueued_time_utc": yearOne, "is_partition_empty": true,
	}
	testkit.Diff(t, want, ask())
	p, err := y.broker.Publish(t.Context(), "orders", broker.Target{Partition: "1"}, []eventlog.Event{{Message: plain(t, "a")}, {Message: plain(t, "b")}})
	testkit.Must(t, err)
	want["begin_sequence_number"], want["last_enqueued_sequence_number"], want["last_enqueued_offset"] = int64(0), int64(1), "1"
	want["last_enqueued_time_utc"], want["is_partition_empty"] = p.Time, false
	for range 2 { // and the same again
		testkit.Diff(t, want, ask())
	}
}

// The types on the wire, which a client's library may hide: int, long, array of string.
func TestTypesOfManagementAnswers(t *testing.T) {
	r := wire.NewReader(appendHub(nil, broker.Hub{Name: "h", Partitions: 2, Created: time.UnixMilli(5).UTC()}))
	hub := testkit.Value(r.ReadAny())(t)
	testkit.Diff(t, wire.Map{
		{Key: "name", Value: "h"}, {Key: "type", Value: typeHub}, {Key: "created_at", Value: time.UnixMilli(5).UTC()},
		{Key: "partition_count", Value: int32(2)}, {Key: "partition_ids", Value: wire.Array{Of: wire.CodeString32, Values: []any{"0", "1"}}},
		{Key: "georeplication_factor", Value: int32(1)},
	}, hub)
	r = wire.NewReader(appendPartition(nil, broker.PartitionInfo{Hub: "h", ID: "1", First: 3, Last: 2, LastOffset: "2", Empty: true}))
	partition := testkit.Value(r.ReadAny())(t)
	testkit.Diff(t, wire.Map{
		{Key: "name", Value: "h"}, {Key: "type", Value: typePartition}, {Key: "partition", Value: "1"},
		{Key: "begin_sequence_number", Value: int64(3)}, {Key: "last_enqueued_sequence_number", Value: int64(2)},
		{Key: "last_enqueued_offset", Value: "2"}, {Key: "last_enqueued_time_utc", Value: yearOne},
		{Key: "is_partition_empty", Value: true}, {Key: "runtime_info_retrieval_time_utc", Value: yearOne},
	}, partition)
}

func TestManagementRequestsThatFail(t *testing.T) {
	y := newOrders(t, 4)
	c := newRPC(t, y.session(), "$management")
	const partitionText = "The specified partition is invalid for an EventHub partition sender or receiver. It should be between 0 and 3."
	tests := []struct {
		what      string
		m         *goamqp.Message
		code      int32
		condition wire.Symbol
		text      string
	}{
		{"a hub that is not there", read(typeHub, "nope"), 404, condNotFound, "The messaging entity 'sb://localhost/nope' could not be found."},
		{"a partition of a hub that is not there", read(typePartition, "nope", "partition", "0"), 404, condNotFound,
			"The messaging entity 'sb://localhost/nope' could not be found."},
		{"a partition that is not there", read(typePartition, "orders", "partition", "4"), 400, condRange, partitionText},
		{"a partition that is none", read(typePartition, "orders", "partition", "x"), 400, condRange, partitionText},
		{"no partition", read(typePartition, "orders"), 400, condRange, partitionText},
		{"a partition that is a number", read(typePartition, "orders", "partition", int32(0)), 400, condRange, partitionText},
		{"another type", read("com.microsoft:queue", "orders"), 501, condNotImplemented, "$management does not know"},
		{"another operation", read(typeHub, "orders", "operation", "DELETE"), 501, condNotImplemented, "$management does not know"},
		{"nothing", &goamqp.Message{Value: "x"}, 501, condNotImplemented, "$management does not know"},
		{"no hub", read(typeHub, ""), 400, condArgument, "The request names no hub."},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			got := c.ask(tt.m)
			wantStatus(t, got, tt.code, tt.text)
			if condition := got.ApplicationProperties["error-condition"]; condition != string(tt.condition) {
				t.Errorf("condition is %v, want %s", condition, tt.condition)
			}
		})
	}
}

// H9: any right to the hub will do, put before or brought along, and none to another.
func TestRightsToReadAHub(t *testing.T) {
	y := newOrders(t, 1)
	y.hub("other", 1)
	y.policy("orders", "sends", auth.Send)
	y.policy("orders", "listens", auth.Listen)
	y.policy("other", "elsewhere", auth.Manage)
	const refused = "Unauthorized access. 'Listen' claim(s) are required to perform this operation. Resource: 'sb://localhost/orders/$management'. TrackingId:"
	tests := []struct {
		what   string
		policy string // logged in as; empty: nobody
		token  any    // brought along; nil: none
		code   int32
		text   string
	}{
		{"to send", "sends", nil, 200, "OK"},
		{"to listen", "listens", nil, 200, "OK"},
		{"of the root", auth.RootPolicy, nil, 200, "OK"},
		{"to another hub", "elsewhere", nil, 401, refused},
		{"none", "", nil, 401, refused},
		{"brought along, for the hub", "", sasToken("sb://localhost/orders", "sends", time.Hour), 200, "OK"},
		{"brought along, for its management", "", sasToken("amqps://h/orders/$management", "listens", time.Hour), 200, "OK"},
		{"brought along, beside one to another hub", "elsewhere", sasToken("sb://localhost/orders", "listens", time.Hour), 200, "OK"},
		{"brought along, but for another hub", "", sasToken("sb://localhost/other", "elsewhere", time.Hour), 401, refused},
		{"brought along, but expired", "", sasToken("sb://localhost/orders", "listens", -time.Hour), 401, "ExpiredToken: "},
		{"brought along, but wrong", "", auth.Sign("sb://localhost/orders", "listens", "wrong", time.Now().Add(time.Hour)), 401, textSignature},
		// Who brings a token is judged by it, whatever was put before.
		{"put before, while what is brought is signed with another key", "listens",
			auth.Sign("sb://localhost/orders", "listens", "wrong", time.Now().Add(time.Hour)), 401, textSignature},
		{"put before, while what is brought has expired", "listens", sasToken("sb://localhost/orders", "listens", -time.Hour), 401, "ExpiredToken: "},
		{"put before, while what is brought is for another hub", "listens", sasToken("sb://localhost/other", "elsewhere", time.Hour), 401, refused},
		{"put before, while what is brought is malformed", "listens", "SharedAccessSignature sr=x", 401, "Token is malformed: it lacks sig"},
		{"put before, while what is brought is no token", auth.RootPolicy, "nonsense", 401, "Tokens of this kind are not accepted"},
		{"put before, while what is brought is empty", auth.RootPolicy, "", 401, "Token is malformed"},
		{"put before, while what is brought is bytes", auth.RootPolicy, []byte(sasToken("sb://localhost/orders", "sends", time.Hour)), 401, "Token is malformed"},
		{"put before, while what is brought is a number", auth.RootPolicy, int32(1), 401, "Token is malformed"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			y := y.in(t)
			s := newSession(t, y.dial(nil))
			if tt.policy != "" {
				s = y.sessionAs(tt.policy)
			}
			for _, m := range []*goamqp.Message{read(typeHub, "orders"), read(typePartition, "orders", "partition", "0")} {
				if tt.token != nil {
					m.ApplicationProperties["security_token"] = tt.token
				}
				wantStatus(t, newRPC(t, s, "$management").ask(m), tt.code, tt.text)
			}
		})
	}
}

// Several pairs on one connection, each with replies of its own.
func TestSeveralPairsToManagement(t *testing.T) {
	y := newYard(t)
	y.hub("a", 1)
	y.hub("b", 1)
	s := y.session()
	first, second := newRPC(t, s, "$management"), newRPC(t, s, "$management")
	for range 3 {
		for hub, c := range map[string]*rpc{"a": first, "b": second} {
			if got := c.ask(read(typeHub, hub)).Value.(map[string]any)["name"]; got != hub {
				t.Errorf("told about %v, asked about %s", got, hub)
			}
		}
	}
}

// H10: a client may ask about all partitions of the largest hub at once, and hears of each.
func TestAskingAboutAllPartitionsAtOnce(t *testing.T) {
	const partitions = 1024
	y := newYard(t)
	y.hub("orders", partitions)
	c := newRPC(t, y.session(), "$management")
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	var asking sync.WaitGroup
	defer asking.Wait()
	for id := range partitions {
		asking.Go(func() {
			m := read(typePartition, "orders", "partition", fmt.Sprint(id))
			m.Properties = &goamqp.MessageProperties{ReplyTo: &c.replyTo, MessageID: uint64(id)}
			if err := c.sender.Send(ctx, m, nil); err != nil {
				t.Errorf("partition %d: %v", id, err)
				giveUp()
			}
		})
	}
	reported := make(map[any]bool)
	for range partitions {
		m := testkit.Value(c.receiver.Receive(ctx, nil))(t)
		wantStatus(t, m, 200, "OK")
		reported[m.Properties.CorrelationID] = true
	}
	testkit.Equal(t, len(reported), partitions, "told about")
}
