package streamstest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

func readTests() []test {
	return []test{
		{"an empty stream", func(t *testing.T, n nodes) {
			part := readPart(t, n.b, "s", streams.Query{From: 1})
			testkit.That(t, len(part.Messages) == 0 && !part.More && part.Through == 0, "got %+v", part)
			testkit.ErrorIs(t, testkit.Err(n.b.Last(t.Context(), "s", "")), streams.ErrNoMessage)
			testkit.ErrorIs(t, testkit.Err(n.b.Last(t.Context(), "s", "0")), streams.ErrNoMessage)
			testkit.Eventually(t, "all servers have the new stream", func() bool {
				return testkit.Value(n.b.State(t.Context(), "s"))(t) == streams.State{First: 1}
			})
		}},
		{"from any sequence", func(t *testing.T, n nodes) {
			mustPublish(t, n.a, "s", "0", "1", "2", "3", "4", "5")
			read(t, n.b, "s", streams.Query{From: 1}, 5)
			for from := range 6 {
				got := read(t, n.a, "s", streams.Query{From: streams.Seq(from)}, min(5, 6-from))
				testkit.Equal(t, string(got[0].Data), fmt.Sprint(max(1, from)))
			}
			part := readPart(t, n.b, "s", streams.Query{From: 6})
			testkit.That(t, len(part.Messages) == 0 && !part.More, "behind the end: %+v", part)
		}},
		{"one subject", func(t *testing.T, n nodes) {
			for i := range 12 {
				mustPublish(t, n.a, "s", fmt.Sprint(i%3), fmt.Sprint(i))
			}
			testkit.Slices(t, texts(read(t, n.b, "s", streams.Query{Subject: "1"}, 4)), []string{"1:1", "1:4", "1:7", "1:10"})
			testkit.Slices(t, texts(read(t, n.b, "s", streams.Query{Subject: "1", From: 6, MaxMessages: 2}, 2)), []string{"1:7", "1:10"})
			part := readPart(t, n.b, "s", streams.Query{Subject: "none"})
			testkit.That(t, len(part.Messages) == 0 && !part.More, "of no subject: %+v", part)
		}},
		{"limits", limits},
		{"through", func(t *testing.T, n nodes) {
			last := mustPublish(t, n.a, "s", "0", "1", "2", "3")
			testkit.Eventually(t, "all is read", func() bool {
				part := readPart(t, n.b, "s", streams.Query{From: 2})
				return len(part.Messages) == 2 && !part.More && part.Through == last
			})
		}},
		{"many parts", func(t *testing.T, n nodes) {
			large := strings.Repeat("x", 100<<10)
			var want []string
			for i := range 60 {
				mustPublish(t, n.a, "s", fmt.Sprint(i%2), large[:100<<10-i])
				if i%2 == 0 {
					want = append(want, fmt.Sprint(100<<10-i))
				}
			}
			var got []string
			for _, m := range read(t, n.b, "s", streams.Query{Subject: "0", MaxBytes: 1 << 20}, 30) {
				got = append(got, fmt.Sprint(len(m.Data)))
			}
			testkit.Slices(t, got, want)
		}},
		// C3
		{"the last is what anybody has seen acknowledged", func(t *testing.T, n nodes) {
			for i := range 20 {
				subject := fmt.Sprint(i % 2)
				seq := mustPublish(t, n.a, "s", subject, fmt.Sprint(i))
				for _, asked := range []string{"", subject} {
					m, err := n.b.Last(t.Context(), "s", asked)
					testkit.Must(t, err)
					testkit.MustEqual(t, fmt.Sprint(m.Seq, m.Subject, string(m.Data)), fmt.Sprint(seq, subject, i))
				}
				state, err := n.b.State(t.Context(), "s")
				testkit.Must(t, err)
				testkit.That(t, state.First == 1 && state.Last == seq && state.Messages == uint64(seq) && state.Bytes > 0, "state %+v at %d", state, seq)
			}
			testkit.ErrorIs(t, testkit.Err(n.b.Last(t.Context(), "s", "2")), streams.ErrNoMessage)
		}},
	}
}

func limits(t *testing.T, n nodes) {
	for i := range 10 {
		mustPublish(t, n.a, "s", fmt.Sprint(i%2), strings.Repeat("x", 1000))
	}
	read(t, n.b, "s", streams.Query{From: 1}, 10)
	for _, tt := range []struct {
		q    streams.Query
		want int
		more bool
	}{
		{streams.Query{From: 1, MaxMessages: 3}, 3, true},
		{streams.Query{From: 1, MaxMessages: 1}, 1, true},
		{streams.Query{From: 1, MaxMessages: 10}, 10, false},
		{streams.Query{From: 8, MaxMessages: 3}, 3, false},
		{streams.Query{From: 10, MaxMessages: 1}, 1, false},
		{streams.Query{From: 1, MaxBytes: 1}, 1, true},
		{streams.Query{From: 1, MaxBytes: 2500}, 3, true},
		{streams.Query{From: 1, MaxBytes: 1 << 20}, 10, false},
		{streams.Query{From: 1, Subject: "1", MaxMessages: 2}, 2, true},
		{streams.Query{From: 1, Subject: "1", MaxMessages: 5}, 5, false},
		{streams.Query{From: 3, Subject: "1", MaxBytes: 1500}, 2, true},
	} {
		t.Run(fmt.Sprintf("%+v", tt.q), func(t *testing.T) {
			testkit.Eventually(t, "as much as the limits allow", func() bool { // a replica may lag
				part := readPart(t, n.b, "s", tt.q)
				testkit.MustThat(t, len(part.Messages) <= tt.want, "got %d messages", len(part.Messages))
				return len(part.Messages) == tt.want && part.More == tt.more
			})
		})
	}
}
