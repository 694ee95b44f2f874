package hub_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// mine is the producer of most tests.
var mine = hub.ProducerConfig{Partition: "0", ID: 1 << 40, Epoch: 0}

func wantLast(t *testing.T, p *hub.Producer, want int32) {
	t.Helper()
	last, err := p.Last(t.Context())
	testkit.Must(t, err)
	testkit.Equal(t, last, want, "the last number")
}

// stored reads all that a partition holds.
func stored(t *testing.T, h *hub.Hub, partition string) []event.Event {
	t.Helper()
	info := bounds(t, h, partition)
	if info.Empty {
		return nil
	}
	return next(t, open(t, h, hub.ReadConfig{Partition: partition}), int(info.Last+1))
}

// H2: numbers begin at 0 and follow each other; what was stored under one is not stored again,
// whoever sends it.
func TestAProducerStoresEachNumberOnce(t *testing.T) {
	y := start(t)
	p := y.hub.Producer(mine)
	wantLast(t, p, -1)
	for i, ev := range numbers(0, 5) {
		testkit.Must(t, p.Send(t.Context(), int32(i), ev))
		testkit.Must(t, p.Send(t.Context(), int32(i), ev))
		wantLast(t, p, int32(i))
	}
	other := y.dial(t, y.ConnectionString(), hub.Config{}).Hub("h").Producer(mine)
	wantLast(t, other, 4)
	testkit.Must(t, other.Send(t.Context(), 2, event.Text("2")))
	testkit.Must(t, other.Send(t.Context(), 5, event.Text("5")))
	testkit.Must(t, p.Send(t.Context(), 5, event.Text("5")))
	testkit.Must(t, p.Send(t.Context(), 6, event.Text("6")))
	wantBodies(t, stored(t, y.hub, "0"), bodies(numbers(0, 7))...)
}

// H2: asking does no harm to who is about to send the first.
func TestWhoAsksForTheLastNumberDisturbsNobody(t *testing.T) {
	y := start(t)
	first, other := y.hub.Producer(mine), y.hub.Producer(mine)
	wantError(t, first.Send(t.Context(), 1, event.Text("a gap")), hub.ErrOutOfOrder)
	wantLast(t, other, -1)
	testkit.Must(t, first.Send(t.Context(), 0, event.Text("0")))
	wantLast(t, other, 0)
	wantLast(t, first, 0)
	testkit.Must(t, other.Send(t.Context(), 0, event.Text("0")))
	testkit.Must(t, first.Send(t.Context(), 1, event.Text("1")))
	wantBodies(t, stored(t, y.hub, "0"), "0", "1")
}

func TestNumbersThatDoNotFollow(t *testing.T) {
	y := start(t)
	p := y.hub.Producer(mine)
	wantError(t, p.Send(t.Context(), 1, event.Text("x")), hub.ErrOutOfOrder)
	testkit.Must(t, p.Send(t.Context(), 0, event.Text("0")))
	for _, n := range []int32{2, 7, math.MaxInt32} {
		err := p.Send(t.Context(), n, event.Text("x"))
		wantError(t, err, hub.ErrOutOfOrder)
		if !strings.Contains(err.Error(), fmt.Sprintf("number %d", n)) {
			t.Errorf("it says %v", err)
		}
	}
	testkit.Must(t, p.Send(t.Context(), 1, event.Text("1")))
	wantBodies(t, stored(t, y.hub, "0"), "0", "1")
}

// H2: a later epoch goes on behind the earlier, and ends it.
func TestALaterEpochOfAProducer(t *testing.T) {
	y := start(t)
	early, later := mine, mine
	later.Epoch = 3
	p, q := y.hub.Producer(early), y.hub.Producer(later)
	testkit.Must(t, p.Send(t.Context(), 0, event.Text("0")))
	wantLast(t, q, 0)
	wantError(t, p.Send(t.Context(), 1, event.Text("x")), hub.ErrProducerFenced)
	testkit.Must(t, q.Send(t.Context(), 1, event.Text("1")))
	wantError(t, p.Send(t.Context(), 2, event.Text("x")), hub.ErrProducerFenced)
	wantError(t, q.Send(t.Context(), 0, event.Text("0")), hub.ErrOutOfOrder)
	wantBodies(t, stored(t, y.hub, "0"), "0", "1")
}

