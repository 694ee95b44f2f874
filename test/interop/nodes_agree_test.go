//go:build linux

package interop

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// turns is how often one node is asked for what another has just acknowledged.
const turns = 100

// TestNodesAgreeAtOnce asks one node for what another has just acknowledged: to the official
// libraries both are one namespace, and one storage account. // C2, P8, H10
func TestNodesAgreeAtOnce(t *testing.T) {
	t.Parallel()
	if !wantsNodes() {
		t.Skip("make interop-cluster has it")
	}
	y := startYard(t, layout{hubs: map[string]int{"orders": 1}})
	t.Run("a partition's end", func(t *testing.T) { endsAgree(t, y) })
	t.Run("a new hub", func(t *testing.T) { hubsAgree(t, y) })
	t.Run("blobs", func(t *testing.T) { blobsAgree(t, y) })
}

func endsAgree(t *testing.T, y *yard) {
	var producers []*azeventhubs.ProducerClient
	for _, n := range y.behind {
		producers = append(producers, producerAt(t, n, "orders"))
	}
	for i := range turns {
		here, there := producers[i%2], producers[1-i%2]
		send(t, here, "0")
		end := testkit.Value(there.GetPartitionProperties(t.Context(), "0", nil))(t)
		testkit.MustEqual(t, end.LastEnqueuedSequenceNumber, int64(i), "the last number at the other node")
	}
}

func hubsAgree(t *testing.T, y *yard) {
	for i := range turns / 10 {
		name, partitions := fmt.Sprintf("hub-%d", i), 3
		client := testkit.Value(admin.New(admin.Config{Server: "http://" + y.behind[i%2].hostPort(t, "http"), Policy: rootPolicy, Key: rootKey}))(t)
		testkit.Must(t, testkit.Err(client.CreateHub(t.Context(), admin.HubRequest{Name: name, Partitions: &partitions})))
		client.Close()
		found := testkit.Value(producerAt(t, y.behind[1-i%2], name).GetEventHubProperties(t.Context(), nil))(t)
		testkit.Equal(t, len(found.PartitionIDs), partitions, "partitions at the other node")
	}
}

// blobsAgree has a blob changed at one node and read at the other, which then changes it on condition
// that it is what it has read, as checkpoint stores do.
func blobsAgree(t *testing.T, y *yard) {
	var stores []*container.Client
	for _, n := range y.behind {
		stores = append(stores, testkit.Value(container.NewClientFromConnectionString(n.blobs(t), "checkpoints", nil))(t))
	}
	testkit.Must(t, testkit.Err(stores[0].Create(t.Context(), nil)))
	for i := range turns {
		here, there := stores[i%2], stores[1-i%2]
		name := fmt.Sprintf("part-%d", i%7)
		written := put(t, here, name, fmt.Sprint("first ", i), nil)
		testkit.MustEqual(t, content(t, there, name), fmt.Sprint("first ", i), "turn %d, at the other node", i)
		put(t, there, name, fmt.Sprint("second ", i), written)
		testkit.MustEqual(t, content(t, here, name), fmt.Sprint("second ", i), "turn %d, at the first node", i)
		testkit.MustEqual(t, listed(t, here), min(i+1, 7), "blobs listed at the first node")
	}
}

func producerAt(t *testing.T, n *yard, hub string) *azeventhubs.ProducerClient {
	t.Helper()
	at := connection(n.hostPort(t, "amqp"), rootPolicy, "", "UseDevelopmentEmulator=true")
	client := testkit.Value(azeventhubs.NewProducerClientFromConnectionString(at, hub, nil))(t)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

func send(t *testing.T, client *azeventhubs.ProducerClient, partition string) {
	t.Helper()
	batch := testkit.Value(client.NewEventDataBatch(t.Context(), &azeventhubs.EventDataBatchOptions{PartitionID: &partition}))(t)
	testkit.Must(t, batch.AddEventData(&azeventhubs.EventData{Body: []byte("x")}, nil))
	testkit.Must(t, client.SendEventDataBatch(t.Context(), batch, nil))
}

// put writes a blob, where a tag is given on condition that it has that, and gives its new one.
func put(t *testing.T, at *container.Client, name, text string, had *azcore.ETag) *azcore.ETag {
	t.Helper()
	options := &blockblob.UploadOptions{}
	if had != nil {
		options.AccessConditions = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: had}}
	}
	stored, err := at.NewBlockBlobClient(name).Upload(t.Context(), body{bytes.NewReader([]byte(text))}, options)
	testkit.Must(t, err, "put %s", name)
	return stored.ETag
}

// body is a text as the library wants it.
type body struct{ *bytes.Reader }

func (body) Close() error { return nil }

func content(t *testing.T, at *container.Client, name string) string {
	t.Helper()
	got, err := at.NewBlobClient(name).DownloadStream(t.Context(), nil)
	testkit.Must(t, err, "get %s", name)
	defer got.Body.Close()
	return string(testkit.Value(io.ReadAll(got.Body))(t))
}

func listed(t *testing.T, at *container.Client) (n int) {
	t.Helper()
	for pages := at.NewListBlobsFlatPager(nil); pages.More(); {
		n += len(testkit.Value(pages.NextPage(t.Context()))(t).Segment.BlobItems)
	}
	return n
}
