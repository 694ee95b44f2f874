// Package streamstest is the other half of the contract in package streams: a suite that every
// storage must pass unchanged, be it servers or a model in memory, with two nodes over one storage. It
// tests what the contract promises while nothing fails, and allows what it allows: replicas that lag,
// publishes that are refused for a moment because the stream was only just made.
package streamstest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

// patience turns a hang into a failure; no test waits for it when all is well.
const patience = time.Minute

// nodes are two nodes over one storage.
type nodes struct{ a, b streams.Storage }

// test is one promise of the contract. Stream s is there when it begins.
type test struct {
	name string
	run  func(*testing.T, nodes)
}

// Run tests the contract. Open gives two nodes over one storage without streams each time, and
// arranges for their end by t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) (a, b streams.Storage)) {
	for _, group := range [][]test{lifeTests(), publishTests(), readTests(), purgeTests(), announceTests()} {
		for _, test := range group {
			t.Run(test.name, func(t *testing.T) {
				var n nodes
				n.a, n.b = open(t)
				mustMake(t, n.a, "s", streams.Config{})
				test.run(t, n)
			})
		}
	}
}

func mustMake(t *testing.T, s streams.Storage, name string, cfg streams.Config) {
	t.Helper()
	testkit.Must(t, s.Make(t.Context(), name, cfg), "make %s", name)
}

// answer is what was heard of one message.
type answer struct {
	seq streams.Seq
	err error
}

// publish publishes one message and waits for its answer.
func publish(s streams.Storage, stream, subject string, data []byte) (streams.Seq, error) {
	heard := make(chan answer, 1)
	s.Publish(stream, subject, data, func(seq streams.Seq, err error) { heard <- answer{seq, err} })
	select {
	case a := <-heard:
		return a.seq, a.err
	case <-time.After(patience):
		return 0, errors.New("nothing was heard of a message")
	}
}

// mustPublish publishes messages one after the other, each again while it is refused.
func mustPublish(t *testing.T, s streams.Storage, stream, subject string, texts ...string) (last streams.Seq) {
	t.Helper()
	for _, text := range texts {
		testkit.Eventually(t, "publishing is refused", func() bool {
			seq, err := publish(s, stream, subject, []byte(text))
			if errors.Is(err, streams.ErrUnavailable) {
				return false
			}
			testkit.Must(t, err, "publish %q", text)
			testkit.MustThat(t, seq > last, "sequence %d after %d", seq, last)
			last = seq
			return true
		})
	}
	return last
}

// read reads in as many parts as it takes until it has n messages.
func read(t *testing.T, s streams.Storage, stream string, q streams.Query, n int) (all []streams.Message) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%d messages of %+v", n, q), func() bool {
		part := readPart(t, s, stream, q)
		all = append(all, part.Messages...)
		if len(all) > 0 {
			q.From = all[len(all)-1].Seq + 1
		}
		return len(all) >= n
	})
	testkit.MustEqual(t, len(all), n, "messages")
	return all
}

// readPart reads once more while no server answers: all of them have to hear that there is a stream.
func readPart(t *testing.T, s streams.Storage, stream string, q streams.Query) (part streams.Part) {
	t.Helper()
	testkit.Eventually(t, "the stream cannot be read", func() bool {
		var err error
		if part, err = s.Read(t.Context(), stream, q); errors.Is(err, streams.ErrUnavailable) {
			return false
		}
		testkit.Must(t, err, "read %+v", q)
		return true
	})
	checkPart(t, q, part)
	return part
}

// checkPart tests what holds of every part.
func checkPart(t *testing.T, q streams.Query, part streams.Part) {
	t.Helper()
	last := streams.Seq(0)
	bytes := 0
	for i, m := range part.Messages {
		testkit.That(t, m.Seq >= q.From && m.Seq > last, "sequence %d after %d, from %d", m.Seq, last, q.From)
		testkit.That(t, q.Subject == "" || m.Subject == q.Subject, "subject %q of %+v", m.Subject, q)
		testkit.That(t, q.MaxMessages == 0 || i < q.MaxMessages, "more than %d messages", q.MaxMessages)
		testkit.That(t, q.MaxBytes == 0 || bytes < q.MaxBytes, "%d bytes before the last message", bytes)
		bytes += len(m.Data)
		last = m.Seq
	}
	testkit.That(t, part.Through == 0 || part.Through >= last, "through %d, behind %d", part.Through, last)
	testkit.That(t, !part.More || last > 0, "more behind nothing")
}

// texts are messages as subject:text.
func texts(messages []streams.Message) (all []string) {
	for _, m := range messages {
		all = append(all, fmt.Sprintf("%s:%s", m.Subject, m.Data))
	}
	return all
}

