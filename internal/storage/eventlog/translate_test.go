package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// words translates a frame whose bytes are words; a part has two of them.
func words(to []eventlog.Event, buf []byte, frame eventlog.Run, maxBytes int) ([]eventlog.Event, []byte, error) {
	all := strings.Fields(string(frame.Raw))
	if len(all) != frame.Count {
		return to, buf, errors.New("another number of words")
	}
	for _, word := range all[frame.Skip:min(frame.Skip+2, frame.Count)] {
		at := len(buf)
		buf = append(buf, word...)
		to = append(to, eventlog.Event{Message: buf[at:len(buf):len(buf)]})
	}
	return to, buf, nil
}

func shown(run eventlog.Run) string {
	s := fmt.Sprintf("%d %v:", run.First, run.Producer.First)
	for _, e := range run.Events {
		s += " " + string(e.Message)
	}
	return s
}

// K4: a reader of single events gets those of a frame in parts, each with its number, and what is around it.
func TestTranslated(t *testing.T) {
	when := time.UnixMilli(7)
	list := func() *runs {
		return &runs{left: []eventlog.Run{
			{First: 0, Events: []eventlog.Event{{Message: []byte("single")}}},
			{First: 2, Time: when, Form: eventlog.FormKafka, Raw: []byte("a b c d e"), Count: 5, Skip: 1, Producer: eventlog.Producer{First: 100, Set: true}},
			{First: 6, Events: []eventlog.Event{{Message: []byte("behind")}}},
			{First: 7, Form: 99, Raw: []byte("x"), Count: 2},
		}}
	}
	by := eventlog.Translators{eventlog.FormKafka: words}
	c := eventlog.Translated(list(), by)
	for _, want := range []struct {
		run string
		at  eventlog.Sequence
	}{{"0 0: single", 1}, {"2 100: b c", 4}, {"4 102: d e", 6}, {"6 0: behind", 7}} {
		run := testkit.Value(c.TryNext(t.Context()))(t)
		testkit.Equal(t, shown(run), want.run)
		testkit.Equal(t, c.At(), want.at, "behind %s", want.run)
	}
	for range 2 {
		testkit.ErrorIs(t, testkit.Err(c.Next(t.Context())), eventlog.ErrForm, "a form that nobody translates")
		testkit.Equal(t, c.At(), 7)
	}

	c = eventlog.Translated(list(), by)
	var all []eventlog.Run
	for range 2 {
		all = testkit.Value(c.TryNextAll(t.Context(), all, 1<<20))(t)
	}
	testkit.Equal(t, len(all), 2, "runs")
	testkit.Equal(t, all[1].Time, when)
	extents := testkit.Value(c.Extents(t.Context(), nil, 1))(t)
	testkit.Slices(t, extents, []eventlog.Extent{{First: 4, Form: eventlog.FormKafka, Count: 5, Skip: 3, Bytes: 9, Producer: eventlog.Producer{First: 102, Set: true}}}, "what is left of the frame")
	woken := false
	c.Await(func() { woken = true })()
	testkit.That(t, woken, "who waits in the middle of a frame waits for ever")
	c.Rest()
	testkit.Equal(t, shown(testkit.Value(c.Next(t.Context()))(t)), "4 102: d e", "after a rest in the middle")
}

// K4: a frame that cannot be translated is damage, behind which a reader goes on.
func TestAFrameThatCannotBeTranslated(t *testing.T) {
	bad := eventlog.Run{First: 5, Form: eventlog.FormKafka, Raw: []byte("a b"), Count: 4, Skip: 2}
	none := func(to []eventlog.Event, buf []byte, _ eventlog.Run, _ int) ([]eventlog.Event, []byte, error) {
		return to, buf, nil
	}
	for what, by := range map[string]eventlog.Translate{"an error": words, "no events": none} {
		c := eventlog.Translated(&runs{left: []eventlog.Run{bad}}, eventlog.Translators{eventlog.FormKafka: by})
		for range 2 {
			_, err := c.TryNext(t.Context())
			damage, ok := errors.AsType[*eventlog.CorruptError](err)
			testkit.MustThat(t, ok && damage.First == 3 && damage.Next == 7, "%s: %v", what, err)
			testkit.Equal(t, c.At(), 5, "where it stays")
		}
	}
	r := eventlog.NewReader(func(_ context.Context, at eventlog.Position) (eventlog.Cursor, error) {
		left := []eventlog.Run{bad, {First: 7, Events: []eventlog.Event{{Message: []byte("behind")}}}}
		if n, _ := at.Sequence(); n == 7 {
			left = left[1:]
		}
		return eventlog.Translated(&runs{left: left, at: left[0].First}, eventlog.Translators{eventlog.FormKafka: words}), nil
	}, 5)
	_, damage, err := r.Next(t.Context())
	testkit.Must(t, err)
	testkit.MustThat(t, damage != nil && damage.First == 5 && damage.Next == 7, "%v", damage)
	run, _, err := r.Next(t.Context())
	testkit.Must(t, err)
	testkit.Equal(t, shown(run), "7 0: behind")
}
