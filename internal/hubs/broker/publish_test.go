package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H2: without partition and key, publications take turns.
func TestPublishTakesTurns(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 3)
	var got []string
	for i := range 7 {
		got = append(got, mustPublish(t, b, "orders", Target{}, strconv.Itoa(i)).Partition)
	}
	testkit.Slices(t, got, []string{"0", "1", "2", "0", "1", "2", "0"})
	testkit.Must(t, testkit.Err(b.UpdateHub(t.Context(), "orders", forEver())))
	testkit.Equal(t, mustPublish(t, b, "orders", Target{}, "next").Partition, "1",
		"after a change of the hub it is … 's turn")
}

// H2: which partition events go to, and which key is stored with them.
func TestPublishTargets(t *testing.T) {
	const partitions = 32
	withKeys := func(keys ...string) []eventlog.Event {
		batch := make([]eventlog.Event, len(keys))
		for i, k := range keys {
			batch[i] = eventlog.Event{Message: []byte{byte(i)}}
			if k != "" {
				batch[i].Key = []byte(k)
			}
		}
		return batch
	}
	tests := []struct {
		what      string
		to        Target
		events    []eventlog.Event
		partition int
		keys      []string
	}{
		{"a key decides", Target{Key: "device-1"}, withKeys("", ""), 4, []string{"device-1", "device-1"}},
		{"as Azure does", Target{Key: "日本語"}, withKeys(""), 25, []string{"日本語"}},
		{"a named partition wins over the key, which is kept", Target{Partition: "9", Key: "device-1"}, withKeys(""), 9, []string{"device-1"}},
		{"a named partition alone stores no key", Target{Partition: "31"}, withKeys(""), 31, []string{""}},
		{"an event's own key stays", Target{Key: "device-1"}, withKeys("own", ""), 4, []string{"own", "device-1"}},
		{"the key that all events have decides where nothing else does", Target{}, withKeys("device-2", "device-2"), 14, []string{"device-2", "device-2"}},
		{"different keys take their turn", Target{}, withKeys("device-2", "device-1"), 0, []string{"device-2", "device-1"}},
		{"a key that only some have does not decide", Target{}, withKeys("device-2", ""), 0, []string{"device-2", ""}},
		{"128 characters are allowed, whatever their bytes", Target{Partition: "1", Key: strings.Repeat("日", 128)}, withKeys(""), 1, []string{strings.Repeat("日", 128)}},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			b := newYard(t).open(t)
			mustCreate(t, b, "orders", partitions)
			p, err := b.Publish(t.Context(), "orders", tt.to, tt.events)
			testkit.Must(t, err)
			if p.Partition != strconv.Itoa(tt.partition) || p.First != 0 || p.Count != len(tt.keys) || p.Time.IsZero() {
				t.Errorf("got %+v, want partition %d", p, tt.partition)
			}
			c, err := b.Cursor(t.Context(), "orders", DefaultGroup, p.Partition, eventlog.Earliest())
			testkit.Must(t, err)
			defer c.Close()
			run, err := c.Next(t.Context())
			testkit.Must(t, err)
			var keys []string
			for _, e := range run.Events {
				keys = append(keys, string(e.Key))
			}
			testkit.Slices(t, keys, tt.keys, "stored keys")
		})
	}
}

// H2: what is refused stores nothing.
func TestPublishRefusals(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 4)
	tests := []struct {
		what   string
		hub    string
		to     Target
		events []eventlog.Event
		is     func(error) bool
	}{
		{"an unknown hub", "nowhere", Target{}, events("x"), func(err error) bool { return isNotFound(err, KindHub) }},
		{"an unknown partition", "orders", Target{Partition: "4"}, events("x"), func(err error) bool { return isNotFound(err, KindPartition) }},
		{"a partition misspelled", "orders", Target{Partition: "00"}, events("x"), func(err error) bool { return isNotFound(err, KindPartition) }},
		{"a key of 129 characters", "orders", Target{Key: strings.Repeat("ä", 129)}, events("x"), is(ErrKeyTooLong)},
		{"an event's own key of 129 characters", "orders", Target{Partition: "1"}, keyed("fine", strings.Repeat("ä", 129)), is(ErrKeyTooLong)},
		{"a key that is no text", "orders", Target{Key: "\xff"}, events("x"), is(ErrInvalidKey)},
		{"an event's own key that is no text", "orders", Target{}, keyed("fine", "half a \xe6\x97"), is(ErrInvalidKey)},
		{"nothing", "orders", Target{}, nil, is(eventlog.ErrEmptyBatch)},
		{"more than a batch may hold", "orders", Target{}, []eventlog.Event{{Message: make([]byte, eventlog.MaxBatchBytes)}}, is(eventlog.ErrTooLarge)},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			if _, err := b.Publish(t.Context(), tt.hub, tt.to, tt.events); !tt.is(err) {
				t.Errorf("got %v", err)
			}
		})
	}
	for i, got := range readAll(t, b, "orders") {
		if len(got) > 0 {
			t.Errorf("partition %d holds %q", i, got)
		}
	}
}

