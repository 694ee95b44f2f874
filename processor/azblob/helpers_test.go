package azblob_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

type etag = azcore.ETag

// claim writes a lease and wants it written.
func claim(t *testing.T, s processor.Store, l processor.Lease) processor.Lease {
	t.Helper()
	won, err := s.Claim(t.Context(), group, []processor.Lease{l})
	if err != nil || len(won) != 1 {
		t.Fatalf("claim %+v: %+v, %v", l, won, err)
	}
	return won[0]
}

// lost writes a lease and wants it left out.
func lost(t *testing.T, s processor.Store, l processor.Lease) {
	t.Helper()
	if won, err := s.Claim(t.Context(), group, []processor.Lease{l}); err != nil || len(won) != 0 {
		t.Fatalf("claim %+v: %+v, %v", l, won, err)
	}
}

func begin(t *testing.T, s processor.Store, l processor.Lease) processor.Checkpoint {
	t.Helper()
	c, err := s.Begin(t.Context(), group, l)
	testkit.Must(t, err)
	return c
}

func save(t *testing.T, s processor.Store, l processor.Lease, c processor.Checkpoint) processor.Checkpoint {
	t.Helper()
	c, err := s.Save(t.Context(), group, l, c)
	testkit.Must(t, err)
	return c
}

// saved claims a lease, begins and saves a checkpoint.
func saved(t *testing.T, s processor.Store, l processor.Lease, sequence int64) (processor.Lease, processor.Checkpoint) {
	t.Helper()
	l = claim(t, s, l)
	c := begin(t, s, l)
	c.Sequence = sequence
	return l, save(t, s, l, c)
}

func lease(t *testing.T, s processor.Store, partition string) processor.Lease {
	t.Helper()
	all, err := s.Leases(t.Context(), group)
	i := slices.IndexFunc(all, func(l processor.Lease) bool { return l.Partition == partition })
	if err != nil || i < 0 {
		t.Fatalf("leases are %+v, %v", all, err)
	}
	return all[i]
}

func checkpoint(t *testing.T, s processor.Store, partition string) processor.Checkpoint {
	t.Helper()
	all, err := s.Checkpoints(t.Context(), group)
	i := slices.IndexFunc(all, func(c processor.Checkpoint) bool { return c.Partition == partition })
	if err != nil || i < 0 {
		t.Fatalf("checkpoints are %+v, %v", all, err)
	}
	return all[i]
}

// list gives all blobs of a container, each with its metadata and size.
func list(t *testing.T, c *container.Client) map[string]string {
	t.Helper()
	found := map[string]string{}
	pages := c.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Metadata: true}})
	for pages.More() {
		page, err := pages.NextPage(t.Context())
		testkit.Must(t, err)
		for _, b := range page.Segment.BlobItems {
			var meta []string
			for key, value := range b.Metadata {
				meta = append(meta, fmt.Sprintf("%s=%s", key, *value))
			}
			slices.Sort(meta)
			found[*b.Name] = fmt.Sprintf("%s, %d bytes", strings.Join(meta, " "), *b.Properties.ContentLength)
		}
	}
	return found
}

// upload puts a blob with a body, as older programs did.
func upload(t *testing.T, c *container.Client, name, body string) {
	t.Helper()
	testkit.Must(t, testkit.Err(c.NewBlockBlobClient(name).UploadBuffer(t.Context(), []byte(body), nil)))
}
