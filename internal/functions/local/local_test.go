package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// kinds are the errors that callers branch on.
var kinds = []error{
	hub.ErrClosed, hub.ErrNotFound, hub.ErrUnauthorized, hub.ErrTooLarge, hub.ErrOutOfOrder, hub.ErrProducerFenced, hub.ErrEvicted,
	hub.ErrRefused, hub.ErrOutOfRange, hub.ErrUnreadable, context.Canceled, context.DeadlineExceeded,
}

// kind is which of them an error is.
func kind(err error) error {
	for _, k := range kinds {
		if errors.Is(err, k) {
			return k
		}
	}
	return err
}

// H3: events come as they come over AMQP, whatever is in them.
func TestEventsAreTheSameAsOverAMQP(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.store("orders", "0", event.Text("plain"), event.Event{Key: "customer-42", Body: []byte{}, Subject: "door"})
		y.store("orders", "0", event.Event{
			Key: "customer-42", Body: []byte(`{"open":true}`), ContentType: "application/json", MessageID: "id-1", CorrelationID: uint64(7),
			Properties: map[string]any{"n": int32(1), "text": "grün"}, System: map[string]any{"reply-to": "here", "x-opt-mine": int64(7)},
		})
		time.Sleep(time.Second)
		y.store("orders", "0", event.Event{Value: event.Map{{Key: "k", Value: []any{nil, "a"}}}}, event.Text(strings.Repeat("long ", 20_000)))
		here := read(t, y.open(y.local, hub.ReadConfig{Partition: "0"}), 5)
		there := read(t, y.open(y.dialed, hub.ReadConfig{Partition: "0"}), 5)
		if diff := cmp.Diff(there, here); diff != "" {
			t.Errorf("from over AMQP to here:\n%s", diff)
		}
		synctest.Wait() // over AMQP they are counted when they have been handed over
		testkit.Equal(t, testutil.ToFloat64(y.broker.Reads("orders", broker.DefaultGroup)), 10, "events that were read, by either way")
	})
}

// H10: what hubs and partitions tell of themselves is the same, and so is what is not there.
func TestInfoIsTheSameAsOverAMQP(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.texts("1", "a", "b")
		for _, name := range []string{"orders", "ORDERS", "nothing"} {
			here, err := y.local.Hub(name).Info(t.Context())
			there, other := y.dialed.Hub(name).Info(t.Context())
			if diff := cmp.Diff(there, here); diff != "" || kind(err) != kind(other) {
				t.Errorf("%s: %v, over AMQP %v\n%s", name, err, other, diff)
			}
			for _, id := range []string{"0", "1", "2", "x"} {
				here, err := y.local.Hub(name).Partition(t.Context(), id)
				there, other := y.dialed.Hub(name).Partition(t.Context(), id)
				if there.Last < 0 {
					there.LastEnqueued = here.LastEnqueued // AMQP has no zero time
				}
				if diff := cmp.Diff(there, here); diff != "" || kind(err) != kind(other) {
					t.Errorf("%s/%s: %v, over AMQP %v\n%s", name, id, err, other, diff)
				}
			}
		}
		if h := y.local.Hub("Orders"); h.Name() != "Orders" || h.Namespace() != "yard" {
			t.Errorf("it is %s of %s", h.Name(), h.Namespace())
		}
	})
}