// H2, H3: what an event holds comes back, its key too, and nothing of the numbers.
func TestAProducersEventsAreWhatTheyWere(t *testing.T) {
	y := start(t)
	partitions := map[string]*hub.Producer{}
	for _, partition := range []string{"0", "1"} {
		partitions[partition] = y.hub.Producer(hub.ProducerConfig{Partition: partition, ID: math.MaxInt64, Epoch: math.MaxInt16})
	}
	sent := []event.Event{
		event.Text("plain"),
		{Key: "the same key", Body: []byte("in both partitions")},
		{Body: []byte("all of it"), ContentType: "text/plain", MessageID: "id", Properties: map[string]any{"n": int32(1)}},
		{Key: "k", Body: []byte("s"), System: map[string]any{"to": "t", "x-mine": int64(5), "y-mine": event.Symbol("q")}},
		{Body: []byte("s"), System: map[string]any{"x-mine": int64(5)}},
		{Value: event.Map{{Key: "z", Value: int32(1)}}},
	}
	for partition, p := range partitions {
		t.Run(partition, func(t *testing.T) {
			for i, ev := range sent {
				testkit.Must(t, p.Send(t.Context(), int32(i), ev))
			}
			for i, got := range stored(t, y.hub, partition) {
				compare(t, got, sent[i], partition, int64(i))
			}
		})
	}
}

func TestProducersThatCannotBe(t *testing.T) {
	y := start(t)
	x := event.Text("x")
	for name, test := range map[string]struct {
		p    *hub.Producer
		want error
	}{
		"of no hub":              {y.client.Hub("none").Producer(mine), hub.ErrNotFound},
		"of a hub without name":  {y.client.Hub("").Producer(mine), hub.ErrNotFound},
		"of no partition":        {y.hub.Producer(hub.ProducerConfig{ID: 1}), hub.ErrNotFound},
		"of a partition too far": {y.hub.Producer(hub.ProducerConfig{ID: 1, Partition: "2"}), hub.ErrNotFound},
		"with an id below 0":     {y.hub.Producer(hub.ProducerConfig{ID: -1, Partition: "0"}), nil},
		"with an epoch below 0":  {y.hub.Producer(hub.ProducerConfig{Epoch: -1, Partition: "0"}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, lastErr := test.p.Last(t.Context())
			for _, err := range []error{test.p.Send(t.Context(), 0, x), lastErr} {
				if err == nil || test.want != nil && !errors.Is(err, test.want) || test.want == nil && errors.Is(err, hub.ErrNotFound) {
					t.Errorf("%s: answered %v", name, err)
				}
			}
		})
	}
	p := y.hub.Producer(mine)
	if err := p.Send(t.Context(), -1, x); err == nil {
		t.Error("a number below 0 was sent")
	}
	if err := p.Send(t.Context(), 0, event.Event{Body: []byte{}, Value: 1}); err == nil {
		t.Error("an event with two bodies was sent")
	}
	wantError(t, p.Send(t.Context(), 0, event.Bytes(make([]byte, 1<<20))), hub.ErrTooLarge)
	large := event.Bytes(bytes.Repeat([]byte("y"), 1<<20-300))
	testkit.Must(t, p.Send(t.Context(), 0, large)) // many frames; and none of the others took the number
	if got := stored(t, y.hub, "0"); len(got) != 1 || !bytes.Equal(got[0].Body, large.Body) {
		t.Errorf("%d events are stored, or it is another", len(got))
	}
}

// H2: programs that race for a number store it once, and each hears that it is stored.
func TestTheSameNumberFromSeveralClientsAtOnce(t *testing.T) {
	y := start(t)
	var producers []*hub.Producer
	for range 3 {
		producers = append(producers, y.dial(t, y.ConnectionString(), hub.Config{}).Hub("h").Producer(mine))
	}
	for i := range 40 {
		var all sync.WaitGroup
		for _, p := range producers {
			all.Go(func() {
				testkit.Check(t, p.Send(t.Context(), int32(i), event.Text(fmt.Sprint(i))))
			})
		}
		all.Wait()
	}
	wantBodies(t, stored(t, y.hub, "0"), bodies(numbers(0, 40))...)
}

// H2: what was stored before a restart of the yard is not stored again after it, by the same link
// or another's.
func TestAProducerAfterARestartOfTheYard(t *testing.T) {
	y := start(t)
	standing := y.dial(t, y.ConnectionString(), hub.Config{Retry: quickly}).Hub("h").Producer(mine)
	for i, ev := range numbers(0, 8) {
		testkit.Must(t, standing.Send(t.Context(), int32(i), ev))
	}
	y.restart(t, func() {})
	other := y.dial(t, y.ConnectionString(), hub.Config{}).Hub("h").Producer(mine)
	wantLast(t, other, 7)
	for _, p := range []*hub.Producer{standing, other} {
		for i, ev := range numbers(0, 8) {
			testkit.Must(t, p.Send(t.Context(), int32(i), ev))
		}
		testkit.Must(t, p.Send(t.Context(), 8, event.Text("8")))
	}
	h := y.dial(t, y.ConnectionString(), hub.Config{}).Hub("h")
	wantBodies(t, stored(t, h, "0"), bodies(numbers(0, 9))...)
}

