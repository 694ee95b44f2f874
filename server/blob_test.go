package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/eventyard/eventyard/internal/testkit"
)

// blobConnection asks the yard for its connection string.
func (r *running) blobConnection() string {
	r.t.Helper()
	status, answer := r.do("GET", "/api/v1/connection-string?blob=true", "")
	var given struct{ ConnectionString string }
	if err := json.Unmarshal([]byte(answer), &given); err != nil || status != http.StatusOK {
		r.t.Fatalf("the connection string: %d %s", status, answer)
	}
	return given.ConnectionString
}

func (r *running) blobClient() *azblob.Client {
	r.t.Helper()
	client, err := azblob.NewClientFromConnectionString(r.blobConnection(), &azblob.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: http.DefaultClient},
	})
	testkit.Must(r.t, err)
	return client
}

// The yard serves blobs by the connection string that it gives, and they are there when it
// has stopped and started; metrics count them.
func TestBlobsOutliveTheYard(t *testing.T) { // P8
	cfg := quick(t)
	y := start(t, cfg)
	client := y.blobClient()
	testkit.Must(t, testkit.Err(client.CreateContainer(t.Context(), "box", nil)))
	bodies := map[string][]byte{"small": []byte("small"), "large": bytes.Repeat([]byte("large"), 100_000)}
	for name, body := range bodies {
		testkit.Must(t, testkit.Err(client.UploadBuffer(t.Context(), "box", name, body, nil)))
	}
	if _, metrics := y.do("GET", "/metrics", ""); !strings.Contains(metrics, `eventyard_blob_requests_total{operation="PutBlob",status="201"} 2`) {
		t.Error("the metrics do not have the two writes")
	}
	y.shutdown()
	stray := filepath.Join(cfg.DataDir, blobDir, strings.Repeat("0", 32))
	testkit.Must(t, os.WriteFile(stray, []byte("of a crash"), 0o600))

	y = start(t, cfg)
	client = y.blobClient()
	for name, body := range bodies {
		got := make([]byte, len(body))
		if _, err := client.DownloadBuffer(t.Context(), "box", name, got, nil); err != nil || !bytes.Equal(got, body) {
			t.Errorf("%s came back with %v", name, err)
		}
	}
	if _, err := client.CreateContainer(t.Context(), "box", nil); !bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		t.Errorf("the container is gone: %v", err)
	}
	y.shutdown()
	if _, err := os.Stat(stray); !os.IsNotExist(err) {
		t.Errorf("what a crash has left is still there: %v", err)
	}
}

// The connection string leads to where the client has come from.
func TestBlobEndpoints(t *testing.T) {
	y := start(t, quick(t))
	defer y.shutdown()
	if text := y.blobConnection(); !strings.HasSuffix(text, ";BlobEndpoint="+y.url+"/blob/eventyard;") || !strings.HasPrefix(text, "DefaultEndpointsProtocol=http;AccountName=eventyard;AccountKey=") {
		t.Errorf("the connection string is %q", text)
	}
	if status, _ := y.do("GET", "/api/v1/connection-string?blob=true&tls=true", ""); status != http.StatusNotFound {
		t.Errorf("of a listener that is closed: %d", status)
	}
	if status, _ := y.do("GET", "/api/v1/connection-string?blob=perhaps", ""); status != http.StatusBadRequest {
		t.Errorf("perhaps: %d", status)
	}
}