// H4: every position finds the same event, or is refused in the same way.
func TestPositionsAreTheSameAsOverAMQP(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		began := time.Now()
		for i := range 5 {
			y.texts("0", fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		for _, from := range []hub.Position{
			hub.Earliest, hub.At(0), hub.At(3), hub.At(5), hub.At(6), hub.At(-4), hub.After(-1), hub.After(2), hub.After(4), hub.After(5),
			hub.AtOffset("2"), hub.AfterOffset("2"), hub.AfterOffset("-1"), hub.AfterOffset("4"), hub.AfterOffset("5"), hub.AtOffset("x"), hub.AtOffset(""),
			hub.AtOffset("99999999999999999999"), hub.Since(began), hub.Since(began.Add(-time.Hour)), hub.Since(began.Add(2500 * time.Millisecond)),
			hub.Since(began.Add(time.Hour)), hub.Latest,
		} {
			first := func(space functions.Namespace) string {
				r, err := space.Hub("orders").Open(t.Context(), hub.ReadConfig{Partition: "0", From: from})
				if err != nil {
					return kind(err).Error()
				}
				defer r.Close(context.Background())
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				events, err := r.Next(ctx, nil, 1)
				if err != nil {
					return kind(err).Error()
				}
				return string(events[0].Body)
			}
			if here, there := first(y.local), first(y.dialed); here != there {
				t.Errorf("%s gives %q, over AMQP %q", from, here, there)
			}
		}
	})
}

// H5, H6, H7: readers of both ways are one crowd.
func TestEpochsHoldAcrossBothWays(t *testing.T) {
	bothWays(t, func(t *testing.T, y *yard, one, other functions.Namespace) {
		open := func(space functions.Namespace, epoch hub.Epoch) (hub.Reader, error) {
			r, err := space.Hub("orders").Open(t.Context(), hub.ReadConfig{Partition: "0", Epoch: epoch, Name: "reader"})
			if err != nil {
				return nil, err
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // a refusal may come with the first read
			defer cancel()
			if _, err := r.Next(ctx, nil, 1); !errors.Is(err, context.DeadlineExceeded) {
				_ = r.Close(context.Background())
				return nil, err
			}
			return r, nil
		}
		plain, err := open(one, hub.Epoch{})
		testkit.Must(t, err)
		low, err := open(other, hub.Exclusive(1)) // H7: an epoch disconnects who has none
		testkit.Must(t, err)
		if _, err := plain.Next(t.Context(), nil, 1); kind(err) != hub.ErrEvicted {
			t.Errorf("one without epoch hears %v", err)
		}
		if _, err := open(one, hub.Epoch{}); kind(err) != hub.ErrRefused { // H7
			t.Errorf("a second without epoch hears %v", err)
		}
		waiting := make(chan error, 1)
		go func() { _, err := low.Next(t.Context(), nil, 1); waiting <- err }()
		synctest.Wait()
		high, err := open(one, hub.Exclusive(1)) // H5: an equal one takes over
		testkit.Must(t, err)
		if err := <-waiting; kind(err) != hub.ErrEvicted {
			t.Errorf("who waits hears %v", err)
		}
		if _, err := low.Next(t.Context(), nil, 1); kind(err) != hub.ErrEvicted {
			t.Errorf("and later %v", err)
		}
		if _, err := open(other, hub.Exclusive(0)); kind(err) != hub.ErrRefused || !strings.Contains(err.Error(), "1") { // H5
			t.Errorf("a lower one hears %v", err)
		}
		for _, r := range []hub.Reader{plain, low, high} {
			testkit.Must(t, r.Close(t.Context()))
		}
		synctest.Wait()
		var all []hub.Reader
		for range broker.MaxReceivers { // H6, H7: nobody with an epoch is there
			r, err := open(one, hub.Epoch{})
			testkit.Must(t, err)
			all = append(all, r)
		}
		if _, err := open(other, hub.Epoch{}); kind(err) != hub.ErrRefused {
			t.Errorf("the sixth hears %v", err)
		}
		for _, r := range all {
			testkit.Must(t, r.Close(t.Context()))
		}
	})
}

// What a reader is given when it ends in one way or another.
func TestAReaderThatEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(y *yard, r hub.Reader, cancel func())
		want error
		good bool // it can be read on
	}{
		"its context":     {func(_ *yard, _ hub.Reader, cancel func()) { cancel() }, context.Canceled, true},
		"it is closed":    {func(y *yard, r hub.Reader, _ func()) { testkit.Must(y.t, r.Close(y.t.Context())) }, hub.ErrClosed, false},
		"its hub is gone": {func(y *yard, _ hub.Reader, _ func()) { testkit.Must(y.t, y.broker.DeleteHub(y.t.Context(), "orders")) }, hub.ErrNotFound, false},
		"its hub is another": {func(y *yard, _ hub.Reader, _ func()) {
			testkit.Must(y.t, y.broker.DeleteHub(y.t.Context(), "orders"))
			y.hub("orders", 2)
		}, hub.ErrNotFound, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, y *yard) {
				y.texts("0", "a")
				r := y.open(y.local, hub.ReadConfig{Partition: "0"})
				if _, reported := r.LastEnqueued(); reported {
					t.Error("the newest event is reported before the first")
				}
				read(t, r, 1)
				if last, reported := r.LastEnqueued(); !reported || last.Sequence != 0 || last.Offset != "0" {
					t.Errorf("the newest is %+v", last)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				waiting := make(chan error, 1)
				dst := make([]event.Event, 1, 5)
				go func() {
					got, err := r.Next(ctx, dst, 3)
					if len(got) != len(dst) {
						err = fmt.Errorf("%d events", len(got))
					}
					waiting <- err
				}()
				synctest.Wait()
				c.end(y, r, cancel)
				if err := <-waiting; kind(err) != c.want {
					t.Errorf("it hears %v, want %v", err, c.want)
				}
				if c.good {
					y.texts("0", "b")
					if got := read(t, r, 1); string(got[0].Body) != "b" {
						t.Errorf("then it gives %s", got[0].Body)
					}
				} else if _, err := r.Next(t.Context(), nil, 1); kind(err) != c.want {
					t.Errorf("and then %v", err)
				}
				testkit.Must(t, r.Close(t.Context()))
				testkit.Must(t, r.Close(t.Context()))
			})
		})
	}
}

