package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/azureblob"
	"github.com/eventyard/eventyard/internal/storage/testengine"
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
	if !testengine.OverServers() { // which have no such files
		testkit.Must(t, os.WriteFile(stray, []byte("of a crash"), 0o600))
	}

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
// P6: how far a group is that keeps its checkpoints in the yard's blobs, as the official libraries do.
func TestLagOfCheckpointsInBlobs(t *testing.T) {
	y := start(t, quick(t))
	y.want(201, "POST", "/api/v1/hubs", `{"name":"orders","partitions":2}`)
	y.want(201, "POST", "/api/v1/hubs/orders/events?partition=0", `[{"body":"a"},{"body":"b"},{"body":"c"}]`)
	client := y.blobClient()
	testkit.Must(t, testkit.Err(client.CreateContainer(t.Context(), "checkpoints", nil)))
	testkit.Must(t, testkit.Err(client.UploadBuffer(t.Context(), "checkpoints", "localhost:5672/orders/$default/checkpoint/0", nil,
		&azblob.UploadBufferOptions{Metadata: map[string]*string{"sequencenumber": new("0"), "offset": new("0")}})))
	_, answer := y.do("GET", "/api/v1/hubs/orders/groups/$Default/ownership", "")
	var shown admin.Ownership
	testkit.Must(t, json.Unmarshal([]byte(answer), &shown))
	if p := shown.Partitions[0]; p.Container != "checkpoints" || p.LagEvents == nil || *p.LagEvents != 2 {
		t.Errorf("partition 0: %s", answer)
	}
	if _, metrics := y.do("GET", "/metrics", ""); !strings.Contains(metrics, `eventyard_group_lag_events{group="$Default",hub="orders",partition="0"} 2`) {
		t.Error("the metrics do not have the lag")
	}
	y.shutdown()
}

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

// The account is found by its name beneath the yard's, in Azure's form, plain and with the yard's
// own certificate, also on loopback, where names of strangers are refused. No path of another
// listener is in the way of a container there.
func TestBlobsByName(t *testing.T) { // P8, R1
	cfg := everyListener(t)
	cfg.Host = "Yard.Example"
	y := start(t, cfg)
	defer y.shutdown()
	for _, listener := range []string{"http", "https"} {
		t.Run(listener, func(t *testing.T) {
			transport := &http.Transport{TLSClientConfig: y.trust(), DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", y.host(listener))
			}}
			defer transport.CloseIdleConnections()
			named := func(host string) *azblob.Client {
				connection := accountOf(y.blobConnection()) + "DefaultEndpointsProtocol=" + listener + ";EndpointSuffix=" + host
				client, err := azblob.NewClientFromConnectionString(connection, &azblob.ClientOptions{ClientOptions: azcore.ClientOptions{
					Transport: &http.Client{Transport: transport}, Retry: policy.RetryOptions{MaxRetries: -1},
				}})
				testkit.Must(t, err)
				return client
			}
			client := named("yard.example")
			for _, container := range []string{"box", "topics", "api", "metrics"} {
				name := container + "-" + listener
				testkit.Must(t, testkit.Err(client.CreateContainer(t.Context(), name, nil)))
				testkit.Must(t, testkit.Err(client.UploadBuffer(t.Context(), name, "events", []byte("x"), nil)))
			}
			testkit.Check(t, testkit.Err(client.CreateContainer(t.Context(), "topics", nil)), "a container with the name of a path")
			testkit.Must(t, testkit.Err(client.DeleteContainer(t.Context(), "topics", nil)))
			if listener == "http" {
				_, err := named("evil.example").CreateContainer(t.Context(), "stranger", nil)
				if !bloberror.HasCode(err, bloberror.AuthorizationFailure) {
					t.Errorf("by the name of a stranger: %v", err)
				}
			}
		})
	}
}

// accountOf is the name and the key in a connection string.
func accountOf(connection string) (account string) {
	for part := range strings.SplitSeq(connection, ";") {
		if strings.HasPrefix(part, "Account") {
			account += part + ";"
		}
	}
	return account
}

