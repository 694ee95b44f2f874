package server

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/testkit"
)

// moving is a yard that is moved, and what it must not lose.
type moving struct {
	t                           *testing.T
	waiting, refusing, handling *receiver
	blobs                       map[string][]byte
	till, authority             string
	events                      map[string]string
}

func newMoving(t *testing.T) *moving {
	return &moving{
		t: t, waiting: newReceiver(t), refusing: newReceiver(t), handling: newReceiver(t),
		blobs: map[string][]byte{"small": []byte("small"), "large": bytes.Repeat([]byte("large"), 300_000)},
	}
}

// make has a yard have something of everything.
func (m *moving) make(r *running) {
	r.want(201, "POST", "/api/v1/hubs", `{"name":"orders","partitions":3}`)
	r.want(201, "POST", "/api/v1/topics", `{"name":"shop"}`)
	r.want(201, "POST", "/api/v1/subscriptions", `{"name":"waiting","topic":"shop","endpoint":"`+m.waiting.URL+`","retrySchedule":"2s","retryFloors":{"503":"2s"}}`)
	r.want(201, "POST", "/api/v1/subscriptions", `{"name":"refusing","topic":"shop","endpoint":"`+m.refusing.URL+`","deadLetter":"yard"}`)
	r.want(201, "POST", "/api/v1/functions", `{"name":"billing","hub":"orders","group":"billing","endpoint":"`+m.handling.URL+`"}`)
	r.want(201, "POST", "/api/v1/policies", `{"name":"till","rights":["Send"]}`)
	testkit.Must(m.t, testkit.Err(r.blobClient().CreateContainer(m.t.Context(), "box", nil)))
	for name, body := range m.blobs {
		testkit.Must(m.t, testkit.Err(r.blobClient().UploadBuffer(m.t.Context(), "box", name, body, nil)))
	}
	m.till, m.authority = r.want(200, "GET", "/api/v1/policies/till", ""), r.want(200, "GET", "/api/v1/ca.pem", "")
}

// leave has events be handled, wait and be given up, each named in round, before the yard is moved.
func (m *moving) leave(r *running, round string) {
	m.waiting.status.Store(http.StatusServiceUnavailable)
	m.refusing.status.Store(http.StatusBadRequest)
	for i := range 20 {
		r.want(201, "POST", "/api/v1/hubs/orders/events", fmt.Sprintf(`[{"body":"%s %d"},{"body":"%s again"}]`, round, i, round))
	}
	r.publish("shop", "event-"+round)
	m.waiting.await(m.waiting.got, "event-"+round)
	m.refusing.await(m.refusing.got, "event-"+round)
	shows := func(path, text string) bool { // a node may have to wait for another's stream
		status, answer := r.do("GET", path, "")
		return status == http.StatusOK && strings.Contains(answer, text)
	}
	testkit.Eventually(m.t, "what was refused to be a dead letter, and the function's checkpoints to be made", func() bool {
		return shows("/api/v1/subscriptions/refusing/dead", "event-"+round) && shows("/api/v1/functions/billing", `"lag":0`)
	})
	m.events = r.events("orders")
}

// moved has the receivers be well again, and forget what they have received.
func (m *moving) moved() {
	for _, hook := range []*receiver{m.waiting, m.refusing, m.handling} {
		for len(hook.got) > 0 {
			<-hook.got
		}
		hook.status.Store(0)
	}
}

