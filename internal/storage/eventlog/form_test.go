package eventlog_test

import (
	"context"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestBatchCheck(t *testing.T) {
	one, raw := []eventlog.Event{{Message: []byte("a")}}, []byte("frame")
	stamp := func([]byte, eventlog.Sequence, int64) {}
	for name, tt := range map[string]struct {
		batch eventlog.Batch
		want  error
	}{
		"events":                   {eventlog.Batch{Events: one}, nil},
		"a frame":                  {eventlog.Batch{Form: eventlog.FormKafka, Raw: raw, Count: 3}, nil},
		"a frame with a place":     {eventlog.Batch{Form: 200, Raw: raw, Count: 3, Place: stamp}, nil},
		"nothing":                  {eventlog.Batch{}, eventlog.ErrEmptyBatch},
		"a frame without bytes":    {eventlog.Batch{Form: eventlog.FormKafka, Count: 3}, eventlog.ErrEmptyBatch},
		"a frame without events":   {eventlog.Batch{Form: eventlog.FormKafka, Raw: raw}, eventlog.ErrEmptyBatch},
		"less than none":           {eventlog.Batch{Form: eventlog.FormKafka, Raw: raw, Count: -1}, eventlog.ErrEmptyBatch},
		"too many":                 {eventlog.Batch{Form: eventlog.FormKafka, Raw: raw, Count: 1 << 31}, eventlog.ErrTooLarge},
		"too large":                {eventlog.Batch{Form: eventlog.FormKafka, Raw: make([]byte, eventlog.MaxBatchBytes+1), Count: 1}, eventlog.ErrTooLarge},
		"just fits":                {eventlog.Batch{Form: eventlog.FormKafka, Raw: make([]byte, eventlog.MaxBatchBytes), Count: 1}, nil},
		"a long key":               {eventlog.Batch{Events: []eventlog.Event{{Key: make([]byte, eventlog.MaxKeyBytes+1)}}}, eventlog.ErrTooLarge},
		"events and raw bytes":     {eventlog.Batch{Events: one, Raw: raw}, eventlog.ErrForm},
		"events and a count":       {eventlog.Batch{Events: one, Count: 1}, eventlog.ErrForm},
		"events and a place":       {eventlog.Batch{Events: one, Place: stamp}, eventlog.ErrForm},
		"a frame with events, too": {eventlog.Batch{Events: one, Form: eventlog.FormKafka, Raw: raw, Count: 1}, eventlog.ErrForm},
	} {
		t.Run(name, func(t *testing.T) {
			size, err := tt.batch.Check()
			if tt.want == nil {
				testkit.Must(t, err)
				testkit.Equal(t, size, tt.batch.Bytes(), "size")
			} else {
				testkit.ErrorIs(t, err, tt.want)
			}
		})
	}
}

func TestRunsOfBothKindsCount(t *testing.T) {
	events := eventlog.Run{First: 7, Events: make([]eventlog.Event, 3)}
	frame := eventlog.Run{First: 7, Form: eventlog.FormKafka, Count: 5, Skip: 2}
	for _, run := range []eventlog.Run{events, frame} {
		testkit.Equal(t, run.Len(), 3, "%s", run.Form)
		testkit.Equal(t, run.Next(), 10, "%s", run.Form)
	}
}

// runs is a cursor over a list.
type runs struct {
	eventlog.Cursor
	left []eventlog.Run
	at   eventlog.Sequence
}

func (r *runs) TryNext(context.Context) (run eventlog.Run, err error) {
	if len(r.left) > 0 {
		run, r.left = r.left[0], r.left[1:]
		r.at = run.Next()
	}
	return run, nil
}

func (r *runs) TryNextAll(_ context.Context, to []eventlog.Run, _ int) ([]eventlog.Run, error) {
	to, r.left = append(to, r.left...), nil
	return to, nil
}

func (r *runs) Next(ctx context.Context) (eventlog.Run, error) { return r.TryNext(ctx) }

func (r *runs) At() eventlog.Sequence { return r.at }

func (r *runs) Await(func()) (stop func()) { return func() {} }

func (r *runs) Close() error { return nil }

// K4: who reads events is told that there are others, and neither passes them over nor takes them
// for the end.
func TestEventsOnly(t *testing.T) {
	list := func() *runs {
		return &runs{left: []eventlog.Run{
			{First: 0, Events: make([]eventlog.Event, 3)},
			{First: 5, Form: eventlog.FormKafka, Raw: []byte("x"), Count: 4, Skip: 2},
			{First: 7, Events: make([]eventlog.Event, 1)},
		}}
	}
	c := eventlog.EventsOnly(list())
	run := testkit.Value(c.TryNext(t.Context()))(t)
	testkit.Equal(t, run.Len(), 3)
	testkit.Equal(t, c.At(), 3)
	for _, next := range []func(context.Context) (eventlog.Run, error){c.Next, c.TryNext, c.Next} {
		run, err := next(t.Context())
		testkit.ErrorIs(t, err, eventlog.ErrForm)
		testkit.Equal(t, run.Len(), 0)
		testkit.Equal(t, c.At(), 5, "where it stays")
	}
	woken := false
	c.Await(func() { woken = true })()
	testkit.That(t, woken, "who waits is not told that there is something to say")

	c = eventlog.EventsOnly(list())
	got := testkit.Value(c.TryNextAll(t.Context(), nil, 1<<20))(t)
	testkit.Equal(t, len(got), 1, "runs before the frame")
	testkit.ErrorIs(t, testkit.Err(c.TryNextAll(t.Context(), nil, 1<<20)), eventlog.ErrForm)
	testkit.ErrorIs(t, testkit.Err(c.Extents(t.Context(), nil, 1<<20)), eventlog.ErrForm)
	testkit.Equal(t, c.At(), 5, "where it stays")
	frame := list()
	frame.left = frame.left[1:]
	none, err := eventlog.EventsOnly(frame).TryNextAll(t.Context(), nil, 1<<20)
	testkit.ErrorIs(t, err, eventlog.ErrForm)
	testkit.Equal(t, len(none), 0, "runs where the frame comes first")

	r := eventlog.NewReader(func(context.Context, eventlog.Position) (eventlog.Cursor, error) { return list(), nil }, 0)
	run, _, err = r.Next(t.Context())
	testkit.Must(t, err)
	testkit.Equal(t, run.Len(), 3)
	_, damage, err := r.Next(t.Context())
	testkit.ErrorIs(t, err, eventlog.ErrForm)
	testkit.That(t, damage == nil && r.At() == 3, "it has gone on to %d, passing %v", r.At(), damage)
}
