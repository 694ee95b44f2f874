package azblob_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/azblob"
	"github.com/eventyard/eventyard/processor/storetest"
	"github.com/eventyard/eventyard/test/parts"
)

func TestStoreKeepsTheContract(t *testing.T) { // P8
	service := azurite(t)
	containers := map[processor.Store]*container.Client{}
	open := func(t *testing.T) processor.Store {
		c := newContainer(t, service, nil)
		s := azblob.New(c, azblob.Config{})
		containers[s] = c
		return s
	}
	storetest.RunWith(t, open, storetest.Options{
		NoEpoch: true, NoHubID: true, FirstSaveUnfenced: true,
		Peer: func(_ *testing.T, s processor.Store) processor.Store {
			return azblob.New(containers[s], azblob.Config{})
		},
	})
}

// newContainer makes a container of its own for a test.
func newContainer(t *testing.T, service *parts.BlobService, options *container.ClientOptions) *container.Client {
	t.Helper()
	c, err := container.NewClientFromConnectionString(service.Connection(), newName(), options)
	testkit.Must(t, err)
	testkit.Must(t, testkit.Err(c.Create(t.Context(), nil)))
	return c
}

func newName() string { return "c" + strings.ToLower(rand.Text()) }