// H2: a hub that was made anew knows no producers, also where a link of the old one stands.
func TestAProducerOfAHubThatWasMadeAnew(t *testing.T) {
	y := start(t)
	y.Hub(t, "doomed", 1)
	h := y.client.Hub("doomed")
	p := h.Producer(mine)
	for i, ev := range numbers(0, 7) {
		testkit.Must(t, p.Send(t.Context(), int32(i), ev))
	}
	y.remove(t, "doomed")
	wantError(t, p.Send(t.Context(), 7, event.Text("7")), hub.ErrNotFound)
	y.Hub(t, "doomed", 1)
	wantError(t, p.Send(t.Context(), 7, event.Text("7")), hub.ErrOutOfOrder)
	testkit.Must(t, p.Send(t.Context(), 0, event.Text("new")))
	wantBodies(t, stored(t, h, "0"), "new")

	y.remove(t, "doomed")
	y.Hub(t, "doomed", 1)
	wantError(t, p.Send(t.Context(), 1, event.Text("1")), hub.ErrOutOfOrder)
	wantLast(t, p, -1)
}

// A link that stands from before a hub was made anew does not keep others from sending to it
// either.
func TestSendingToAHubThatWasMadeAnew(t *testing.T) {
	y := start(t)
	for i := range 3 {
		y.Hub(t, "doomed", 1)
		testkit.Must(t, y.client.Hub("doomed").SendTo(t.Context(), "0", event.Text(fmt.Sprint(i))))
		wantBodies(t, stored(t, y.client.Hub("doomed"), "0"), fmt.Sprint(i))
		y.remove(t, "doomed")
	}
}

// H2: behind the largest number comes 0 again.
func TestAProducersNumbersRollOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := startMemory(t, memorySetup{})
		// A yard takes a new producer's word for how many it has stored elsewhere.
		start := int32(math.MaxInt32 - 3)
		early, err := y.broker.Producer(t.Context(), "h", "0", broker.ProducerConfig{ID: &mine.ID, Epoch: &mine.Epoch, Last: &start})
		testkit.Must(t, err)
		pending, err := early.Submit(t.Context(), start+1, []eventlog.Event{{Message: encoded(t, "largest but 3")}})
		testkit.Must(t, err)
		testkit.Must(t, testkit.Err(pending.Wait(t.Context())))
		h := y.dial(t, development.String(), hub.Config{}).Hub("h")
		p := h.Producer(mine)
		wantLast(t, p, math.MaxInt32-3)
		for _, number := range []int32{math.MaxInt32 - 2, math.MaxInt32 - 1, math.MaxInt32, 0, 1} {
			for range 2 {
				testkit.Must(t, p.Send(t.Context(), number, event.Text(fmt.Sprint(number))))
			}
			if number != math.MaxInt32 { // of which hubs speak as of none
				wantLast(t, p, number)
			}
			testkit.Must(t, h.Producer(mine).Send(t.Context(), number, event.Text(fmt.Sprint(number))))
		}
		testkit.Must(t, p.Send(t.Context(), math.MaxInt32-1, event.Text("again")))
		wantBodies(t, stored(t, h, "0"), "largest but 3", "2147483645", "2147483646", "2147483647", "0", "1")
	})
}

// deafNetwork loses the answers to whatever is sent from when a word is written until its
// connection breaks.
type deafNetwork struct {
	y    *memoryYard
	word []byte
	once atomic.Bool
}

func (n *deafNetwork) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, err := n.y.listener.Dial(ctx)
	return &deafConn{Conn: conn, network: n}, err
}

type deafConn struct {
	net.Conn
	network *deafNetwork
	deaf    atomic.Bool
}

func (c *deafConn) Write(p []byte) (int, error) {
	if bytes.Contains(p, c.network.word) && c.network.once.CompareAndSwap(false, true) {
		c.deaf.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *deafConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.deaf.Load() {
			return n, err
		}
	}
}

