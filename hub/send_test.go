package hub_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/server"
)

// H3: whatever an event can hold comes back as it was sent, with its Go types.
func TestWhatIsSentComesBackWithItsTypes(t *testing.T) {
	y := start(t)
	at := time.Date(2024, 2, 29, 12, 0, 0, 5e6, time.UTC)
	everything := map[string]any{
		"nil": nil, "bool": true, "i8": int8(-1), "i16": int16(-2), "i32": int32(-3), "i64": int64(-4),
		"u8": uint8(1), "u16": uint16(2), "u32": uint32(3), "u64": uint64(4), "f32": float32(1.5), "f64": 2.5,
		"text": "ü", "bytes": []byte{0, 1}, "uuid": [16]byte{1, 2}, "time": at, "symbol": event.Symbol("s"),
		"char": event.Char('ü'), "d32": event.Decimal32{1}, "d64": event.Decimal64{2}, "d128": event.Decimal128{3},
	}
	nested := event.Map{
		{Key: "z", Value: []any{int32(1), "two"}}, {Key: "a", Value: event.Map{{Key: int32(7), Value: "seven"}}},
		{Key: event.Symbol("d"), Value: event.Described{Descriptor: event.Symbol("x:y"), Value: "v"}},
	}
	sent := []event.Event{
		event.Text("plain"),
		event.Bytes(nil),
		{Body: []byte("all of it"), ContentType: "text/plain", MessageID: "id", CorrelationID: uint64(9), Subject: "s", Properties: everything},
		{Body: []byte("system"), MessageID: [16]byte{9}, System: map[string]any{
			"to": "t", "reply-to": "r", "user-id": []byte("u"), "content-encoding": "gzip", "absolute-expiry-time": at, "creation-time": at,
			"group-id": "g", "group-sequence": uint32(5), "reply-to-group-id": "rg", "x-my-annotation": int64(5), "x-symbol": event.Symbol("q"),
		}},
		{Value: nested},
		{Value: event.Decimal64{8}},
		{Value: "text as a value", Properties: map[string]any{"a": int32(1)}},
	}
	testkit.Must(t, y.hub.SendTo(t.Context(), "1", sent...))
	for i := range sent { // and each with a key
		keyed := sent[i]
		keyed.Key = "key"
		testkit.Must(t, y.hub.Send(t.Context(), keyed))
	}
	partition := keyPartition(t, y.hub, len(sent))
	got := next(t, open(t, y.hub, hub.ReadConfig{Partition: "1"}), len(sent))
	keyed := next(t, open(t, y.hub, hub.ReadConfig{Partition: partition, From: firstKeyed(partition, len(sent))}), len(sent))
	for i := range sent {
		want := sent[i]
		if want.Value == nil && want.Body == nil {
			want.Body = []byte{}
		}
		compare(t, got[i], want, "1", int64(i))
		want.Key = "key"
		compare(t, keyed[i], want, partition, keyed[0].Sequence+int64(i))
	}
}

// keyPartition finds where the key has led, in a hub whose partition 1 has so many others.
func keyPartition(t *testing.T, h *hub.Hub, others int) string {
	t.Helper()
	info := bounds(t, h, "1")
	if info.Last+1 > int64(others) {
		return "1"
	}
	return "0"
}

func firstKeyed(partition string, others int) hub.Position {
	if partition == "1" {
		return hub.At(int64(others))
	}
	return hub.Earliest
}

func compare(t *testing.T, got, want event.Event, partition string, sequence int64) {
	t.Helper()
	if got.Partition != partition || got.Sequence != sequence || got.Offset != fmt.Sprint(sequence) || time.Since(got.Enqueued).Abs() > time.Hour {
		t.Errorf("event is at %s/%d, offset %s, enqueued %s", got.Partition, got.Sequence, got.Offset, got.Enqueued)
	}
	got.Partition, got.Sequence, got.Offset, got.Enqueued = "", 0, "", time.Time{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sent (-) and read (+):\n%s", diff)
	}
}

