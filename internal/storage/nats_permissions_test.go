package storage

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/testkit"
)

// advised is what the guide gives a user of a yard named shop at the servers.
func advised(t *testing.T) string {
	guide := string(testkit.Value(os.ReadFile(filepath.Join("..", "..", "docs", "guides", "cluster.md")))(t))
	_, rest, found := strings.Cut(guide, "permissions {")
	permissions, _, ends := strings.Cut(rest, "}")
	testkit.MustThat(t, found && ends, "the guide has no permissions")
	return "permissions {" + permissions + "}"
}

// limited runs a server with one user, and gives the URL of a yard there.
func limited(t *testing.T, permissions string) string {
	url := natstest.StartAs(t, func(listen, folder string) string {
		return fmt.Sprintf("server_name: n0\nlisten: %q\nmax_payload: 8MB\njetstream { store_dir: %q, sync_interval: always }\n"+
			"accounts { YARD { jetstream: enabled, users: [{ user: shop, password: secret\n%s }] } }\n", listen, folder, permissions)
	})
	return strings.Replace(url, "nats://", "nats://shop:secret@", 1) + "?replicas=1&yard=shop"
}

// C8: what the guide allows a node at the servers is enough for all that it does there.
func TestTheAdvisedPermissionsAreEnough(t *testing.T) {
	var said logged
	cfg := onServers(sealed.NewKey())
	cfg.Log = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s := testkit.Value(Open(t.Context(), limited(t, advised(t)), cfg))(t)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { testkit.Check(t, s.Log.Run(ctx)) })
	testkit.Must(t, testkit.Err(s.Meta.CompareAndSet(t.Context(), "policies/a", 0, []byte("b"))))
	testkit.Must(t, s.Meta.Fresh(t.Context(), ""))
	testkit.Must(t, s.Log.Provide(t.Context(), "orders", eventlog.Shape{Partitions: 1}))
	part := testkit.Value(s.Log.Partition(eventlog.PartitionID{Log: "orders"}))(t)
	for range 3 {
		testkit.Must(t, testkit.Err(eventlog.Append(t.Context(), part, eventlog.Batch{Events: []eventlog.Event{{Message: []byte("a")}}})))
	}
	testkit.Equal(t, testkit.Value(part.Sealed(t.Context()))(t).Last(), 2, "the last event")
	testkit.Must(t, testkit.Err(part.Bounds(t.Context())))
	const name = "0123456789abcdef0123456789abcdef"
	testkit.Must(t, testkit.Err(s.Bodies.Put(t.Context(), name, bytes.NewReader(make([]byte, 1<<20)))))
	body, _, err := s.Bodies.Open(t.Context(), name, 0, 1<<20)
	testkit.Must(t, err)
	testkit.Must(t, body.Close())
	testkit.Must(t, testkit.Err(s.Bodies.List(t.Context())))
	testkit.Must(t, s.Bodies.Remove(t.Context(), name))
	node := cluster.Node{ID: "a", Incarnation: "b"}
	end := testkit.Value(s.Wire.Serve(node, func(context.Context, cluster.Request) ([]byte, error) { return []byte("yes"), nil }))(t)
	testkit.Equal(t, string(testkit.Value(s.Wire.Ask(t.Context(), cluster.Request{From: node, To: node, Subject: "x"}))(t)), "yes", "a node answers")
	end()
	servers := s.Servers(t.Context())
	testkit.That(t, servers.Err == nil && servers.Streams.Count > 0, "servers: %+v", servers)
	testkit.That(t, !strings.Contains(fmt.Sprint(servers.Warnings), "$JS.API.INFO"), "what the account may have cannot be asked: %q", servers.Warnings)
	testkit.Must(t, s.Log.Remove(t.Context(), "orders"))
	stop()
	running.Wait()
	testkit.Must(t, s.Close())
	testkit.That(t, !strings.Contains(strings.ToLower(said.String()), "permission"), "something was refused:\n%s", said.String())
}

// logged keeps what is logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
