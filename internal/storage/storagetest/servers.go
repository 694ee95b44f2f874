package storagetest

import (
	"context"
	"log/slog"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/jetstream/entries"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natsstreams"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
)

// replicas is how many servers keep a stream: what is tested is what stands on it.
const replicas = 1

// openStreams gives a yard's streams of events until the test ends.
func openStreams(t testing.TB, yard string) streams.Storage {
	t.Helper()
	conns := natsstreams.Conns{Publish: testengine.Dial(t), Read: testengine.Dial(t), Control: testengine.Dial(t)}
	storage := testkit.Value(natsstreams.Open(conns, natsstreams.Config{Yard: yard, Replicas: replicas}))(t)
	t.Cleanup(func() { testkit.Check(t, storage.Close()) })
	return storage
}

// openEntries gives a yard's entries, which run and are loaded, until the test ends.
func openEntries(t testing.TB, yard string, log *slog.Logger) meta.Store {
	t.Helper()
	store := testkit.Value(entries.New(testengine.Dial(t), entries.Config{Yard: yard, Replicas: replicas, Buckets: 2, Log: log}))(t)
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