// goesOn checks that nothing is missing where the yard is now.
func (m *moving) goesOn(r *running, round string) {
	m.t.Helper()
	testkit.That(m.t, maps.Equal(r.events("orders"), m.events), "the events, their numbers or times are others")
	testkit.Equal(m.t, r.want(200, "GET", "/api/v1/policies/till", ""), m.till, "the policy")
	testkit.Equal(m.t, r.want(200, "GET", "/api/v1/ca.pem", ""), m.authority, "the authority")
	m.waiting.await(m.waiting.got, "event-"+round)
	testkit.Eventually(m.t, "dead letters to be served", func() bool {
		status, _ := r.do("POST", "/api/v1/subscriptions/refusing/redrive", `{}`)
		return status == http.StatusOK
	})
	m.refusing.await(m.refusing.got, "event-"+round)
	r.want(201, "POST", "/api/v1/hubs/orders/events", `[{"body":"new"}]`)
	got := m.handling.await(m.handling.got, `new`)
	testkit.That(m.t, !strings.Contains(got, round), "what was handled comes again: %s", got)
	for name, body := range m.blobs {
		got := make([]byte, len(body))
		_, err := r.blobClient().DownloadBuffer(m.t.Context(), "box", name, got, nil)
		testkit.Must(m.t, err)
		testkit.That(m.t, bytes.Equal(got, body), "blob %s has another body", name)
	}
}

// onYard is a node of a yard on servers.
func onYard(t *testing.T, servers *natstest.Servers, yard, node, key string) Config {
	cfg := quick(t)
	cfg.Engine, cfg.Node, cfg.Secrets = fmt.Sprintf("%s?yard=%s&replicas=%d", servers.URL(), yard, servers.Replicas), node, Secrets{Key: key}
	cfg.HTTPS = "127.0.0.1:0"
	return cfg
}

// C7: a yard on servers is backed up while two nodes serve it, and restored: to a folder, and to servers,
// where its secrets are sealed with the new key.
func TestABackupOfAYardOnServers(t *testing.T) {
	servers := natstest.Shared(t, 3)
	m, key := newMoving(t), sealed.NewKey()
	node := onYard(t, servers, natstest.Yard(), "a", key)
	other := node
	other.Node = "b"
	one, two := start(t, node), start(t, other)
	m.make(one)
	m.leave(two, "first")
	dir := filepath.Join(t.TempDir(), "backup")
	summary, err := one.backUp(dir)
	testkit.Must(t, err)
	testkit.Equal(t, fmt.Sprint(summary.Bodies, summary.Files, summary.Lost, len(summary.SecretKeys)), "1 0 [] 1", "summary")
	one.shutdown()
	two.shutdown()

	for _, target := range []string{"folder", "servers"} {
		t.Run(target, func(t *testing.T) {
			m.t = t
			m.moved()
			m.waiting.t, m.refusing.t, m.handling.t = t, t, t
			cfg, newKey := quick(t), sealed.NewKey()
			cfg.HTTPS = "127.0.0.1:0"
			if target == "servers" {
				cfg = onYard(t, servers, natstest.Yard(), "c", newKey)
				r := Restoration{Backup: dir, Engine: cfg.Engine, Secrets: Secrets{Key: newKey}, Log: testkit.Quiet()}
				testkit.ErrorIs(t, Restore(t.Context(), r), ErrNoKey)
				r.Secrets.Key = newKey + "\n" + key
				testkit.Must(t, Restore(t.Context(), r))
				testkit.ErrorIs(t, Restore(t.Context(), r), ErrYardOccupied, "again")
				var said bytes.Buffer
				r.Engine, r.Log = fmt.Sprintf("%s?yard=%s&replicas=1", servers.URL(), natstest.Yard()), slog.New(slog.NewTextHandler(&said, nil))
				testkit.Must(t, Restore(t.Context(), r))
				testkit.That(t, strings.Contains(said.String(), "each event is kept by fewer servers") && strings.Contains(said.String(), "replicas=1 before=3"), "it says %s", said.String())
			} else {
				cfg.Engine = "disk"
				testkit.Must(t, os.MkdirAll(cfg.DataDir, 0o700))
				testkit.Must(t, os.WriteFile(filepath.Join(cfg.DataDir, storage.SecretKeyFile), []byte(key), 0o600))
				testkit.Must(t, Restore(t.Context(), Restoration{Backup: dir, DataDir: cfg.DataDir, Log: testkit.Quiet()}))
			}
			r := start(t, cfg)
			m.goesOn(r, "first")
			r.shutdown()
		})
	}
}
