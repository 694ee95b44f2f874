package groups

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/bolt"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// childFile names the store in which this test binary works when a test has started it anew, to
// be killed.
const childFile = "EVENTYARD_GROUPS_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		if err := workUntilKilled(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// yard is a registry with a real broker and engine behind it.
type yard struct {
	*Registry
	broker *broker.Broker
	meta   meta.Store
	engine eventlog.Engine
}

func newYard(t testing.TB, store meta.Store) *yard {
	t.Helper()
	s := storagetest.Open(t, storagetest.Config{SegmentBytes: 16 << 10})
	if store == nil {
		store = s.Meta
	}
	return openYard(t, store, s.Engine)
}

func openYard(t testing.TB, store meta.Store, engine eventlog.Engine) *yard {
	t.Helper()
	b := testkit.Value(broker.Open(t.Context(), broker.Config{Engine: engine, Meta: store, Log: testkit.Quiet()}))(t)
	k := testkit.Value(New(Config{Meta: store, Broker: b, Log: testkit.Quiet()}))(t)
	return &yard{Registry: k, broker: b, meta: store, engine: engine}
}

func newBolt(t testing.TB, path string) *bolt.Store {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "meta.db")
	}
	store := testkit.Value(bolt.Open(bolt.Config{Path: path, Log: testkit.Quiet()}))(t)
	t.Cleanup(func() { testkit.Check(t, store.Close()) })
	return store
}

// group makes a hub, if need be, and a group of it.
func (y *yard) group(t testing.TB, hub, group string, partitions int) processor.Group {
	t.Helper()
	var groups []string
	if !strings.EqualFold(group, "$Default") {
		groups = []string{group}
	}
	testkit.Must(t, testkit.Err(y.broker.EnsureHub(t.Context(), broker.HubConfig{Name: hub, Partitions: partitions}, groups)))
	return processor.Group{Namespace: "yard", Hub: hub, Group: group}
}

func (y *yard) publish(t testing.TB, hub, partition string, events int) {
	t.Helper()
	batch := make([]eventlog.Event, events)
	for i := range batch {
		batch[i].Message = []byte{0x00, 0x53, 0x75, 0xa0, 1, 'x'}
	}
	testkit.Must(t, testkit.Err(y.broker.Publish(t.Context(), hub, broker.Target{Partition: partition}, batch)))
}

func (y *yard) own(t testing.TB, g processor.Group, partition, owner string, epoch int64) processor.Lease {
	t.Helper()
	l := processor.Lease{Partition: partition, Owner: owner, Epoch: epoch}
	leases, err := y.Leases(t.Context(), g)
	testkit.Must(t, err)
	for _, had := range leases {
		if had.Partition == partition {
			l.Version = had.Version
		}
	}
	won, err := y.Claim(t.Context(), g, []processor.Lease{l})
	if err != nil || len(won) != 1 {
		t.Fatalf("claim gave %v, %v", won, err)
	}
	return won[0]
}

func (y *yard) checkpointAt(t testing.TB, g processor.Group, l processor.Lease, sequence int64, offset string) processor.Checkpoint {
	t.Helper()
	c := testkit.Value(y.Begin(t.Context(), g, l))(t)
	c.Sequence, c.Offset = sequence, offset
	c = testkit.Value(y.Save(t.Context(), g, l, c))(t)
	return c
}

func isNotFound(err error, kind string) bool {
	var missing *broker.NotFoundError
	return errors.As(err, &missing) && missing.Kind == kind
}

// wantNotFound reports an error that does not say that something of a kind is missing.
func wantNotFound(t testing.TB, err error, kind string, what ...any) {
	t.Helper()
	if !isNotFound(err, kind) {
		testkit.ErrorIs(t, err, &broker.NotFoundError{Kind: kind}, what...)
	}
}
