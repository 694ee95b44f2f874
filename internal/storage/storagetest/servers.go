package storagetest

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/jetstream/entries"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natsstreams"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// replicas is how many servers keep a stream: what is tested is what stands on it.
const replicas = 1

// removePatience bounds how long the streams of a test are being removed.
const removePatience = time.Minute

// dial connects to the servers that the environment names, until the test ends.
func dial(t testing.TB) *nats.Conn {
	t.Helper()
	url := os.Getenv("EVENTYARD_TEST_NATS")
	if url == "" {
		t.Fatal("EVENTYARD_TEST_NATS names no servers: make test-nats starts some")
	}
	conn := testkit.Value(nats.Connect(url, connect.Options()...))(t)
	t.Cleanup(conn.Close)
	return conn
}

// openStreams gives a yard's streams of events until the test ends.
func openStreams(t testing.TB, yard string) streams.Storage {
	t.Helper()
	conns := natsstreams.Conns{Publish: dial(t), Read: dial(t), Control: dial(t)}
	storage := testkit.Value(natsstreams.Open(conns, natsstreams.Config{Yard: yard, Replicas: replicas}))(t)
	t.Cleanup(func() { testkit.Check(t, storage.Close()) })
	return storage
}

// openEntries gives a yard's entries, which run and are loaded, until the test ends.
func openEntries(t testing.TB, yard string, log *slog.Logger) meta.Store {
	t.Helper()
	store := testkit.Value(entries.New(dial(t), entries.Config{Yard: yard, Replicas: replicas, Buckets: 2, Log: log}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- store.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		testkit.Check(t, <-ended, "run the entries")
	})
	testkit.Must(t, store.Load(t.Context()))
	return store
}

// removeStreams deletes all that a yard has at the servers: thousands of streams that nobody needs
// would slow the tests that come later.
func removeStreams(t testing.TB, yard string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), removePatience)
	defer cancel()
	js := testkit.Value(jetstream.New(dial(t)))(t)
	names := js.StreamNames(ctx, jetstream.WithStreamListSubject("y."+yard+".>"))
	var all []string
	for name := range names.Name() {
		all = append(all, name)
	}
	testkit.Check(t, names.Err(), "list the streams of the test")
	for _, name := range all {
		testkit.Check(t, js.DeleteStream(ctx, name), "delete a stream of the test")
	}
}