// keyed makes events with keys of their own.
func keyed(keys ...string) []eventlog.Event {
	batch := make([]eventlog.Event, len(keys))
	for i, key := range keys {
		batch[i] = eventlog.Event{Key: []byte(key), Message: []byte("x")}
	}
	return batch
}

func is(want error) func(error) bool {
	return func(err error) bool { return errors.Is(err, want) }
}

// H2: what was certainly not stored is appended again, what is in doubt never.
func TestPublishAgain(t *testing.T) {
	always := func(err error) func(logtest.Op) error {
		return func(op logtest.Op) error { return nth(logtest.OpSubmit, op.N, logtest.Refused(err))(op) }
	}
	once := func(err error) func(logtest.Op) error { return nth(logtest.OpSubmit, 1, logtest.Refused(err)) }
	tests := []struct {
		what    string
		answer  func(logtest.Op) error
		want    error
		appends int
	}{
		{"a fenced writer is asked again", once(eventlog.ErrFenced), nil, 2},
		{"but not for ever", always(eventlog.ErrFenced), eventlog.ErrFenced, eventlog.MaxAppends},
		{"a removed log is looked up again", once(eventlog.ErrRemoved), nil, 2},
		{"doubt is passed on", always(eventlog.ErrUncertain), eventlog.ErrUncertain, 1},
		{"also when fencing was its cause", always(fmt.Errorf("%w: %w", eventlog.ErrFenced, eventlog.ErrUncertain)), eventlog.ErrUncertain, 1},
		{"storage out of reach is, too", always(eventlog.ErrUnavailable), eventlog.ErrUnavailable, 1}, // C5
		{"a full disk is passed on", always(eventlog.ErrNoSpace), eventlog.ErrNoSpace, 1},
		{"an impatient caller is not asked again", always(context.DeadlineExceeded), context.DeadlineExceeded, 1},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			y := newYard(t)
			b := y.open(t)
			y.Engine.Inject(tt.answer)
			mustCreate(t, b, "orders", 1)
			_, err := b.Publish(t.Context(), "orders", Target{}, events("x"))
			if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			testkit.Equal(t, y.Engine.Count(logtest.OpSubmit), tt.appends, "appends")
		})
	}
}

// H2: publishing to a hub that was deleted and made anew behind the broker's back
// finds the new one.
func TestPublishFindsTheNewIncarnation(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 8)
	y.Engine.Inject(func(op logtest.Op) error {
		if op.Kind == logtest.OpSubmit && op.N == 1 {
			testkit.Check(t, b.DeleteHub(t.Context(), "orders"))
			mustCreate(t, b, "orders", 1)
		}
		return nil
	})
	p := mustPublish(t, b, "orders", Target{Key: "7"}, "x")
	if p.Partition != "0" || p.First != 0 {
		t.Errorf("got %+v", p)
	}
	if got := readAll(t, b, "orders"); len(got) != 1 || !slices.Equal(got[0], []string{"x"}) {
		t.Errorf("got %q", got)
	}
}

// H2: a batch is whole, in order and in one partition, however many publish at once.
func TestPublishStorm(t *testing.T) {
	const publishers, batches, size = 8, 25, 4
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 4)
	var wg sync.WaitGroup
	for who := range publishers {
		wg.Go(func() {
			for n := range batches {
				batch := make([]string, size)
				for i := range batch {
					batch[i] = fmt.Sprintf("%d %d %d", who, n, i)
				}
				testkit.Check(t, testkit.Err(b.Publish(t.Context(), "orders", Target{}, events(batch...))))
			}
		})
	}
	wg.Wait()
	total := 0
	for _, messages := range readAll(t, b, "orders") {
		total += len(messages)
		for at := 0; at+size <= len(messages); at += size {
			first, _ := strings.CutSuffix(messages[at], "0")
			for i := range size {
				testkit.MustEqual(t, messages[at+i], first+strconv.Itoa(i),
					"batch is broken: %q", messages[at:at+size])
			}
		}
	}
	testkit.Equal(t, total, publishers*batches*size, "events")
}

