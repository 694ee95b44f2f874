package server

import (
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V5: the storage of a serving yard is shown, and checked while it serves: in the background, one at a time.
func TestStorageIsCheckedWhileTheYardServes(t *testing.T) {
	testengine.NeedsFiles(t)
	r := start(t, quick(t))
	client := r.admin()
	r.want(201, "POST", "/api/v1/hubs", `{"name":"orders","partitions":2}`)
	r.want(201, "POST", "/api/v1/hubs/orders/events", `[{"body":"one"},{"body":"two"}]`)
	shown := testkit.Value(client.Storage(t.Context()))(t)
	testkit.Equal(t, len(shown.Nodes), 1, "nodes")
	node := shown.Nodes[0]
	testkit.That(t, node.Folder != "" && node.FreeBytes != nil && *node.FreeBytes <= *node.TotalBytes && node.Check == nil, "it is %+v", node)

	slow := testkit.Value(client.CheckStorage(t.Context(), admin.StorageCheckRequest{Rate: 1}))(t)
	testkit.That(t, slow.Ended == nil && !slow.Began.IsZero(), "a check that has begun is %+v", slow)
	status, _ := r.do("POST", "/api/v1/storage/check", `{}`)
	testkit.Equal(t, status, 409, "status of a second check")
	status, _ = r.do("POST", "/api/v1/storage/check", `{"rate":-1}`)
	testkit.Equal(t, status, 400, "status of a rate below zero")
	r.shutdown() // which does not wait for it

	r = start(t, r.cfg)
	client = r.admin()
	testkit.Value(client.CheckStorage(t.Context(), admin.StorageCheckRequest{}))(t)
	var done admin.StorageCheck
	testkit.Eventually(t, "the end of the check", func() bool {
		shown := testkit.Value(client.Storage(t.Context()))(t)
		done = *shown.Nodes[0].Check
		return done.Ended != nil
	})
	testkit.That(t, done.Failed == "" && len(done.Problems) == 0 && done.Partitions == done.TotalPartitions && done.Events >= 2 && done.Bytes > 0, "it found %+v", done)
}

// V5: certificates are shown as nodes serve with them; there are none without TLS.
func TestCertificatesAreShown(t *testing.T) {
	cfg := quick(t)
	cfg.HTTPS = "127.0.0.1:0"
	shown := testkit.Value(start(t, cfg).admin().Certificates(t.Context()))(t)
	one := shown.Nodes[0]
	testkit.That(t, one.Certificate != nil && one.Authority != nil && one.Certificate.SHA256 != "" && one.Certificate.Issuer == one.Authority.Subject, "it is %+v", one)
	shown = testkit.Value(start(t, quick(t)).admin().Certificates(t.Context()))(t)
	testkit.That(t, shown.Nodes[0].Certificate == nil && shown.Nodes[0].Authority == nil, "without TLS it is %+v", shown.Nodes[0])
}
