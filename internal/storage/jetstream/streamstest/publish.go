package streamstest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

func publishTests() []test {
	return []test{
		{"sequences are dense over all subjects and nodes", func(t *testing.T, n nodes) {
			for i := range 6 {
				s := []streams.Storage{n.a, n.b}[i%2]
				testkit.Equal(t, mustPublish(t, s, "s", fmt.Sprint(i%3), "x"), streams.Seq(i+1))
			}
		}},
		// C2
		{"what one goroutine publishes is stored in that order", publishInOrder},
		// C1
		{"what many publish at once is stored once each", publishAtOnce},
		{"the data is the caller's again once done was called", func(t *testing.T, n nodes) {
			mustPublish(t, n.a, "s", "0", "first")
			data := []byte("aaaa")
			for range 3 {
				_, err := publish(n.a, "s", "0", data)
				testkit.Must(t, err)
				for i := range data {
					data[i]++
				}
			}
			testkit.Slices(t, texts(read(t, n.b, "s", streams.Query{From: 2}, 3)), []string{"0:aaaa", "0:bbbb", "0:cccc"})
		}},
		{"any bytes, none, and many", func(t *testing.T, n nodes) {
			every := make([]byte, 256)
			for i := range every {
				every[i] = byte(i)
			}
			all := []string{"", string(every), "\r\n", strings.Repeat(string(every), 4<<10)}
			mustPublish(t, n.a, "s", "0", all...)
			for i, m := range read(t, n.b, "s", streams.Query{From: 1}, len(all)) {
				testkit.That(t, bytes.Equal(m.Data, []byte(all[i])), "message %d differs", i)
			}
			m, err := n.b.Last(t.Context(), "s", "0")
			testkit.Must(t, err)
			testkit.That(t, string(m.Data) == all[3], "the last differs")
		}},
		{"subjects are any token", func(t *testing.T, n nodes) {
			subjects := []string{"0", "1024", "mark", "a-b_c", "~x", "%2F", "ü", strings.Repeat("long", 50)}
			for _, subject := range subjects {
				mustPublish(t, n.a, "s", subject, "x")
			}
			for i, m := range read(t, n.b, "s", streams.Query{}, len(subjects)) {
				testkit.Equal(t, m.Subject, subjects[i])
			}
			for i, subject := range subjects {
				m, err := n.b.Last(t.Context(), "s", subject)
				testkit.Must(t, err, "last of %s", subject)
				testkit.Equal(t, m.Seq, streams.Seq(i+1), "last of %s", subject)
			}
		}},
		{"a message that is too large is refused", func(t *testing.T, n nodes) {
			most := n.a.MaxMessageBytes()
			testkit.MustThat(t, most >= 1<<20, "messages of at most %d bytes", most)
			mustPublish(t, n.a, "s", "0", "x")
			_, err := publish(n.a, "s", "0", make([]byte, most+1))
			testkit.That(t, refused(err), "got %v", err)
			mustPublish(t, n.a, "s", "0", strings.Repeat("x", most))
			state, err := n.a.State(t.Context(), "s")
			testkit.Must(t, err)
			testkit.Equal(t, state.Last, 2)
		}},
		{"a stream that is full", full},
	}
}

// refused: a message was not stored and never will be.
func refused(err error) bool {
	return errors.Is(err, streams.ErrUnavailable) || errors.Is(err, streams.ErrNoSpace) ||
		errors.Is(err, streams.ErrNoStream) || errors.Is(err, streams.ErrClosed)
}

func publishInOrder(t *testing.T, n nodes) {
	mustPublish(t, n.a, "s", "0", "0")
	const messages = 500
	var acknowledged sync.WaitGroup
	for i := 1; i < messages; i++ {
		acknowledged.Add(1)
		var calls atomic.Int32
		n.a.Publish("s", fmt.Sprint(i%3), fmt.Append(nil, i), func(seq streams.Seq, err error) {
			testkit.Check(t, err, "message %d", i)
			testkit.Equal(t, seq, streams.Seq(i+1), "message %d", i)
			testkit.Equal(t, calls.Add(1), 1, "calls of done")
			acknowledged.Done()
		})
	}
	acknowledged.Wait()
	for i, m := range read(t, n.b, "s", streams.Query{From: 1}, messages) {
		testkit.Equal(t, m.Seq, streams.Seq(i+1))
		testkit.Equal(t, string(m.Data), fmt.Sprint(i))
		testkit.Equal(t, m.Subject, fmt.Sprint(i%3))
	}
}

func publishAtOnce(t *testing.T, n nodes) {
	mustPublish(t, n.a, "s", "0", "first")
	mustPublish(t, n.b, "s", "0", "second")
	const writers, each = 8, 50
	var mu sync.Mutex
	stored := map[streams.Seq]string{} // guarded by mu
	var all sync.WaitGroup
	for w := range writers {
		s := []streams.Storage{n.a, n.b}[w%2]
		all.Go(func() {
			for i := range each {
				text := fmt.Sprint(w, " ", i)
				seq, err := publish(s, "s", fmt.Sprint(w), []byte(text))
				testkit.Check(t, err, "%s", text)
				mu.Lock()
				stored[seq] = text
				mu.Unlock()
			}
		})
	}
	all.Wait()
	testkit.MustEqual(t, len(stored), writers*each, "sequences")
	for _, m := range read(t, n.b, "s", streams.Query{From: 3}, writers*each) {
		testkit.Equal(t, string(m.Data), stored[m.Seq], "message %d", m.Seq)
	}
}

// full: a limit refuses, loses nothing, and lets go on after a purge.
func full(t *testing.T, n nodes) {
	mustMake(t, n.a, "small", streams.Config{MaxBytes: 64 << 10})
	data := strings.Repeat("x", 4<<10)
	state := testkit.Value(n.b.State(t.Context(), "small"))(t)
	testkit.Equal(t, state.MaxBytes, 64<<10, "the limit, as another node hears of it")
	last := streams.Seq(0)
	testkit.Eventually(t, "there is no limit", func() bool {
		seq, err := publish(n.a, "small", "0", []byte(data))
		switch {
		case err == nil:
			testkit.MustThat(t, seq == last+1 && seq < 32, "sequence %d after %d", seq, last)
			last = seq
		case !errors.Is(err, streams.ErrUnavailable):
			testkit.MustErrorIs(t, err, streams.ErrNoSpace)
			return true
		}
		return false
	})
	testkit.MustThat(t, last > 4, "full after %d messages", last)
	testkit.Equal(t, len(read(t, n.b, "small", streams.Query{}, int(last))), int(last))
	testkit.Must(t, n.b.Purge(t.Context(), "small", "", last))
	testkit.Equal(t, mustPublish(t, n.a, "small", "0", data), last+1)
}
