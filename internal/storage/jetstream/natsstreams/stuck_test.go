package natsstreams

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

// publish publishes one message and waits for its answer.
func publish(s *Storage, text string) (streams.Seq, error) {
	answered := make(chan struct{})
	var seq streams.Seq
	var err error
	s.Publish("s", "0", []byte(text), func(at streams.Seq, e error) {
		seq, err = at, e
		close(answered)
	})
	<-answered
	return seq, err
}

func mustPublish(t *testing.T, s *Storage, text string) {
	t.Helper()
	testkit.Eventually(t, "publishing is refused", func() bool {
		_, err := publish(s, text)
		if errors.Is(err, streams.ErrUnavailable) {
			return false
		}
		testkit.Must(t, err)
		return true
	})
}

// C1: publishing does not wait for a socket that takes nothing. What was not written by the time that
// patience runs out is refused, and stays so when the server goes on.
func TestAConnectionThatTakesNothing(t *testing.T) {
	servers := natstest.Shared(t, 3)
	name := yard(t, servers)
	stuck := servers.DialOnly(t, 0, connect.Options()...)
	other := servers.Dial(t, 1, connect.Options()...)
	s := testkit.Value(Open(Conns{stuck, other, other}, Config{Yard: name}))(t)
	t.Cleanup(func() { testkit.Check(t, s.Close()) })
	testkit.Must(t, s.Make(t.Context(), "s", streams.Config{}))
	mustPublish(t, s, "first")

	servers.Freeze(t, 0)
	const messages = 40
	padding := strings.Repeat(".", 1<<20)
	var all sync.WaitGroup
	var mu sync.Mutex
	reported := map[string]error{}
	for i := range messages {
		all.Add(1)
		text := fmt.Sprint("message ", i, " ")
		s.Publish("s", "0", []byte(text+padding), func(_ streams.Seq, err error) {
			mu.Lock()
			reported[text] = err
			mu.Unlock()
			all.Done()
		})
	}
	all.Wait()
	refused, doubtful := 0, 0
	for text, err := range reported {
		switch {
		case errors.Is(err, streams.ErrUncertain):
			doubtful++
		case errors.Is(err, streams.ErrUnavailable):
			refused++
		default:
			t.Errorf("%s: %v", text, err)
		}
	}
	testkit.That(t, refused > 0 && doubtful > 0, "%d refused and %d in doubt", refused, doubtful)

	servers.Thaw(t, 0)
	mustPublish(t, s, "last ")
	found := streams.Message{}
	for from := streams.Seq(1); string(found.Data) != "last "; {
		part, err := s.Read(t.Context(), "s", streams.Query{From: from})
		testkit.Must(t, err)
		for _, found = range part.Messages {
			text := strings.TrimRight(string(found.Data), ".")
			testkit.That(t, !errors.Is(reported[text], streams.ErrUnavailable), "%s was refused, and is stored", text)
			from = found.Seq + 1
		}
	}
}

// Who closes is told of everything: what was handed over is in doubt, the rest is not stored.
func TestClose(t *testing.T) {
	servers := natstest.Shared(t, 1)
	s := open(t, servers, 0, yard(t, servers))
	testkit.Must(t, s.Make(t.Context(), "s", streams.Config{}))
	mustPublish(t, s, "x")
	stop := testkit.Value(s.Listen("s", func([]byte) {}))(t)
	servers.Freeze(t, 0)
	var all sync.WaitGroup
	for range 10 {
		all.Add(1)
		s.Publish("s", "0", []byte("y"), func(_ streams.Seq, err error) {
			testkit.That(t, errors.Is(err, streams.ErrUncertain) || errors.Is(err, streams.ErrClosed), "got %v", err)
			all.Done()
		})
	}
	reading := make(chan error, 1)
	go func() { reading <- testkit.Err(s.Read(t.Context(), "s", streams.Query{})) }()
	testkit.Must(t, s.Close())
	testkit.Must(t, s.Close(), "a second time")
	all.Wait()
	testkit.ErrorIs(t, <-reading, streams.ErrClosed)
	servers.Thaw(t, 0)
	stop()
	testkit.ErrorIs(t, testkit.Err(publish(s, "z")), streams.ErrClosed)
	testkit.ErrorIs(t, s.Make(t.Context(), "s", streams.Config{}), streams.ErrClosed)
	testkit.ErrorIs(t, testkit.Err(s.State(t.Context(), "s")), streams.ErrClosed)
	testkit.ErrorIs(t, testkit.Err(s.Listen("s", nil)), streams.ErrClosed)
	s.Announce("s", nil)
}

// A connection that its owner closes is no storage any more.
func TestTheOwnerClosesItsConnections(t *testing.T) {
	servers := natstest.Shared(t, 1)
	conn := servers.Dial(t, 0, connect.Options()...)
	s := testkit.Value(Open(Conns{conn, conn, conn}, Config{Yard: yard(t, servers), Replicas: 1}))(t)
	t.Cleanup(func() { testkit.Check(t, s.Close()) })
	conn.Close()
	testkit.ErrorIs(t, testkit.Err(publish(s, "x")), streams.ErrClosed)
	testkit.ErrorIs(t, testkit.Err(s.Read(t.Context(), "s", streams.Query{})), streams.ErrClosed)
	testkit.ErrorIs(t, testkit.Err(s.State(t.Context(), "s")), streams.ErrClosed)
	testkit.ErrorIs(t, testkit.Err(s.Listen("s", nil)), streams.ErrClosed)
	_, err := Open(Conns{conn, conn, conn}, Config{Yard: "a"})
	testkit.ErrorIs(t, err, streams.ErrClosed)
}

// Make refuses what is not a log, and names the limit that it met.
func TestMakeRefuses(t *testing.T) {
	servers := natstest.Shared(t, 1)
	name := yard(t, servers)
	s := open(t, servers, 0, name)
	js := testkit.Value(jetstream.New(servers.Dial(t, 0)))(t)
	foreign := s.streamConfig("foreign", streams.Config{})
	foreign.MaxMsgs = 10
	testkit.Must(t, testkit.Err(js.CreateStream(t.Context(), foreign)))
	err := s.Make(t.Context(), "foreign", streams.Config{})
	testkit.That(t, err != nil && strings.Contains(err.Error(), "it has a maximum number of messages"), "got %v", err)

	err = s.Make(t.Context(), "huge", streams.Config{MaxBytes: 1 << 60})
	testkit.ErrorIs(t, err, streams.ErrNoSpace)
	testkit.That(t, err != nil && strings.Contains(err.Error(), "storage"), "got %v", err)
	testkit.ErrorIs(t, s.Make(t.Context(), "no name", streams.Config{}), streams.ErrNoStream)
}
