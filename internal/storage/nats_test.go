package storage

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C8: what is said wrongly is refused with a sentence before a server is asked.
func TestStorageOnServersIsRefused(t *testing.T) {
	key := SecretKey{Key: sealed.NewKey()}
	for name, tt := range map[string]struct {
		url  string
		key  SecretKey
		want error
		says string
	}{
		"a wrong setting": {url: "nats://a?replicas=2", key: key, says: "use 1, 3 or 5"},
		"no secret key":   {url: "nats://a", want: ErrNoSecretKey},
	} {
		_, err := Open(t.Context(), tt.url, Config{SecretKey: tt.key})
		testkit.That(t, err != nil && strings.Contains(err.Error(), tt.says), "%s: %v", name, err)
		if tt.want != nil {
			testkit.ErrorIs(t, err, tt.want, name)
		}
	}
}

// R5: a URL's password is in no error.
func TestErrorsHoldNoPassword(t *testing.T) {
	for _, url := range []string{"nats://me:hunter2@a", "nats://me:hunter2@a?replicas=2", "tls://hunter2@a:b"} {
		_, opened := Open(t.Context(), url, Config{})
		_, used := InUse(url)
		ended, end := context.WithCancel(t.Context())
		end()
		_, inspected := Inspect(ended, url, Inspection{})
		for _, err := range []error{opened, used, inspected} {
			testkit.That(t, err != nil && !strings.Contains(err.Error(), "hunter2"), "%v", err)
		}
	}
}

// onServers is the config of a node.
func onServers(key string) Config {
	return Config{
		SecretKey: SecretKey{Key: key}, Log: testkit.Quiet(), NATS: NATS{Node: "test"},
	}
}

// C4, C8: nodes that start at once on new servers share entries and bodies, and one with another
// secret key is refused.
func TestNodesShareServers(t *testing.T) {
	url := natstest.Shared(t, 1).URL() + "?replicas=1&yard=" + natstest.Yard()
	key := sealed.NewKey()
	nodes := make([]*Storage, 3)
	var all sync.WaitGroup
	for i := range nodes {
		all.Go(func() {
			s, err := Open(t.Context(), url, onServers(key))
			testkit.Check(t, err)
			nodes[i] = s
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	here, there := nodes[0], nodes[1]
	testkit.That(t, here.Folder == "" && here.Local && here.Engine == "nats", "it is %+v", here)
	testkit.Must(t, testkit.Err(here.Meta.CompareAndSet(t.Context(), "policies/a", 0, []byte("hunter2"))))
	testkit.Must(t, there.Meta.Fresh(t.Context(), "policies/"))
	testkit.Equal(t, string(testkit.Value(there.Meta.Get(t.Context(), "policies/a"))(t).Value), "hunter2", "read there")
	testkit.Must(t, here.Log.Provide(t.Context(), "orders", eventlog.Shape{Partitions: 1}))
	id := eventlog.PartitionID{Log: "orders"}
	stored := testkit.Value(eventlog.Append(t.Context(), testkit.Value(here.Log.Partition(id))(t), eventlog.Batch{Events: []eventlog.Event{{Message: []byte("a")}}}))(t)
	testkit.Equal(t, testkit.Value(testkit.Value(there.Log.Partition(id))(t).Sealed(t.Context()))(t).Last(), stored.First, "the last event there")
	const name = "0123456789abcdef0123456789abcdef"
	testkit.Must(t, testkit.Err(here.Bodies.Put(t.Context(), name, bytes.NewReader([]byte("a body")))))
	body, _, err := there.Bodies.Open(t.Context(), name, 2, 4)
	testkit.Must(t, err)
	testkit.Equal(t, string(testkit.Value(io.ReadAll(body))(t)), "body", "read there")
	testkit.ErrorIs(t, testkit.Err(Open(t.Context(), url, onServers(sealed.NewKey()))), ErrOtherSecretKey)
	for _, s := range nodes {
		testkit.Must(t, s.Close())
	}
	again := testkit.Value(Open(t.Context(), url, onServers(key)))(t)
	testkit.Equal(t, testkit.Value(testkit.Value(again.Log.Partition(id))(t).Sealed(t.Context()))(t).Last(), stored.First, "the last event after a restart")
	testkit.Must(t, again.Close())
}

// C8: servers that are not set up for a yard are refused, and an inspection finds out why.
func TestUnfitServers(t *testing.T) {
	url := natstest.StartAs(t, func(listen, _ string) string { return "server_name: n0\nlisten: \"" + listen + "\"" })
	testkit.ErrorIs(t, testkit.Err(Open(t.Context(), url, onServers(sealed.NewKey()))), connect.ErrUnfit)
	found, err := Inspect(t.Context(), url, Inspection{})
	testkit.Must(t, err)
	testkit.Slices(t, found.Servers, []string{"n0"})
	testkit.That(t, len(found.Problems) == 1 && strings.Contains(found.Problems[0], "jetstream {"), "found %+v", found)

	found = testkit.Value(Inspect(t.Context(), natstest.Shared(t, 1).URL()+"?replicas=1", Inspection{}))(t)
	testkit.That(t, len(found.Problems) == 0 && len(found.Warnings) > 0, "found %+v", found)
}

// C5: a node waits for servers that are not ready, and stops waiting when it is to stop.
func TestANodeWaitsForServers(t *testing.T) {
	servers := natstest.Start(t, 1)
	url := servers.URL() + "?replicas=1"
	testkit.Must(t, testkit.Value(Open(t.Context(), url, onServers(sealed.NewKey())))(t).Close())
	servers.Stop(t, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	testkit.ErrorIs(t, testkit.Err(Open(ctx, url, onServers(sealed.NewKey()))), context.DeadlineExceeded)
}
