package deadletter

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/blob"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/tracing"
)

// G8: dead letters are written to a container of the yard's own account, without a key, and say so
// where it is missing.
func TestTheYardsOwnContainer(t *testing.T) {
	blobs := testkit.Value(blob.Open(blob.Config{Meta: metatest.NewMemory(), FS: vfs.NewMem(), Log: testkit.Quiet()}))(t)
	y := newYard(t, func(c *Config) { c.Blobs, c.BlobAccount = blobs, "eventyard" })
	sub := y.subscribe("billing", "yard", schema.EventGrid)
	traced := letter(sub, 1)
	traced.Trace = tracing.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "")
	testkit.Must(t, y.Put(t.Context(), sub, []pending.Delivery{traced}))
	l := testkit.Value(y.whole.box(sub.ID).gather(t.Context(), sub, ""))(t)
	to := testkit.Value(topics.ParseTarget("blob:eventyard/dead"))(t)
	testkit.Must(t, y.cfg.CheckTarget(to))
	p := testkit.Value(y.cfg.targetOf(to))(t)
	if _, err := p.write(t.Context(), "a.json", l); err == nil || !strings.Contains(err.Error(), "create the container") {
		t.Errorf("without the container: %v", err)
	}
	at := blob.Path{Account: "eventyard", Container: "dead"}
	testkit.Must(t, testkit.Err(blobs.CreateContainer(t.Context(), at, nil)))
	for range 2 { // the second time as after a crash
		testkit.Must(t, testkit.Err(p.write(t.Context(), "a.json", l)))
	}
	at.Blob = "a.json"
	testkit.Equal(t, testkit.Value(blobs.Blob(t.Context(), at, blob.Conditions{}))(t).Properties.ContentType, "application/json", "the blob's type")
	body := testkit.Value(blobs.Open(t.Context(), at, blob.Conditions{}))(t)
	defer body.Close()
	var content strings.Builder
	testkit.Must(t, body.WriteRange(t.Context(), &content, 0, body.Bytes))
	testkit.That(t, strings.Contains(content.String(), `"traceparent":"`+traced.Trace.TraceParent()), "the blob has its trace: %s", &content) // V6
}

// Accounts are found by their names; one that nobody told the yard of is refused with what to do.
func TestAccountsByName(t *testing.T) {
	y := newYard(t, func(c *Config) {
		c.Transport = nil // which is asked for
		c.Accounts = []Account{testkit.Value(ParseAccount("DefaultEndpointsProtocol=https;AccountName=known;AccountKey=a2V5;EndpointSuffix=core.windows.net"))(t)}
	})
	err := y.cfg.CheckTarget(topics.Target{Kind: topics.TargetBlob, Where: "known/dead"})
	if err == nil || !strings.Contains(err.Error(), "cannot be reached from this yard") {
		t.Errorf("an account that is known: %v", err)
	}
	err = y.cfg.CheckTarget(topics.Target{Kind: topics.TargetBlob, Where: "unknown/dead"})
	testkit.ErrorIs(t, err, topics.ErrInvalid)
	if !strings.Contains(err.Error(), "grid.deadAccounts") {
		t.Errorf("an account that is not: %v", err)
	}
}

func TestParseAccount(t *testing.T) {
	for connection, want := range map[string]string{
		"AccountName=acct;AccountKey=a2V5": "https://acct.blob.core.windows.net/c a2V5",
		" accountname=acct ; AccountKey=a2V5; DefaultEndpointsProtocol=http; EndpointSuffix=x.example": "http://acct.blob.x.example/c a2V5",
		"AccountName=acct;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:10000/acct/;":                  "http://127.0.0.1:10000/acct/c a2V5",
		"AccountName=acct;SharedAccessSignature=?sv=1&sig=x%3D":                                        "https://acct.blob.core.windows.net/c?sv=1&sig=x%3D ",
	} {
		a, err := ParseAccount(connection)
		testkit.Must(t, err, "%s", connection)
		got := a.target("c")
		testkit.Equal(t, got.Where+" "+got.Key, want, "%s", connection)
	}
	for _, connection := range []string{"", "x", "AccountKey=c2VjcmV0", "AccountName=acct", "AccountName=Not Allowed;AccountKey=c2VjcmV0", "AccountName=acct;AccountKey=secret!", "AccountName=acct;AccountKey=c2VjcmV0;BlobEndpoint=:"} {
		_, err := ParseAccount(connection)
		testkit.ErrorIs(t, err, topics.ErrInvalid, "%s", connection)
		if strings.Contains(err.Error(), "c2VjcmV0") || strings.Contains(err.Error(), "secret!") {
			t.Errorf("%s is repeated: %v", connection, err)
		}
	}
}