// H2: one key, one partition, in order; no key goes round.
func TestEventsWithOneKeyStayTogether(t *testing.T) {
	y := start(t)
	for i := range 20 {
		ev := event.Text(fmt.Sprint(i))
		ev.Key = "home-42"
		testkit.Must(t, y.hub.Send(t.Context(), ev))
	}
	info := bounds(t, y.hub, "0")
	partition := "0"
	if info.Empty {
		partition = "1"
	}
	events := next(t, open(t, y.hub, hub.ReadConfig{Partition: partition}), 20)
	wantBodies(t, events, bodies(numbers(0, 20))...)
	for _, ev := range events {
		testkit.Equal(t, ev.Key, "home-42", "event %d has the key", ev.Sequence)
	}
}

func TestEventsOfOneCallHaveOneKey(t *testing.T) {
	y := start(t)
	keyed := event.Event{Key: "a", Body: []byte("x")}
	wantError(t, y.hub.Send(t.Context(), keyed, event.Event{Key: "b"}), hub.ErrMixedKeys)
	wantError(t, y.hub.Send(t.Context(), keyed, event.Event{}), hub.ErrMixedKeys)
	wantError(t, y.hub.SendTo(t.Context(), "0", keyed), hub.ErrMixedKeys)
	_, err := y.hub.NewBatch(t.Context(), hub.BatchConfig{Key: "a", Partition: "0"})
	wantError(t, err, hub.ErrMixedKeys)
	b, err := y.hub.NewBatch(t.Context(), hub.BatchConfig{Key: "a"})
	testkit.Must(t, err)
	wantError(t, b.Add(event.Event{Key: "b"}), hub.ErrMixedKeys)
	testkit.Must(t, b.Add(keyed))
	testkit.Must(t, b.Add(event.Text("takes the batch's")))
	testkit.Must(t, y.hub.SendBatch(t.Context(), b))
	testkit.Must(t, y.hub.Send(t.Context())) // nothing
}

// H2: a batch takes what the hub takes, to the byte or nearly so.
func TestABatchIsFilledUpToTheHubsLimit(t *testing.T) {
	y := start(t)
	for name, cfg := range map[string]hub.BatchConfig{
		"to the hub": {}, "by key": {Key: strings.Repeat("k", 100)}, "to a partition": {Partition: "1"}, "with a limit of its own": {MaxBytes: 5000},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := y.hub.NewBatch(t.Context(), cfg)
			testkit.Must(t, err)
			ev := event.Bytes(bytes.Repeat([]byte("x"), 999))
			ev.Properties = map[string]any{"n": int32(1)}
			for err = b.Add(ev); err == nil; err = b.Add(ev) {
			}
			wantError(t, err, hub.ErrTooLarge)
			limit := 1 << 20
			if cfg.MaxBytes > 0 {
				limit = cfg.MaxBytes
			}
			if b.Bytes() > limit || b.Bytes() < limit-1500 || b.Len() < b.Bytes()/1300 {
				t.Errorf("holds %d events in %d bytes, of %d", b.Len(), b.Bytes(), limit)
			}
			testkit.Must(t, y.hub.SendBatch(t.Context(), b))
			if b.Len() == 0 {
				t.Error("it is empty after it was sent")
			}
		})
	}
}

func TestWhatDoesNotFitIsTooLarge(t *testing.T) {
	y := start(t)
	huge := event.Bytes(make([]byte, 1<<20))
	wantError(t, y.hub.Send(t.Context(), huge), hub.ErrTooLarge)
	wantError(t, y.hub.Send(t.Context(), event.Bytes(make([]byte, 6e5)), event.Bytes(make([]byte, 6e5))), hub.ErrTooLarge)
	b, err := y.hub.NewBatch(t.Context(), hub.BatchConfig{})
	testkit.Must(t, err)
	wantError(t, b.Add(huge), hub.ErrTooLarge)
	large := event.Bytes(bytes.Repeat([]byte("y"), 1<<20-100))
	testkit.Must(t, y.hub.SendTo(t.Context(), "0", large)) // many frames
	got := next(t, open(t, y.hub, hub.ReadConfig{Partition: "0"}), 1)
	testkit.Slices(t, got[0].Body, large.Body, "a large event is another when it is read")
}

