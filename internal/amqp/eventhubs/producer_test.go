package eventhubs

import (
	"testing"

	goamqp "github.com/Azure/go-amqp"
	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// idempotent attaches a producer that numbers its events; nil asks the server to choose.
func idempotent(id, epoch, last any) *goamqp.SenderOptions {
	return &goamqp.SenderOptions{
		DesiredCapabilities: []string{string(capabilityIdempotent)},
		Properties: map[string]any{
			wire.AnnotationProducerID: id, wire.AnnotationProducerEpoch: epoch, wire.AnnotationProducerSequence: last,
		},
	}
}

// identity is what the server has told a producer of itself.
type identity struct {
	id    int64
	epoch int16
	last  int32
}

func identityOf(t testing.TB, s *goamqp.Sender) identity {
	t.Helper()
	p := s.Properties()
	id, ok := p[wire.AnnotationProducerID].(int64)
	epoch, ok2 := p[wire.AnnotationProducerEpoch].(int16)
	last, ok3 := p[wire.AnnotationProducerSequence].(int32)
	if !ok || !ok2 || !ok3 {
		t.Fatalf("the properties are %v", p)
	}
	return identity{id, epoch, last}
}

// numbers makes a batch of events numbered from first.
func (i identity) numbers(t testing.TB, first int32, bodies ...string) *goamqp.Message {
	t.Helper()
	events := make([]*goamqp.Message, len(bodies))
	for n, body := range bodies {
		events[n] = text(body)
		events[n].Annotations = goamqp.Annotations{
			wire.AnnotationProducerID: i.id, wire.AnnotationProducerEpoch: i.epoch, wire.AnnotationProducerSequence: numberAfter(first, int32(n)),
		}
	}
	return batchOf(t, nil, events...)
}

// What is sent again is stored once; what skips or falls back is refused.
func TestIdempotentProducers(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 2)
	s := y.session()
	sender := newSender(t, s, "orders/Partitions/1", idempotent(nil, nil, nil))
	me := identityOf(t, sender)
	if me.epoch != 0 || me.last != -1 {
		t.Errorf("a new producer is %+v", me)
	}
	must(t, sender.Send(t.Context(), me.numbers(t, 0, "a", "b"), nil))
	must(t, sender.Send(t.Context(), me.numbers(t, 2, "c"), nil))
	must(t, sender.Send(t.Context(), me.numbers(t, 2, "c"), nil))
	wantError(t, sender.Send(t.Context(), me.numbers(t, 4, "e"), nil), condOutOfOrder, "")
	must(t, sender.Send(t.Context(), me.numbers(t, 3, "d"), nil))
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, y.stored("orders", "1")); diff != "" {
		t.Error(diff)
	}
	got := receive(t, newReceiver(t, s, "orders/ConsumerGroups/$Default/Partitions/1", listening{}), 1)[0]
	if len(got.Annotations) != 3 {
		t.Errorf("a consumer sees %v", got.Annotations)
	}

	// The numbers have to be there, and be its own.
	wantError(t, sender.Send(t.Context(), text("x"), nil), condArgument, "The events are not numbered as an idempotent producer's: ")
	stranger := me
	stranger.id++
	wantError(t, sender.Send(t.Context(), stranger.numbers(t, 4, "x"), nil), condArgument, "The events are not numbered as an idempotent producer's: ")

	// It comes back, and hears how far it came.
	must(t, sender.Close(t.Context()))
	again := newSender(t, s, "orders/Partitions/1", idempotent(me.id, me.epoch, int32(3)))
	if diff := cmp.Diff(identity{me.id, me.epoch, 3}, identityOf(t, again), cmp.AllowUnexported(identity{})); diff != "" {
		t.Error(diff)
	}
	must(t, again.Send(t.Context(), me.numbers(t, 3, "d"), nil))
	must(t, again.Send(t.Context(), me.numbers(t, 4, "e"), nil))

	// A higher epoch ends a lower one.
	thief := newSender(t, y.session(), "orders/Partitions/1", idempotent(me.id, me.epoch+1, nil))
	wantError(t, again.Send(t.Context(), me.numbers(t, 5, "f"), nil), condProducerEpoch, "")
	stolen := identityOf(t, thief)
	if stolen.id != me.id || stolen.epoch != me.epoch+1 {
		t.Errorf("the thief is %+v", stolen)
	}
	must(t, thief.Send(t.Context(), stolen.numbers(t, numberAfter(stolen.last, 1), "f"), nil))
	_, err := s.NewSender(t.Context(), "orders/Partitions/1", idempotent(me.id, me.epoch, nil))
	wantError(t, err, condProducerEpoch, "")
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e", "f"}, y.stored("orders", "1")); diff != "" {
		t.Error(diff)
	}
}

// The key of a batch's envelope is kept with the events of a producer, too.
func TestAProducersKeys(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	s := y.session()
	sender := newSender(t, s, "orders/Partitions/0", idempotent(nil, nil, nil))
	m := identityOf(t, sender).numbers(t, 0, "a")
	m.Annotations = goamqp.Annotations{wire.AnnotationPartitionKey: "key"}
	must(t, sender.Send(t.Context(), m, nil))
	got := receive(t, newReceiver(t, s, firstPartition, listening{}), 1)[0]
	if key := annotation[string](t, got, wire.AnnotationPartitionKey); key != "key" {
		t.Errorf("key is %q", key)
	}
}

func TestProducersThatAreRefused(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	s := y.session()
	for what, tt := range map[string]struct {
		address string
		opts    *goamqp.SenderOptions
		text    string
	}{
		"no partition":         {"orders", idempotent(nil, nil, nil), "An idempotent producer sends to a partition: "},
		"an id that is text":   {"orders/Partitions/0", idempotent("x", nil, nil), "The link property com.microsoft:producer-id is no number that it can be."},
		"an epoch too high":    {"orders/Partitions/0", idempotent(int64(1), int32(40000), nil), "The link property com.microsoft:producer-epoch is no number that it can be."},
		"a number below minus": {"orders/Partitions/0", idempotent(int64(1), int16(0), int32(-2)), "The link property com.microsoft:producer-sequence-number is no number that it can be."},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := s.NewSender(t.Context(), tt.address, tt.opts)
			wantError(t, err, condArgument, tt.text)
		})
	}
	// Without the capability the properties mean nothing.
	opts := idempotent("x", "y", "z")
	opts.DesiredCapabilities = nil
	must(t, newSender(t, s, "orders/Partitions/0", opts).Send(t.Context(), text("x"), nil))
}