// H2: an event whose answer was lost with the connection is sent again, and stored once.
func TestAProducerSendsAgainWhoseAnswerWasLost(t *testing.T) {
	bubble(t, memorySetup{}, func(t *testing.T, y *memoryYard, client *hub.Client) {
		h := client.Hub("h")
		client = y.dial(t, development.String(), hub.Config{Dial: (&deafNetwork{y: y, word: []byte("unheard")}).dial})
		p := client.Hub("h").Producer(mine)
		testkit.Must(t, p.Send(t.Context(), 0, event.Text("heard")))
		answer := make(chan error)
		go func() { answer <- p.Send(t.Context(), 1, event.Text("unheard")) }()
		synctest.Wait()
		wantBodies(t, stored(t, h, "0"), "heard", "unheard")
		select {
		case err := <-answer:
			t.Fatalf("it answered %v", err)
		default:
		}
		hub.BreakConnection(client)
		testkit.Must(t, <-answer)
		wantBodies(t, stored(t, h, "0"), "heard", "unheard")
		wantLast(t, p, 1)
	})
}

// A producer is closed whatever it is at, and with its client.
func TestCloseOfAProducer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := startMemory(t, memorySetup{})
		network := &flakyNetwork{y: y}
		client := y.dial(t, development.String(), hub.Config{Dial: network.dial})
		h := client.Hub("h")
		p, idle, never := h.Producer(mine), h.Producer(mine), h.Producer(mine)
		testkit.Must(t, p.Send(t.Context(), 0, event.Text("0")))
		testkit.Must(t, idle.Send(t.Context(), 1, event.Text("1")))
		for range 2 {
			testkit.Must(t, idle.Close(t.Context()))
			testkit.Must(t, never.Close(t.Context()))
		}
		for _, closed := range []*hub.Producer{idle, never} {
			wantError(t, closed.Send(t.Context(), 2, event.Text("2")), hub.ErrClosed)
			wantError(t, testkit.Err(closed.Last(t.Context())), hub.ErrClosed)
		}
		network.freeze()
		answer := make(chan error)
		go func() { answer <- p.Send(context.Background(), 2, event.Text("2")) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantError(t, p.Close(ctx), context.DeadlineExceeded)
		wantError(t, <-answer, hub.ErrClosed)
		network.thaw()

		last := h.Producer(mine)
		testkit.Must(t, last.Send(t.Context(), 2, event.Text("2")))
		testkit.Must(t, client.Close())
		wantError(t, last.Send(t.Context(), 3, event.Text("3")), hub.ErrClosed)
		testkit.Must(t, last.Close(t.Context()))
	})
}

// H2: through broken connections and calls that are given up, clients that send the same numbers
// store each exactly once, in order.
func TestAStormOfProducersStoresEachNumberOnce(t *testing.T) {
	y := start(t)
	const count = 150
	var all sync.WaitGroup
	for range 3 {
		client := y.dial(t, y.ConnectionString(), hub.Config{Retry: quickly})
		p := client.Hub("h").Producer(mine)
		sending := make(chan struct{})
		all.Go(func() {
			defer close(sending)
			for number := range int32(count) {
				insist(t, p, number)
			}
			testkit.Must(t, p.Close(t.Context()))
		})
		all.Go(func() {
			for {
				select {
				case <-sending:
					return
				case <-time.After(rand.N(25 * time.Millisecond)):
					hub.BreakConnection(client)
				}
			}
		})
	}
	all.Wait()
	events := stored(t, y.hub, "0")
	for i, ev := range events {
		if name, _, _ := strings.Cut(string(ev.Body), ";"); name != fmt.Sprint(i) {
			t.Fatalf("event %d is %s", i, name)
		}
	}
	if len(events) != count {
		t.Errorf("%d of %d are stored", len(events), count)
	}
}

// insist sends until it is heard that the number is stored, giving up now and then.
func insist(t *testing.T, p *hub.Producer, number int32) {
	ev := event.Text(fmt.Sprintf("%d;", number) + strings.Repeat("x", rand.IntN(2)*rand.IntN(150<<10)))
	for {
		ctx, cancel := context.WithTimeout(t.Context(), rand.N(40*time.Millisecond))
		err := p.Send(ctx, number, ev)
		cancel()
		switch {
		case err == nil:
			return
		case t.Context().Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("number %d: %v", number, err)
			return
		}
	}
}

// encoded is a text event as a yard stores it.
func encoded(t *testing.T, text string) []byte {
	t.Helper()
	b, err := message.Append(nil, event.Text(text))
	testkit.Must(t, err)
	return b
}