// H2: while a hub comes and goes, a publication either is stored once or is refused.
func TestPublishStormWithDeletes(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 2)
	done := make(chan struct{})
	var publishers sync.WaitGroup
	for who := range 4 {
		publishers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				_, err := b.Publish(t.Context(), "orders", Target{}, events(fmt.Sprint(who, n)))
				made := !errors.Is(err, eventlog.ErrUnavailable) // or else its log is being made
				if err != nil && made && !isNotFound(err, KindHub) && !errors.Is(err, eventlog.ErrRemoved) {
					t.Error(err)
				}
			}
		})
	}
	for range 20 {
		testkit.Check(t, b.DeleteHub(t.Context(), "orders"))
		mustCreate(t, b, "orders", 2)
	}
	close(done)
	publishers.Wait()
	mustPublish(t, b, "orders", Target{Partition: "0"}, "last")
	seen := make(map[string]bool)
	for _, messages := range readAll(t, b, "orders") {
		for _, m := range messages {
			if seen[m] {
				t.Errorf("%q is stored twice", m)
			}
			seen[m] = true
		}
	}
	if !seen["last"] {
		t.Error("the last event is not there")
	}
}

// nowhere is an engine that stores nothing, to measure the broker alone.
type nowhere struct{ eventlog.Engine }

func (nowhere) Provide(context.Context, string, eventlog.Shape) error { return nil }

func (nowhere) Partition(eventlog.PartitionID) (eventlog.Partition, error) {
	return nowherePartition{}, nil
}

type nowherePartition struct{ eventlog.Partition }

func (nowherePartition) Submit(context.Context, eventlog.Batch) (eventlog.Receipt, error) {
	return noReceipt{}, nil
}

type noReceipt struct{ eventlog.Receipt }

func (noReceipt) Wait(context.Context) (eventlog.Appended, error) { return eventlog.Appended{}, nil }

// H2: the broker's own cost does not grow with the number of events.
func TestPublishAllocatesNothingPerEvent(t *testing.T) {
	b := open(t, Config{Engine: nowhere{}, Meta: metatest.NewMemory()})
	mustCreate(t, b, "orders", 4)
	for i, to := range []Target{{}, {Partition: "3"}, {Key: "device-1"}, {Partition: "3"}} {
		var own []byte
		if i == 3 {
			own = []byte(strings.Repeat("日", 128))
		}
		batch := make([]eventlog.Event, 1000)
		allocs := testing.AllocsPerRun(100, func() {
			for i := range batch {
				batch[i].Key = own
			}
			testkit.Must(t, testkit.Err(b.Publish(t.Context(), "orders", to, batch)))
		})
		if allocs > 2 {
			t.Errorf("to %+v: %v allocations for 1000 events", to, allocs)
		}
	}
}

func BenchmarkPublish(b *testing.B) {
	broker, err := Open(b.Context(), Config{Engine: nowhere{}, Meta: metatest.NewMemory(), Log: testkit.Quiet()})
	testkit.Must(b, err)
	testkit.Must(b, testkit.Err(broker.CreateHub(b.Context(), HubConfig{Name: "orders"})))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		batch := make([]eventlog.Event, 10)
		for pb.Next() {
			testkit.Check(b, testkit.Err(broker.Publish(b.Context(), "orders", Target{}, batch)))
		}
	})
}

// H2: what the log does not take is refused with the numbers that matter: a key given for
// all events counts with each.
func TestTooLargeSaysHowMuch(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	const want = "batch is too large: 25000 events with their partition keys take 3425000 bytes, at most 3145728 are allowed"
	batch := func() []eventlog.Event { return slices.Repeat(events("x"), 25000) }
	if _, err := b.Publish(t.Context(), "orders", Target{Key: strings.Repeat("k", 128)}, batch()); !errors.Is(err, eventlog.ErrTooLarge) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	testkit.Check(t, testkit.Err(b.Publish(t.Context(), "orders", Target{}, batch())), "without the key")
	keyed := batch()
	for i := range keyed {
		keyed[i].Key = []byte(strings.Repeat("k", 128))
	}
	if _, err := mustBegin(t, b, "orders", ProducerConfig{}).Submit(t.Context(), 1, keyed); !errors.Is(err, eventlog.ErrTooLarge) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}
