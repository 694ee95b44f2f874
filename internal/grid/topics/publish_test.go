package topics

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/tracing"
)

// G12: nothing is acknowledged that is not stored, and nothing stored twice that certainly was not.
func TestPublishDependsOnTheLog(t *testing.T) {
	broken := errors.New("no such disk")
	for _, test := range []struct {
		name    string
		answers []error
		want    error
		stored  int
	}{
		{"what is stored is acknowledged", nil, nil, 1},
		{"a fenced batch is appended again", []error{eventlog.ErrFenced, eventlog.ErrFenced}, nil, 1},
		{"but not for ever", []error{eventlog.ErrFenced, eventlog.ErrFenced, eventlog.ErrFenced, eventlog.ErrFenced}, eventlog.ErrFenced, 0},
		{"what is uncertain is not appended again", []error{fmt.Errorf("%w: %w", eventlog.ErrUncertain, eventlog.ErrFenced)}, eventlog.ErrUncertain, 0},
		{"a full disk is told", []error{eventlog.ErrNoSpace}, eventlog.ErrNoSpace, 0},
		{"a log that was removed is no topic", []error{eventlog.ErrRemoved}, ErrTopicNotFound, 0},
		{"any other failure is told", []error{broken}, broken, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			y := newYard(t)
			engine := logtest.NewFaulty(y.Engine)
			engine.Inject(func(op logtest.Op) (err error) {
				if op.Kind == logtest.OpSubmit && len(test.answers) > 0 {
					err, test.answers = test.answers[0], test.answers[1:]
				}
				return err
			})
			k := y.open(t, Config{Engine: engine}, "orders")
			testkit.ErrorIs(t, k.Publish(t.Context(), "orders", [][]byte{[]byte("{}")}, nil), test.want)
			testkit.Equal(t, len(stored(t, k, "orders")), test.stored, "stored")
		})
	}
}

func TestWhatIsPublished(t *testing.T) {
	k := newYard(t).open(t, Config{})
	for kind, want := range map[schema.Kind]string{
		schema.EventGrid: "application/json", schema.Custom: "application/json", schema.CloudEvents: "application/cloudevents+json",
	} {
		name := "topic-" + string(kind)
		testkit.Must(t, testkit.Err(k.CreateTopic(t.Context(), TopicConfig{Topic{Name: name, Schema: kind}})))
		mustPublish(t, k, name, `{"id":"1"}`)
		its, _ := k.Topic(name)
		log, _ := k.Log(&its)
		cursor, err := log.Cursor(t.Context(), eventlog.Earliest())
		testkit.Must(t, err)
		run, err := cursor.TryNext(t.Context())
		testkit.Must(t, err)
		e, err := message.Decode(run.Events[0].Message)
		if err != nil || e.ContentType != want || string(e.Body) != `{"id":"1"}` {
			t.Errorf("%s: got %+v, %v", kind, e, err)
		}
		cursor.Close()
	}
}

func TestPublishRefusesWhatIsTooLarge(t *testing.T) {
	k := newYard(t).open(t, Config{}, "orders")
	big := []byte(strings.Repeat("x", 1<<20))
	testkit.Check(t, k.Publish(t.Context(), "orders", [][]byte{big}, nil), "one of 1 MiB")
	err := k.Publish(t.Context(), "orders", [][]byte{big, big, big}, nil)
	wantError(t, err, eventlog.ErrTooLarge, "at most 3145728")
	testkit.Check(t, k.Publish(t.Context(), "orders", nil, nil), "none")
	testkit.Equal(t, len(stored(t, k, "orders")), 1, "are stored")
}

// The buffers that batches share mix nothing up.
func TestPublishersAtOnce(t *testing.T) {
	k := newYard(t).open(t, Config{}, "orders")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				e := fmt.Sprintf("%d-%d-%s", i, j, strings.Repeat(string(rune('a'+i)), 100*j))
				testkit.Check(t, k.Publish(t.Context(), "orders", [][]byte{[]byte(e), []byte(e)}, nil))
			}
		})
	}
	wg.Wait()
	got := stored(t, k, "orders")
	testkit.MustEqual(t, len(got), 320, "are stored")
	for i := 0; i < len(got); i += 2 {
		var who, which int
		if _, err := fmt.Sscanf(got[i], "%d-%d-", &who, &which); err != nil || got[i] != got[i+1] ||
			!strings.HasSuffix(got[i], "-"+strings.Repeat(string(rune('a'+who)), 100*which)) {
			t.Fatalf("stored %.60q and %.60q", got[i], got[i+1])
		}
	}
}

func BenchmarkPublish(b *testing.B) {
	k := newYard(b).open(b, Config{})
	mustTopic(b, k, "orders")
	events := make([][]byte, 100)
	for i := range events {
		events[i] = []byte(strings.Repeat("x", 500))
	}
	b.ReportAllocs()
	for b.Loop() {
		testkit.Must(b, k.Publish(b.Context(), "orders", events, nil))
	}
}

// V6: events get the trace that they are published with, in their form or beside it, and as much of it as
// there is room for: it never makes a publication fail.
func TestPublishCarriesTheTrace(t *testing.T) {
	k := newYard(t).open(t, Config{})
	trace := tracing.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a=1")
	const cloud = `{"specversion":"1.0","id":"1","source":"s","type":"t"}`
	for kind, event := range map[schema.Kind]string{schema.EventGrid: `{"id":"1"}`, schema.CloudEvents: cloud} {
		name := "topic-" + string(kind)
		testkit.Must(t, testkit.Err(k.CreateTopic(t.Context(), TopicConfig{Topic{Name: name, Schema: kind}})))
		testkit.Must(t, k.Publish(tracing.With(t.Context(), trace), name, [][]byte{[]byte(event)}, nil))
		its, _ := k.Topic(name)
		log, _ := k.Log(&its)
		cursor := testkit.Value(log.Cursor(t.Context(), eventlog.Earliest()))(t)
		run := testkit.Value(cursor.TryNext(t.Context()))(t)
		e := testkit.Value(message.Decode(run.Events[0].Message))(t)
		testkit.Must(t, cursor.Close())
		if kind == schema.EventGrid {
			testkit.Equal(t, e.Trace(), trace, "beside it")
			testkit.Equal(t, string(e.Body), event)
			continue
		}
		var envelope schema.Envelope
		testkit.Must(t, envelope.Scan(schema.CloudEventForm, e.Body))
		testkit.Equal(t, envelope.TraceContext(), trace, "in it")
		testkit.Equal(t, len(e.Properties), 0, "properties")
	}
}

func TestATraceFitsOrIsLeftOut(t *testing.T) {
	trace := tracing.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a=1")
	bare := trace
	bare.State = ""
	for room, want := range map[int]tracing.Context{2 * (traceBytes + 3): trace, 2 * traceBytes: bare, 2*traceBytes - 1: {}, -1: {}} {
		got, bytes := fitTrace(trace, 2, room)
		testkit.Equal(t, got, want, "in %d bytes", room)
		testkit.That(t, bytes <= max(room, 0), "it takes %d of %d", bytes, room)
	}
	got, bytes := fitTrace(tracing.Context{}, 2, 1000)
	testkit.That(t, !got.Valid() && bytes == 0, "none takes %d", bytes)
}