func lifeTests() []test {
	return []test{
		{"a stream is made once", func(t *testing.T, n nodes) {
			mustPublish(t, n.a, "s", "0", "x")
			mustMake(t, n.a, "s", streams.Config{})
			mustMake(t, n.b, "s", streams.Config{MaxBytes: 1 << 20})
			testkit.Slices(t, texts(read(t, n.b, "s", streams.Query{From: 1}, 1)), []string{"0:x"})
		}},
		{"names", func(t *testing.T, n nodes) {
			for _, name := range []string{"s-2", "s_2", "another"} {
				mustMake(t, n.a, name, streams.Config{})
			}
			awaitNames(t, n.b, "another", "s", "s-2", "s_2")
			testkit.Must(t, n.b.Delete(t.Context(), "s_2"))
			awaitNames(t, n.a, "another", "s", "s-2")
		}},
		{"streams of similar names do not mix", func(t *testing.T, n nodes) {
			mustMake(t, n.a, "s-0", streams.Config{})
			mustMake(t, n.a, "s_0", streams.Config{})
			for _, name := range []string{"s", "s-0", "s_0"} {
				testkit.Equal(t, mustPublish(t, n.a, name, "0", "of "+name), 1)
			}
			for _, name := range []string{"s", "s-0", "s_0"} {
				testkit.Slices(t, texts(read(t, n.b, name, streams.Query{}, 1)), []string{"0:of " + name})
			}
		}},
		{"a stream that was deleted", func(t *testing.T, n nodes) {
			mustPublish(t, n.a, "s", "0", "x", "y")
			testkit.Must(t, n.b.Delete(t.Context(), "s"))
			testkit.Must(t, n.a.Delete(t.Context(), "s"), "a second time")
			testkit.Must(t, n.a.Delete(t.Context(), "never"))
			refuseAll(t, n.a, "s")
			mustMake(t, n.b, "s", streams.Config{})
			testkit.Equal(t, mustPublish(t, n.a, "s", "0", "z"), 1, "the first of the new one")
		}},
		{"a stream that never was", func(t *testing.T, n nodes) { refuseAll(t, n.b, "never") }},
		{"a context that has ended", func(t *testing.T, n nodes) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			testkit.ErrorIs(t, n.a.Make(ctx, "new", streams.Config{}), context.Canceled, "make")
			testkit.ErrorIs(t, n.a.Delete(ctx, "s"), context.Canceled, "delete")
			testkit.ErrorIs(t, testkit.Err(n.a.Names(ctx)), context.Canceled, "names")
			testkit.ErrorIs(t, testkit.Err(n.a.Read(ctx, "s", streams.Query{})), context.Canceled, "read")
			testkit.ErrorIs(t, testkit.Err(n.a.Last(ctx, "s", "")), context.Canceled, "last")
			testkit.ErrorIs(t, testkit.Err(n.a.State(ctx, "s")), context.Canceled, "state")
			testkit.ErrorIs(t, n.a.Purge(ctx, "s", "", 1), context.Canceled, "purge")
			testkit.Check(t, testkit.Err(n.a.State(t.Context(), "s")), "the stream is gone")
		}},
	}
}

// awaitNames waits until a node sees exactly these streams.
func awaitNames(t *testing.T, s streams.Storage, want ...string) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprint("the streams ", want), func() bool {
		names, err := s.Names(t.Context())
		testkit.Must(t, err)
		found := map[string]bool{}
		for _, name := range names {
			found[name] = true
		}
		for _, name := range want {
			if !found[name] {
				return false
			}
		}
		return len(names) == len(want)
	})
}

// refuseAll tests that nothing can be done with a stream that is not there.
func refuseAll(t *testing.T, s streams.Storage, name string) {
	t.Helper()
	testkit.Eventually(t, "it can be read", func() bool {
		return errors.Is(testkit.Err(s.Read(t.Context(), name, streams.Query{From: 1})), streams.ErrNoStream)
	})
	testkit.ErrorIs(t, testkit.Err(s.Last(t.Context(), name, "")), streams.ErrNoStream, "last")
	testkit.ErrorIs(t, testkit.Err(s.State(t.Context(), name)), streams.ErrNoStream, "state")
	testkit.ErrorIs(t, s.Purge(t.Context(), name, "", 2), streams.ErrNoStream, "purge")
	_, err := publish(s, name, "0", []byte("x"))
	testkit.That(t, errors.Is(err, streams.ErrNoStream) || errors.Is(err, streams.ErrUnavailable), "publish: %v", err)
}