// What storage cannot do for a while is tried again; what it can never do is passed by.
func TestTroubleOfTheLog(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.texts("0", "a", "b", "c", "d")
		r := y.open(y.local, hub.ReadConfig{Partition: "0"})
		broken := errors.New("the disk is away")
		y.fail(broken, eventlog.ErrUnavailable, broken) // C5
		began := time.Now()
		if got := read(t, r, 1); string(got[0].Body) != "a" || time.Since(began) < 3*firstPause {
			t.Errorf("it gives %s after %v", got[0].Body, time.Since(began))
		}
		y.fail(&eventlog.CorruptError{First: 1, Next: 3})
		if got := read(t, r, 1); string(got[0].Body) != "d" {
			t.Errorf("behind the damage is %s", got[0].Body)
		}
		y.fail(&eventlog.CorruptError{First: 4, Next: eventlog.NoSequence}, broken)
		y.texts("0", "e")
		if got := read(t, r, 1); string(got[0].Body) != "e" {
			t.Errorf("behind the end is %s", got[0].Body)
		}
		y.fail(broken)
		ctx, cancel := context.WithTimeout(t.Context(), firstPause/4)
		defer cancel()
		if _, err := r.Next(ctx, nil, 1); kind(err) != context.DeadlineExceeded {
			t.Errorf("who does not wait hears %v", err)
		}
		y.fail(broken)
		testkit.Must(t, y.broker.DeleteHub(t.Context(), "orders"))
		if _, err := r.Next(t.Context(), nil, 1); kind(err) != hub.ErrNotFound {
			t.Errorf("of a hub that is gone it hears %v", err)
		}
	})
}

// An event that cannot be read is reported once, in its turn; what is no message at all comes
// without contents.
func TestAnEventThatCannotBeRead(t *testing.T) {
	bothWays(t, func(t *testing.T, y *yard, space, _ functions.Namespace) {
		y.texts("0", "a")
		for _, stored := range []string{"\x00\x53\x73 no properties", "no message"} {
			_, err := y.broker.Publish(t.Context(), "orders", broker.Target{Partition: "0"}, []eventlog.Event{{Key: []byte("k"), Message: []byte(stored)}})
			testkit.Must(t, err)
		}
		y.texts("0", "b")
		r := y.open(space, hub.ReadConfig{Partition: "0"})
		if got, err := r.Next(t.Context(), nil, 10); err != nil || len(got) != 1 || string(got[0].Body) != "a" {
			t.Errorf("first there are %v, %v", got, err)
		}
		if got, err := r.Next(t.Context(), nil, 10); len(got) != 0 || kind(err) != hub.ErrUnreadable || space == y.local && !strings.Contains(err.Error(), "sequence number 1") {
			t.Errorf("then %v, %v", got, err)
		}
		got := read(t, r, 2)
		empty := event.Event{Key: "k", Partition: "0", Sequence: 2, Offset: "2", Enqueued: got[0].Enqueued}
		testkit.Deep(t, got[0], empty, "then there is")
		testkit.Equal(t, string(got[1].Body), "b", "and then")
	})
}