func TestWhatCannotBeEncodedIsNotSent(t *testing.T) {
	y := start(t)
	for name, ev := range map[string]event.Event{
		"two bodies":                {Body: []byte{}, Value: 1},
		"a channel":                 {Properties: map[string]any{"c": make(chan int)}},
		"an odd message id":         {MessageID: 1.5},
		"a key and an odd property": {Key: "k", System: map[string]any{"to": 5}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := y.hub.Send(t.Context(), ev); err == nil {
				t.Errorf("%s was sent", name)
			}
		})
	}
}

// H9: rights are the policy's.
func TestSendingNeedsTheRight(t *testing.T) {
	y := start(t, func(cfg *server.Config) {
		cfg.Policies = []server.Policy{{Name: "reader", Hub: "h", Rights: []string{"listen"}, PrimaryKey: strings.Repeat("k", 44)}}
	})
	c := y.at(t, "amqp")
	c.Policy, c.Key, c.Hub = "reader", strings.Repeat("k", 44), "h"
	client := y.dial(t, c.String(), hub.Config{})
	h := client.Hub("") // the connection string's
	if h.Name() != "h" || h.Namespace() != "127.0.0.1" {
		t.Errorf("the hub is %q in %q", h.Name(), h.Namespace())
	}
	wantError(t, h.Send(t.Context(), event.Text("x")), hub.ErrUnauthorized)
	testkit.Must(t, y.hub.SendTo(t.Context(), "0", event.Text("x")))
	wantBodies(t, next(t, open(t, h, hub.ReadConfig{Partition: "0"}), 1), "x")
	testkit.Must(t, infoError(h))
}

func TestThereIsNothingToSendToWhereThereIsNoHub(t *testing.T) {
	y := start(t)
	wantError(t, y.client.Hub("none").Send(t.Context(), event.Text("x")), hub.ErrNotFound)
	wantError(t, y.hub.SendTo(t.Context(), "17", event.Text("x")), hub.ErrNotFound)
	wantError(t, testkit.Err(y.client.Hub("none").NewBatch(t.Context(), hub.BatchConfig{})), hub.ErrNotFound)
}

func TestManySendersShareTheirLink(t *testing.T) {
	y := start(t)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			for j := range 20 {
				testkit.Check(t, y.hub.SendTo(t.Context(), "0", event.Text(fmt.Sprintf("%d/%d", i, j))))
			}
		})
	}
	all.Wait()
	seen := make(map[string]bool)
	latest := make(map[string]int)
	for _, ev := range next(t, open(t, y.hub, hub.ReadConfig{Partition: "0"}), 400) {
		var i, j int
		testkit.Must(t, testkit.Err(fmt.Sscanf(string(ev.Body), "%d/%d", &i, &j)))
		sender := fmt.Sprint(i)
		if seen[string(ev.Body)] || j != latest[sender] {
			t.Fatalf("%s came out of order or twice", ev.Body)
		}
		seen[string(ev.Body)], latest[sender] = true, j+1
	}
}

// A caller who has no time any more does no harm to the others on his link.
func TestACanceledSendHarmsNobody(t *testing.T) {
	y := start(t)
	testkit.Must(t, y.hub.SendTo(t.Context(), "0", event.Text("first")))
	large := event.Bytes(make([]byte, 1<<20-200))
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if err := y.hub.SendTo(ctx, "0", large); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		testkit.Must(t, y.hub.SendTo(t.Context(), "0", event.Text("still here")))
	}
}
