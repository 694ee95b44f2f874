package eventhubs

import (
	"strings"
	"testing"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
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

// H2: what is sent again is stored once; what skips or falls back is refused.
func TestIdempotentProducers(t *testing.T) {
	y := newOrders(t, 2)
	s := y.session()
	sender := newSender(t, s, "orders/Partitions/1", idempotent(nil, nil, nil))
	me := identityOf(t, sender)
	if me.epoch != 0 || me.last != 0 || me.id < 0 || me.id >= 1<<53 {
		t.Errorf("a new producer is %+v", me)
	}
	testkit.Must(t, sender.Send(t.Context(), me.numbers(t, 1, "a", "b"), nil))
	testkit.Must(t, sender.Send(t.Context(), me.numbers(t, 3, "c"), nil))
	testkit.Must(t, sender.Send(t.Context(), me.numbers(t, 3, "c"), nil))
	testkit.Must(t, sender.Send(t.Context(), me.numbers(t, 1, "a", "b"), nil))
	wantError(t, sender.Send(t.Context(), me.numbers(t, 5, "e"), nil), condOutOfOrder, "")
	wantError(t, sender.Send(t.Context(), me.numbers(t, 2, "b"), nil), condOutOfOrder, "")
	testkit.Must(t, sender.Send(t.Context(), me.numbers(t, 4, "d"), nil))
	testkit.Diff(t, []string{"a", "b", "c", "d"}, y.stored("orders", "1"))
	got := receive(t, newReceiver(t, s, "orders/ConsumerGroups/$Default/Partitions/1", listening{}), 1)[0]
	testkit.Equal(t, len(got.Annotations), 3, "a consumer sees %v", got.Annotations)

	// The numbers have to be there, and be its own.
	wantError(t, sender.Send(t.Context(), text("x"), nil), condArgument, "The events are not numbered as an idempotent producer's: ")
	stranger := me
	stranger.id++
	wantError(t, sender.Send(t.Context(), stranger.numbers(t, 5, "x"), nil), condArgument, "The events are not numbered as an idempotent producer's: ")
}

// H2: whose answer was lost comes back with the number before, is told the same, and sends
// again under the same numbers: one client takes what it is told for its newest number.
func TestAProducerThatMissedAnAnswer(t *testing.T) {
	y := newOrders(t, 1)
	s := y.session()
	sender := newSender(t, s, "orders/Partitions/0", idempotent(nil, nil, nil))
	me := identityOf(t, sender)
	testkit.Must(t, sender.Send(t.Context(), me.numbers(t, 1, "a"), nil))
	testkit.Must(t, sender.Send(t.Context(), me.numbers(t, 2, "b", "c"), nil)) // of this it did not hear
	testkit.Must(t, sender.Close(t.Context()))
	sender = newSender(t, s, "orders/Partitions/0", idempotent(me.id, me.epoch, int32(1)))
	again := identityOf(t, sender)
	testkit.Equal(t, again, identity{me.id, me.epoch, 1}, "told")
	testkit.Must(t, sender.Send(t.Context(), again.numbers(t, again.last+1, "b", "c"), nil))
	testkit.Must(t, sender.Send(t.Context(), again.numbers(t, again.last+3, "d"), nil))
	testkit.Diff(t, []string{"a", "b", "c", "d"}, y.stored("orders", "0"))
}

// H2: a higher epoch ends a lower one, whose sends say so, also when it comes back.
func TestAProducersEpochIsStolen(t *testing.T) {
	y := newOrders(t, 1)
	s := y.session()
	sender := newSender(t, s, "orders/Partitions/0", idempotent(nil, nil, nil))
	me := identityOf(t, sender)
	testkit.Must(t, sender.Send(t.Context(), me.numbers(t, 1, "a"), nil))
	thief := newSender(t, y.session(), "orders/Partitions/0", idempotent(me.id, me.epoch+1, int32(1)))
	stolen := identityOf(t, thief)
	testkit.Equal(t, stolen, identity{me.id, me.epoch + 1, 1}, "the thief")
	back := newSender(t, y.session(), "orders/Partitions/0", idempotent(me.id, me.epoch, int32(1)))
	for _, robbed := range []*goamqp.Sender{sender, back} {
		err := robbed.Send(t.Context(), me.numbers(t, 2, "x"), nil)
		wantError(t, err, condProducerEpoch, "")
		testkit.Equal(t, strings.Contains(err.Error(), "Received:0 Current:1"), true, "the error is %v", err)
	}
	testkit.Must(t, thief.Send(t.Context(), stolen.numbers(t, 2, "b"), nil))
	testkit.Diff(t, []string{"a", "b"}, y.stored("orders", "0"))
}

// H2: what a client leaves open is chosen; what it gets wrong shows with what it sends.
func TestProducersThatKnowSomeOfTheirState(t *testing.T) {
	y := newOrders(t, 1)
	s := y.session()
	partial := identityOf(t, newSender(t, s, "orders/Partitions/0", idempotent(nil, int16(1), nil)))
	testkit.Equal(t, partial.epoch, 1, "an epoch alone is answered with")
	testkit.Equal(t, partial.last, 0, "an epoch alone is answered with")
	sender := newSender(t, s, "orders/Partitions/0", idempotent(nil, nil, nil))
	me := identityOf(t, sender)
	testkit.Must(t, sender.Send(t.Context(), me.numbers(t, 1, "1", "2", "3", "4", "5"), nil))
	wrong := newSender(t, s, "orders/Partitions/0", idempotent(me.id, nil, int32(1)))
	later := identityOf(t, wrong)
	testkit.Equal(t, later.id, me.id, "the answer is")
	testkit.Equal(t, later.last, 1, "the answer is")
	err := wrong.Send(t.Context(), later.numbers(t, 2, "six as two"), nil)
	wantError(t, err, condOutOfOrder, "")
	testkit.Equal(t, strings.Contains(err.Error(), "old sequence"), true, "the error is %v", err)
	// Who says that there is none counts from 0.
	zero := newSender(t, s, "orders/Partitions/0", idempotent(nil, nil, int32(-1)))
	fresh := identityOf(t, zero)
	testkit.Equal(t, fresh.last, -1, "the answer is %+v", fresh)
	testkit.Must(t, zero.Send(t.Context(), fresh.numbers(t, 0, "0"), nil))
}

// The key of a batch's envelope is kept with the events of a producer, too.
func TestAProducersKeys(t *testing.T) {
	y := newOrders(t, 1)
	s := y.session()
	sender := newSender(t, s, "orders/Partitions/0", idempotent(nil, nil, nil))
	m := identityOf(t, sender).numbers(t, 1, "a")
	m.Annotations = goamqp.Annotations{wire.AnnotationPartitionKey: "key"}
	testkit.Must(t, sender.Send(t.Context(), m, nil))
	got := receive(t, newReceiver(t, s, firstPartition, listening{}), 1)[0]
	testkit.Equal(t, annotation[string](t, got, wire.AnnotationPartitionKey), "key", "key")
}

func TestProducersThatAreRefused(t *testing.T) {
	y := newOrders(t, 1)
	s := y.session()
	const at = "orders/Partitions/0"
	for what, tt := range map[string]struct {
		address   string
		opts      *goamqp.SenderOptions
		condition wire.Symbol
		text      string
	}{
		"no partition":       {"orders", idempotent(nil, nil, nil), condArgument, "An idempotent producer sends to a partition: "},
		"an id that is text": {at, idempotent("x", nil, nil), condArgument, "The link property com.microsoft:producer-id is no number that it can be."},
		"an epoch too high":  {at, idempotent(int64(1), int32(40000), nil), condArgument, "The link property com.microsoft:producer-epoch is no number that it can be."},
		"an id below 0":      {at, idempotent(int64(-1), int16(0), int32(0)), condRange, textProducerState},
		"an epoch below 0":   {at, idempotent(nil, int16(-1), nil), condRange, textProducerState},
		"a number below -1":  {at, idempotent(int64(1), int16(0), int32(-2)), condRange, textProducerState},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := s.NewSender(t.Context(), tt.address, tt.opts)
			wantError(t, err, tt.condition, tt.text)
		})
	}
	// Without the capability the properties mean nothing.
	opts := idempotent("x", "y", "z")
	opts.DesiredCapabilities = nil
	testkit.Must(t, newSender(t, s, "orders/Partitions/0", opts).Send(t.Context(), text("x"), nil))
}
