package streamstest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

// ear is what was heard.
type ear struct {
	mu   sync.Mutex
	news []string
}

func (e *ear) hear(data []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.news = append(e.news, string(data))
}

func (e *ear) heard() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.news)
}

// listen listens until the test ends.
func listen(t *testing.T, s streams.Storage, stream string) (*ear, func()) {
	t.Helper()
	e := &ear{}
	stop, err := s.Listen(stream, e.hear)
	testkit.Must(t, err)
	t.Cleanup(stop)
	return e, stop
}

// reached announces until all ears have heard something: a moment passes before all servers know who
// listens.
func reached(t *testing.T, s streams.Storage, stream string, ears ...*ear) {
	t.Helper()
	testkit.Eventually(t, "nobody hears", func() bool {
		s.Announce(stream, []byte("hello"))
		return !slices.ContainsFunc(ears, func(e *ear) bool { return !slices.Contains(e.heard(), "hello") })
	})
}

func announceTests() []test {
	return []test{
		{"all nodes hear what is announced", func(t *testing.T, n nodes) {
			a, _ := listen(t, n.a, "s")
			b, _ := listen(t, n.b, "s")
			other, _ := listen(t, n.b, "s-2")
			reached(t, n.a, "s", a, b)
			var want []string
			data := make([]byte, 0, 16)
			for i := range 100 {
				text := fmt.Sprint("news ", i)
				want = append(want, text)
				data = append(data[:0], text...) // the caller's again at once
				n.a.Announce("s", data)
			}
			for _, e := range []*ear{a, b} {
				testkit.Eventually(t, "all is heard", func() bool { return slices.Contains(e.heard(), "news 99") })
				news := slices.DeleteFunc(e.heard(), func(text string) bool { return text == "hello" })
				testkit.Slices(t, news, want)
			}
			testkit.Slices(t, other.heard(), nil, "on another stream")
		}},
		{"nothing is heard after the end", func(t *testing.T, n nodes) {
			a, stop := listen(t, n.a, "s")
			b, _ := listen(t, n.b, "s")
			reached(t, n.b, "s", a, b)
			stop()
			n.b.Announce("s", []byte("late"))
			testkit.Eventually(t, "another hears it", func() bool { return slices.Contains(b.heard(), "late") })
			testkit.That(t, !slices.Contains(a.heard(), "late"), "who has stopped hears it")
		}},
		{"a stream that is not there can be listened to", func(t *testing.T, n nodes) {
			b, _ := listen(t, n.b, "later")
			reached(t, n.a, "later", b)
		}},
	}
}