// A listener in the storage emulator's place serves its account to whoever has its well-known key,
// and nothing else of the yard; it is there only where it was asked for, and only on loopback.
func TestDevelopmentStorage(t *testing.T) { // P8, R1
	cfg := quick(t)
	cfg.DevStorage = "127.0.0.1:0"
	y := start(t, cfg)
	defer y.shutdown()
	at := y.Addresses()["devStorage"]
	client, err := azblob.NewClientFromConnectionString("DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey="+
		azureblob.DevelopmentAccountKey+";BlobEndpoint="+at+"/devstoreaccount1;",
		&azblob.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: http.DefaultClient}})
	testkit.Must(t, err)
	testkit.Must(t, testkit.Err(client.CreateContainer(t.Context(), "api", nil)))
	testkit.Must(t, testkit.Err(client.UploadBuffer(t.Context(), "api", "v1/hubs", []byte("x"), nil)))
	got := make([]byte, 1)
	testkit.Must(t, testkit.Err(client.DownloadBuffer(t.Context(), "api", "v1/hubs", got, nil)))
	testkit.Equal(t, string(got), "x", "the blob")
	for _, path := range []string{"/api/v1/hubs", "/metrics", "/health/live", "/"} {
		request := y.request("GET", path, nil)
		request.URL.Host = strings.TrimPrefix(at, "http://")
		response, err := http.DefaultClient.Do(request)
		testkit.Must(t, err)
		testkit.Must(t, response.Body.Close())
		if response.StatusCode < 400 || response.Header.Get("x-ms-error-code") == "" {
			t.Errorf("%s answers %d there, not as the blob service", path, response.StatusCode)
		}
	}
	if status, _ := y.do("GET", "/devstoreaccount1?comp=list", ""); status == http.StatusOK {
		t.Error("the other listeners serve the path, too")
	}
	if text := y.Access().ConnectionString; strings.Contains(text, strings.TrimPrefix(at, "http://")) {
		t.Errorf("the connection string leads there: %s", text)
	}

	for _, change := range []func(*Config){
		func(c *Config) { c.HTTPS = "0.0.0.0:0" },
		func(c *Config) { c.DevStorage, c.AllowPlaintext = "0.0.0.0:0", true },
	} {
		cfg := quick(t)
		cfg.DevStorage = "127.0.0.1:0"
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "devStorage") {
			t.Errorf("beyond loopback: %v", err)
		}
	}
}

// G8: dead letters go to a container of the yard's own account, named as Azure names one, by its
// resource id; a storage client reads them there. An account that nobody told the yard of is
// refused.
func TestDeadLettersByResourceID(t *testing.T) {
	hook := newReceiver(t)
	hook.status.Store(http.StatusBadRequest) // never again
	cfg := quick(t)
	cfg.Grid.DeadLetterDelay = -1
	y := start(t, cfg)
	defer y.shutdown()
	const group = "/subscriptions/s/resourceGroups/g/providers"
	y.want(201, "PUT", group+"/Microsoft.EventGrid/topics/orders", `{"location":"westeurope"}`)
	subscription := func(account string) string {
		return `{"properties":{"destination":{"endpointType":"WebHook","properties":{"endpointUrl":"` + hook.URL + `"}},"deadLetterDestination":{"endpointType":"StorageBlob",
			"properties":{"resourceId":"` + group + `/Microsoft.Storage/storageAccounts/` + account + `","blobContainerName":"dead"}}}}`
	}
	path := group + "/Microsoft.EventGrid/topics/orders/eventSubscriptions/billing"
	if answer := y.want(400, "PUT", path, subscription("elsewhere")); !strings.Contains(answer, "grid.deadAccounts") {
		t.Errorf("an account that nobody told of: %s", answer)
	}
	client := y.blobClient()
	testkit.Must(t, testkit.Err(client.CreateContainer(t.Context(), "dead", nil)))
	y.want(201, "PUT", path, subscription("eventyard"))
	testkit.Equal(t, y.subscription("billing").DeadLetter, "blob:eventyard/dead", "the target as the yard writes it")
	y.publish("orders", "lost")
	hook.await(hook.got, "lost")
	testkit.Eventually(t, "the dead letter is in the container", func() bool {
		page, err := client.NewListBlobsFlatPager("dead", nil).NextPage(t.Context())
		return err == nil && len(page.Segment.BlobItems) == 1 && strings.HasPrefix(*page.Segment.BlobItems[0].Name, "ORDERS/BILLING/")
	})
}