// F4, R1: numbers are stored once, however often they are sent, here as over AMQP; but who has the
// same id there is another.
func TestProducersAreTheSameAsOverAMQP(t *testing.T) {
	bothWays(t, func(t *testing.T, y *yard, one, other functions.Namespace) {
		send := func(space functions.Namespace, number int32, epoch int16, text string) error {
			p := space.Hub("orders").Producer(hub.ProducerConfig{Partition: "0", ID: 7, Epoch: epoch})
			defer p.Close(context.Background())
			ev := event.Text(text)
			ev.Key = "key-" + text
			return p.Send(t.Context(), number, ev)
		}
		testkit.Must(t, send(one, 0, 0, "a"))
		testkit.Must(t, send(one, 0, 0, "a again"))
		testkit.Must(t, send(one, 1, 0, "b"))
		testkit.Must(t, send(one, 1, 0, "b again"))
		testkit.Must(t, send(one, 2, 0, "c"))
		if err := send(one, 7, 0, "x"); kind(err) != hub.ErrOutOfOrder {
			t.Errorf("out of order it hears %v", err)
		}
		testkit.Must(t, send(one, 3, 1, "d"))
		if err := send(one, 4, 0, "x"); kind(err) != hub.ErrProducerFenced {
			t.Errorf("of an old epoch it hears %v", err)
		}
		if err := send(one, 4, 1, strings.Repeat("x", 1<<20)); kind(err) != hub.ErrTooLarge {
			t.Errorf("too large it hears %v", err)
		}
		testkit.That(t, send(one, -1, 1, "x") != nil, "a number below zero is taken")
		if other == one {
			testkit.Must(t, send(one, 4, 1, "e"))
		} else {
			testkit.Must(t, send(other, 0, 0, "e"))
		}
		r, err := one.Hub("orders").Open(t.Context(), hub.ReadConfig{Partition: "0"})
		testkit.Must(t, err)
		defer r.Close(context.Background())
		var got []string
		for _, ev := range read(t, r, 5) {
			got = append(got, string(ev.Body)+" "+ev.Key)
		}
		testkit.Equal(t, strings.Join(got, ", "), "a key-a, b key-b, c key-c, d key-d, e key-e", "stored")
	})
}

func TestAProducerThatCannot(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		p := y.local.Hub("orders").Producer(hub.ProducerConfig{Partition: "0", ID: 7})
		testkit.Must(t, p.Send(t.Context(), 0, event.Text("a")))
		if err := p.Send(t.Context(), 1, event.Event{Body: []byte{}, Value: 1}); err == nil {
			t.Error("an event with two bodies is taken")
		}
		testkit.Must(t, y.broker.DeleteHub(t.Context(), "orders"))
		if err := p.Send(t.Context(), 1, event.Text("b")); kind(err) != hub.ErrNotFound {
			t.Errorf("of a hub that is gone it hears %v", err)
		}
		y.hub("orders", 1)
		if err := p.Send(t.Context(), 1, event.Text("b")); kind(err) != hub.ErrOutOfOrder {
			t.Errorf("of one made anew it hears %v", err)
		}
		testkit.Must(t, p.Close(t.Context()))
		if err := p.Send(t.Context(), 0, event.Text("a")); kind(err) != hub.ErrClosed {
			t.Errorf("closed it hears %v", err)
		}
	})
}
