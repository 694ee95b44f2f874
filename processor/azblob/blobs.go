package azblob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/eventyard/eventyard/processor"
)

// blobs are the few operations on a container that we use: those of the official
// checkpoint stores, and for our own records get and delete.
type blobs struct{ container *container.Client }

// record is a blob without its body.
type record struct {
	name     string
	meta     map[string]string // keys in lower case
	version  processor.Version // empty: the blob does not exist
	modified time.Time
}

// list reads the records whose names begin with prefix.
func (b blobs) list(ctx context.Context, prefix string) ([]record, error) {
	pages := b.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
		Prefix: &prefix, Include: container.ListBlobsInclude{Metadata: true},
		ResponseFormat: container.StorageResponseFormatXML, // what every service speaks
	})
	var all []record
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Segment.BlobItems {
			r := newRecord(*item.Name, item.Metadata, item.Properties.ETag, item.Properties.LastModified)
			if r.meta["hdi_isfolder"] != "true" { // accounts with real folders list these, too
				all = append(all, r)
			}
		}
	}
	return all, nil
}

// head reads one record.
func (b blobs) head(ctx context.Context, name string) (record, error) {
	got, err := b.container.NewBlobClient(name).GetProperties(ctx, nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return record{name: name}, nil
	}
	if err != nil {
		return record{}, err
	}
	return newRecord(name, got.Metadata, got.ETag, got.LastModified), nil
}

// get reads a record with its body.
func (b blobs) get(ctx context.Context, name string, most int64) (record, []byte, error) {
	got, err := b.container.NewBlobClient(name).DownloadStream(ctx, nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return record{name: name}, nil, nil
	}
	if err != nil {
		return record{}, nil, err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(io.LimitReader(got.Body, most+1))
	if err == nil && int64(len(body)) > most {
		err = errors.New("the blob is too large to be one of ours")
	}
	return newRecord(name, got.Metadata, got.ETag, got.LastModified), body, err
}

// write sets the metadata of a blob that is in the given version, or creates it without a
// body if that is empty. ErrConflict.
func (b blobs) write(ctx context.Context, name string, meta map[string]string, version processor.Version) (record, error) {
	if version == "" {
		return b.upload(ctx, name, meta, nil, "")
	}
	got, err := b.container.NewBlobClient(name).SetMetadata(once(ctx), pointers(meta), &blob.SetMetadataOptions{
		AccessConditions: in(version),
	})
	if err != nil {
		return record{}, conflict(err)
	}
	return newRecord(name, pointers(meta), got.ETag, got.LastModified), nil
}

// upload replaces a blob that is in the given version, or creates it. ErrConflict.
func (b blobs) upload(ctx context.Context, name string, meta map[string]string, body []byte, version processor.Version) (record, error) {
	content := streaming.NopCloser(bytes.NewReader(body))
	got, err := b.container.NewBlockBlobClient(name).Upload(once(ctx), content, &blockblob.UploadOptions{
		Metadata: pointers(meta), AccessConditions: in(version),
	})
	if err != nil {
		return record{}, conflict(err)
	}
	return newRecord(name, pointers(meta), got.ETag, got.LastModified), nil
}

// remove deletes a blob that is in the given version. ErrConflict.
func (b blobs) remove(ctx context.Context, name string, version processor.Version) error {
	_, err := b.container.NewBlobClient(name).Delete(once(ctx), &blob.DeleteOptions{AccessConditions: in(version)})
	return conflict(err)
}

func newRecord(name string, meta map[string]*string, tag *azcore.ETag, modified *time.Time) record {
	r := record{name: name, meta: make(map[string]string, len(meta))}
	for key, value := range meta {
		if value != nil {
			// Some SDKs wrote capitals, and HTTP headers come with capitals of their own.
			r.meta[strings.ToLower(key)] = *value
		}
	}
	if tag != nil {
		r.version = processor.Version(strings.Trim(string(*tag), `"`)) // bare in lists, quoted in headers
	}
	if modified != nil {
		r.modified = modified.UTC()
	}
	return r
}

// partition is the last part of the record's name.
func (r record) partition() string { return r.name[strings.LastIndexByte(r.name, '/')+1:] }

// in is the condition that a blob is in a version, or does not exist if that is empty.
func in(version processor.Version) *blob.AccessConditions {
	var c blob.ModifiedAccessConditions
	if version == "" {
		c.IfNoneMatch = to.Ptr(azcore.ETagAny)
	} else {
		c.IfMatch = to.Ptr(azcore.ETag(`"` + string(version) + `"`))
	}
	return &blob.AccessConditions{ModifiedAccessConditions: &c}
}

func pointers(meta map[string]string) map[string]*string {
	p := make(map[string]*string, len(meta))
	for key, value := range meta {
		p[key] = &value
	}
	return p
}

// conflict turns the answers that say "not in that version" into ErrConflict. A blob
// under a storage lease also answers 412, with another code: that is an error like others.
func conflict(err error) error {
	if bloberror.HasCode(err, bloberror.ConditionNotMet, bloberror.BlobAlreadyExists, bloberror.BlobNotFound) {
		return processor.ErrConflict
	}
	return err
}

// once keeps the client from sending a write again whose outcome is not known. Throttled
// requests were not begun, so these it may send again.
func once(ctx context.Context) context.Context {
	return policy.WithRetryOptions(ctx, policy.RetryOptions{
		// Few and short, since leases are renewed by writes and do not last long.
		MaxRetries: 3, RetryDelay: 200 * time.Millisecond, MaxRetryDelay: 5 * time.Second,
		ShouldRetry: func(answer *http.Response, err error) bool {
			return err == nil && (answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusServiceUnavailable &&
				answer.Header.Get("x-ms-error-code") == string(bloberror.ServerBusy))
		},
	})
}
