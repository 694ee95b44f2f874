package admin_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/api/v1"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// realYard serves a real listener for development and gives its URL.
func realYard(t *testing.T) string {
	t.Helper()
	server, _ := realYardWithGroups(t)
	return server
}

// realYardWithGroups also gives the registry of leases and checkpoints.
func realYardWithGroups(t *testing.T) (string, *groups.Registry) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	store := storagetest.Open(t, storagetest.Config{SegmentBytes: 1 << 20, Log: log})
	b, err := broker.Open(t.Context(), broker.Config{Engine: store.Engine, Meta: store.Meta, Log: log})
	testkit.Must(t, err)
	registry, err := access.Open(t.Context(), access.Config{Meta: store.Meta, Development: true, Log: log, Hub: func(name string) (time.Time, bool) {
		hub, err := b.Hub(name)
		return hub.Created, err == nil
	}})
	testkit.Must(t, err)
	records, err := groups.New(groups.Config{Meta: store.Meta, Broker: b, Log: log})
	testkit.Must(t, err)
	api := v1.New(v1.Config{
		Broker: b, Access: registry, Groups: records, Log: log,
		Endpoint: func(*http.Request, bool) string { return "sb://localhost:5672/" },
	})
	server := httptest.NewServer(frame.New(frame.Config{Log: log}, api.APIs()...))
	t.Cleanup(server.Close)
	return server.URL, records
}

func dialReal(t *testing.T, cfg admin.Config) *admin.Client {
	t.Helper()
	client, err := admin.New(cfg)
	testkit.Must(t, err)
	t.Cleanup(client.Close)
	return client
}

// With nothing said, a client is let in where the key is no secret; and what a policy's
// connection string allows, it allows, and no more.
func TestTheYardLetsClientsIn(t *testing.T) {
	server, ctx := realYard(t), t.Context()
	root := dialReal(t, admin.Config{Server: server})
	for _, hub := range []string{"shop/orders", "alarms"} {
		_, err := root.CreateHub(ctx, admin.HubRequest{Name: hub})
		testkit.Must(t, err)
	}
	made, err := root.CreatePolicy(ctx, "shop/orders", admin.PolicyRequest{Name: "sender", Rights: []string{"Send"}})
	testkit.Must(t, err)
	shown, err := root.Policy(ctx, "shop/orders", "sender")
	testkit.Must(t, err)
	if shown.PrimaryKey != made.PrimaryKey || shown.ConnectionStrings == nil {
		t.Fatalf("made %+v, shown %+v", made, shown)
	}
	asked, err := root.ConnectionString(ctx, admin.ConnectionStringQuery{Hub: "shop/orders", Policy: "sender", Key: "secondary"})
	testkit.Must(t, err)
	if asked != shown.ConnectionStrings.Secondary {
		t.Errorf("the connection string is %s or %s", asked, shown.ConnectionStrings.Secondary)
	}

	sender := dialReal(t, admin.Config{Server: server, ConnectionString: asked})
	hubs, err := sender.Hubs(ctx)
	testkit.Must(t, err)
	testkit.MustEqual(t, len(hubs), 1, "the sender sees %v", hubs)
	testkit.Equal(t, hubs[0].Name, "shop/orders", "the sender sees %v", hubs)
	_, err = sender.Send(ctx, "shop/orders", admin.Batch{Events: []json.RawMessage{[]byte(`{"body":"x"}`)}})
	testkit.Must(t, err)
	refused(t, sender.DeleteHub(ctx, "shop/orders"), 403, "insufficient-rights", "policy")
	_, err = sender.Partitions(ctx, "alarms")
	refused(t, err, 403, "wrong-audience", "token")

	_, err = root.RegeneratePolicy(ctx, "shop/orders", "sender", "secondary")
	testkit.Must(t, err)
	_, err = sender.Hubs(ctx)
	refused(t, err, 401, "invalid-signature", "curl -u")
	testkit.Must(t, root.DeletePolicy(ctx, "shop/orders", "sender"))
	policies, err := root.Policies(ctx, "shop/orders")
	if err != nil || len(policies) != 0 {
		t.Errorf("left are %v, %v", policies, err)
	}
}

// refused insists on a problem that says what to try.
func refused(t *testing.T, err error, status int, kind, next string) {
	t.Helper()
	var p *admin.Problem
	if !errors.As(err, &p) || p.Status != status || p.Kind() != kind || !strings.Contains(p.Next, next) {
		t.Errorf("error is %#v, want %d %s", err, status, kind)
	}
}
