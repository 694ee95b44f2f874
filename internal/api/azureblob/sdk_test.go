package azureblob

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"hash/crc64"
	"io"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	azblobblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/eventyard/eventyard/internal/testkit"
)

// The official Go client works with containers.
func TestContainersByTheOfficialClient(t *testing.T) {
	y := newYard(t)
	client := y.service()
	box := client.NewContainerClient("box")
	_, err := box.GetProperties(t.Context(), nil)
	wantCode(t, err, bloberror.ContainerNotFound)
	_, err = box.Create(t.Context(), &container.CreateOptions{Metadata: map[string]*string{"Purpose": to.Ptr("test")}})
	testkit.Must(t, err)
	_, err = box.Create(t.Context(), nil)
	wantCode(t, err, bloberror.ContainerAlreadyExists)
	_, err = client.NewContainerClient("No").Create(t.Context(), nil)
	wantCode(t, err, bloberror.InvalidResourceName)

	properties, err := box.GetProperties(t.Context(), nil)
	testkit.Must(t, err)
	if *properties.Metadata["Purpose"] != "test" || properties.ETag == nil || *properties.LeaseState != lease.StateTypeAvailable {
		t.Errorf("properties are %+v", properties)
	}
	_, err = box.SetMetadata(t.Context(), &container.SetMetadataOptions{Metadata: map[string]*string{"other": to.Ptr("")}})
	testkit.Must(t, err)

	for i := range 4 {
		_, err := client.NewContainerClient(fmt.Sprint("many-", i)).Create(t.Context(), nil)
		testkit.Must(t, err)
	}
	pager := client.NewListContainersPager(&service.ListContainersOptions{MaxResults: to.Ptr[int32](2), Include: service.ListContainersInclude{Metadata: true}})
	var names []string
	for pager.More() {
		page, err := pager.NextPage(t.Context())
		testkit.Must(t, err)
		for _, c := range page.ContainerItems {
			names = append(names, *c.Name)
			if _, ok := c.Metadata["other"]; *c.Name == "box" && !ok {
				t.Errorf("metadata of the list is %v", c.Metadata)
			}
		}
	}
	testkit.Slices(t, names, []string{"box", "many-0", "many-1", "many-2", "many-3"}, "containers")

	leased, err := lease.NewContainerClient(box, nil)
	testkit.Must(t, err)
	_, err = leased.AcquireLease(t.Context(), 15, nil)
	testkit.Must(t, err)
	_, err = box.Delete(t.Context(), nil)
	wantCode(t, err, bloberror.LeaseIDMissing)
	_, err = leased.ReleaseLease(t.Context(), nil)
	testkit.Must(t, err)
	_, err = box.Delete(t.Context(), nil)
	testkit.Must(t, err)
	_, err = box.GetProperties(t.Context(), nil)
	wantCode(t, err, bloberror.ContainerNotFound)

	served, err := client.GetProperties(t.Context(), nil)
	if err != nil || served.DefaultServiceVersion == nil {
		t.Errorf("service properties are %+v, %v", served, err)
	}
	account, err := client.GetAccountInfo(t.Context(), nil)
	if err != nil || account.AccountKind == nil {
		t.Errorf("account information is %+v, %v", account, err)
	}
}

// The official Go client writes, reads and deletes blobs.
func TestBlobsByTheOfficialClient(t *testing.T) {
	y := newYard(t)
	box := y.container("box")
	b := box.NewBlockBlobClient("folder/größe 1%+&.txt")
	_, err := b.GetProperties(t.Context(), nil)
	wantCode(t, err, bloberror.BlobNotFound)
	_, err = b.DownloadStream(t.Context(), nil)
	wantCode(t, err, bloberror.BlobNotFound)

	body := []byte("0123456789")
	digest := md5.Sum(body)
	written, err := b.Upload(t.Context(), streaming.NopCloser(bytes.NewReader(body)), &blockblob.UploadOptions{
		Metadata: map[string]*string{"OwnerID": to.Ptr("me"), "empty": to.Ptr("")},
		HTTPHeaders: &azblobblob.HTTPHeaders{
			BlobContentType: to.Ptr("text/plain"), BlobCacheControl: to.Ptr("no-store"), BlobContentLanguage: to.Ptr("de"),
			BlobContentEncoding: to.Ptr("x-none"), BlobContentDisposition: to.Ptr("attachment"),
		},
	})
	testkit.Must(t, err)
	if !bytes.Equal(written.ContentMD5, digest[:]) || !*written.IsServerEncrypted {
		t.Errorf("the answer is %+v", written)
	}
	got, err := b.GetProperties(t.Context(), nil)
	testkit.Must(t, err)
	if *got.ETag != *written.ETag || *got.ContentLength != 10 || *got.ContentType != "text/plain" || *got.CacheControl != "no-store" ||
		*got.ContentLanguage != "de" || *got.ContentEncoding != "x-none" || *got.ContentDisposition != "attachment" ||
		!bytes.Equal(got.ContentMD5, digest[:]) || *got.BlobType != azblobblob.BlobTypeBlockBlob || *got.Metadata["Ownerid"] != "me" || !got.LastModified.Equal(*written.LastModified) {
		t.Errorf("properties are %+v", got)
	}
	for _, part := range []struct {
		offset, count int64
		want          string
	}{{0, 0, "0123456789"}, {3, 4, "3456"}, {8, 0, "89"}, {8, 100, "89"}} {
		t.Run(fmt.Sprintf("range %d+%d", part.offset, part.count), func(t *testing.T) {
			testkit.Equal(t, fetch(t, b, part.offset, part.count), part.want)
		})
	}
	_, err = b.DownloadStream(t.Context(), &azblobblob.DownloadStreamOptions{Range: azblobblob.HTTPRange{Offset: 10, Count: 1}})
	wantCode(t, err, bloberror.InvalidRange)
	checked, err := b.DownloadStream(t.Context(), &azblobblob.DownloadStreamOptions{Range: azblobblob.HTTPRange{Offset: 1, Count: 2}, RangeGetContentMD5: to.Ptr(true)})
	testkit.Must(t, err)
	part := md5.Sum(body[1:3])
	if !bytes.Equal(checked.ContentMD5, part[:]) || !bytes.Equal(checked.BlobContentMD5, digest[:]) {
		t.Errorf("checksums are %x and %x", checked.ContentMD5, checked.BlobContentMD5)
	}
	testkit.Must(t, checked.Body.Close())

	_, err = b.SetHTTPHeaders(t.Context(), azblobblob.HTTPHeaders{BlobContentType: to.Ptr("text/csv")}, nil)
	testkit.Must(t, err)
	_, err = b.SetMetadata(t.Context(), map[string]*string{"new": to.Ptr("1")}, nil)
	testkit.Must(t, err)
	got, err = b.GetProperties(t.Context(), nil)
	testkit.Must(t, err)
	if *got.ContentType != "text/csv" || got.CacheControl != nil || len(got.Metadata) != 1 || *got.Metadata["New"] != "1" {
		t.Errorf("properties are %+v", got)
	}
	_, err = b.Delete(t.Context(), nil)
	testkit.Must(t, err)
	_, err = b.Delete(t.Context(), nil)
	wantCode(t, err, bloberror.BlobNotFound)
	_, err = y.service().NewContainerClient("nope").NewBlobClient("b").GetProperties(t.Context(), nil)
	wantCode(t, err, bloberror.ContainerNotFound)
}

func fetch(t *testing.T, b *blockblob.Client, offset, count int64) string {
	t.Helper()
	got, err := b.DownloadStream(t.Context(), &azblobblob.DownloadStreamOptions{Range: azblobblob.HTTPRange{Offset: offset, Count: count}})
	testkit.Must(t, err)
	all, err := io.ReadAll(got.Body)
	testkit.Must(t, err)
	testkit.Must(t, got.Body.Close())
	return string(all)
}

func send(t *testing.T, b *blockblob.Client, text string, when *azblobblob.AccessConditions) (azcore.ETag, error) {
	t.Helper()
	got, err := b.Upload(t.Context(), streaming.NopCloser(strings.NewReader(text)), &blockblob.UploadOptions{AccessConditions: when})
	if err != nil {
		return "", err
	}
	return *got.ETag, nil
}

func modified(c azblobblob.ModifiedAccessConditions) *azblobblob.AccessConditions {
	return &azblobblob.AccessConditions{ModifiedAccessConditions: &c}
}

func TestConditionsByTheOfficialClient(t *testing.T) {
	y := newYard(t)
	b := y.container("box").NewBlockBlobClient("b")
	absent := modified(azblobblob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)})
	_, err := send(t, b, "x", modified(azblobblob.ModifiedAccessConditions{IfMatch: to.Ptr(azcore.ETag(`"0x1"`))}))
	wantCode(t, err, bloberror.ConditionNotMet)
	first, err := send(t, b, "1", absent)
	testkit.Must(t, err)
	_, err = send(t, b, "2", absent)
	wantCode(t, err, bloberror.BlobAlreadyExists)
	second, err := send(t, b, "2", modified(azblobblob.ModifiedAccessConditions{IfMatch: &first}))
	testkit.Must(t, err)
	for name, when := range map[string]azblobblob.ModifiedAccessConditions{
		"stale ETag": {IfMatch: &first}, "any ETag must not be there": {IfNoneMatch: to.Ptr(azcore.ETagAny)}, "present ETag must not be": {IfNoneMatch: &second},
	} {
		_, err := b.SetMetadata(t.Context(), nil, &azblobblob.SetMetadataOptions{AccessConditions: modified(when)})
		if !bloberror.HasCode(err, bloberror.ConditionNotMet) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bare := azcore.ETag(strings.Trim(string(second), `"`)) // as a list shows it
	_, err = b.SetMetadata(t.Context(), nil, &azblobblob.SetMetadataOptions{AccessConditions: modified(azblobblob.ModifiedAccessConditions{IfMatch: &bare})})
	testkit.Must(t, err)
	got, err := b.GetProperties(t.Context(), nil)
	testkit.Must(t, err)
	same, err := b.DownloadStream(t.Context(), &azblobblob.DownloadStreamOptions{AccessConditions: modified(azblobblob.ModifiedAccessConditions{IfNoneMatch: got.ETag})})
	if err != nil || same.ErrorCode == nil || *same.ErrorCode != string(bloberror.ConditionNotMet) { // 304 is no error to this client
		t.Errorf("a body that is known: %+v, %v", same, err)
	}
	_, err = b.Delete(t.Context(), &azblobblob.DeleteOptions{AccessConditions: modified(azblobblob.ModifiedAccessConditions{IfModifiedSince: got.LastModified})})
	wantCode(t, err, bloberror.ConditionNotMet)
	_, err = b.Delete(t.Context(), &azblobblob.DeleteOptions{AccessConditions: modified(azblobblob.ModifiedAccessConditions{IfUnmodifiedSince: got.LastModified})})
	testkit.Must(t, err)
}

func TestLeasesByTheOfficialClient(t *testing.T) {
	y := newYard(t)
	b := y.container("box").NewBlockBlobClient("b")
	_, err := send(t, b, "x", nil)
	testkit.Must(t, err)
	const one, two = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
	mine, err := lease.NewBlobClient(b, &lease.BlobClientOptions{LeaseID: to.Ptr(one)})
	testkit.Must(t, err)
	other, err := lease.NewBlobClient(b, &lease.BlobClientOptions{LeaseID: to.Ptr(two)})
	testkit.Must(t, err)
	_, err = mine.AcquireLease(t.Context(), 10, nil)
	wantCode(t, err, bloberror.InvalidHeaderValue)
	got, err := mine.AcquireLease(t.Context(), 60, nil)
	if err != nil || *got.LeaseID != one {
		t.Fatalf("acquired %v, %v", got, err)
	}
	_, err = other.AcquireLease(t.Context(), 15, nil)
	wantCode(t, err, bloberror.LeaseAlreadyPresent)
	_, err = other.RenewLease(t.Context(), nil)
	wantCode(t, err, bloberror.LeaseIDMismatchWithLeaseOperation)
	_, err = mine.RenewLease(t.Context(), nil)
	testkit.Must(t, err)

	_, err = send(t, b, "y", nil)
	wantCode(t, err, bloberror.LeaseIDMissing)
	_, err = b.SetMetadata(t.Context(), nil, nil)
	wantCode(t, err, bloberror.LeaseIDMissing)
	_, err = b.Delete(t.Context(), nil)
	wantCode(t, err, bloberror.LeaseIDMissing)
	under := func(id string) *azblobblob.AccessConditions {
		return &azblobblob.AccessConditions{LeaseAccessConditions: &azblobblob.LeaseAccessConditions{LeaseID: to.Ptr(id)}}
	}
	_, err = send(t, b, "y", under(two))
	wantCode(t, err, bloberror.LeaseIDMismatchWithBlobOperation)
	_, err = send(t, b, "y", under(one))
	testkit.Must(t, err)
	properties, err := b.GetProperties(t.Context(), nil)
	testkit.Must(t, err)
	if *properties.LeaseState != lease.StateTypeLeased || *properties.LeaseStatus != lease.StatusTypeLocked || *properties.LeaseDuration != lease.DurationTypeFixed {
		t.Errorf("the lease is %v, %v, %v", *properties.LeaseState, *properties.LeaseStatus, *properties.LeaseDuration)
	}
	changed, err := mine.ChangeLease(t.Context(), two, nil)
	if err != nil || *changed.LeaseID != two {
		t.Fatalf("changed to %v, %v", changed, err)
	}
	broken, err := other.BreakLease(t.Context(), &lease.BlobBreakOptions{BreakPeriod: to.Ptr[int32](30)})
	if err != nil || *broken.LeaseTime != 30 {
		t.Fatalf("broken: %+v, %v", broken, err)
	}
	_, err = other.RenewLease(t.Context(), nil)
	wantCode(t, err, bloberror.LeaseIsBrokenAndCannotBeRenewed)
	_, err = other.ReleaseLease(t.Context(), nil)
	testkit.Must(t, err)
	_, err = send(t, b, "z", under(two))
	wantCode(t, err, bloberror.LeaseNotPresentWithBlobOperation)
	_, err = send(t, b, "z", nil)
	testkit.Must(t, err)
}

// A large body goes up in blocks, in parallel, and comes down in ranges.
func TestLargeBodiesByTheOfficialClient(t *testing.T) {
	y := newYard(t)
	box := y.container("box")
	body := bytes.Repeat([]byte("0123456789abcdef-"), 20<<20/17+1)[:20<<20]
	b := box.NewBlockBlobClient("large")
	_, err := b.UploadStream(t.Context(), bytes.NewReader(body), &blockblob.UploadStreamOptions{BlockSize: 4 << 20, Concurrency: 3})
	testkit.Must(t, err)
	back := make([]byte, len(body))
	n, err := b.DownloadBuffer(t.Context(), back, &azblobblob.DownloadBufferOptions{BlockSize: 3 << 20, Concurrency: 3})
	if err != nil || n != int64(len(body)) || !bytes.Equal(back, body) {
		t.Fatalf("%d bytes came back, %v", n, err)
	}
	list, err := b.GetBlockList(t.Context(), blockblob.BlockListTypeAll, nil)
	testkit.Must(t, err)
	if len(list.CommittedBlocks) != 5 || len(list.UncommittedBlocks) != 0 || *list.CommittedBlocks[0].Size != 4<<20 {
		t.Errorf("blocks are %+v", list.BlockList)
	}
	testkit.Equal(t, fetch(t, b, 8<<20-50, 100), string(body[8<<20-50:8<<20+50]), "a range over two blocks")
	whole := box.NewBlockBlobClient("whole")
	_, err = whole.Upload(t.Context(), streaming.NopCloser(bytes.NewReader(body)), nil)
	testkit.Must(t, err)
	testkit.Equal(t, fetch(t, whole, int64(len(body))-5, 0), string(body[len(body)-5:]), "its end")
}

func TestBlocksByTheOfficialClient(t *testing.T) {
	y := newYard(t)
	b := y.container("box").NewBlockBlobClient("b")
	id := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	stage := func(name, text string) {
		t.Helper()
		sum := crc64.Checksum([]byte(text), crcTable)
		_, err := b.StageBlock(t.Context(), id(name), streaming.NopCloser(strings.NewReader(text)), &blockblob.StageBlockOptions{
			TransactionalValidation: azblobblob.TransferValidationTypeCRC64(sum),
		})
		testkit.Must(t, err)
	}
	stage("1", "one ")
	stage("2", "two ")
	_, err := b.GetProperties(t.Context(), nil)
	wantCode(t, err, bloberror.BlobNotFound)
	list, err := b.GetBlockList(t.Context(), blockblob.BlockListTypeUncommitted, nil)
	if err != nil || len(list.UncommittedBlocks) != 2 || *list.UncommittedBlocks[0].Name != id("1") {
		t.Errorf("blocks are %+v, %v", list.BlockList, err)
	}
	_, err = b.CommitBlockList(t.Context(), []string{id("2"), id("3")}, nil)
	wantCode(t, err, bloberror.InvalidBlockList)
	_, err = b.CommitBlockList(t.Context(), []string{id("2"), id("1"), id("2")}, &blockblob.CommitBlockListOptions{
		HTTPHeaders: &azblobblob.HTTPHeaders{BlobContentType: to.Ptr("text/plain")}, Metadata: map[string]*string{"a": to.Ptr("b")},
	})
	testkit.Must(t, err)
	testkit.Equal(t, fetch(t, b, 0, 0), "two one two ", "the body")
	got, err := b.GetProperties(t.Context(), nil)
	if err != nil || *got.ContentType != "text/plain" || *got.Metadata["A"] != "b" {
		t.Errorf("properties are %+v, %v", got, err)
	}
}

func TestListsByTheOfficialClient(t *testing.T) {
	y := newYard(t)
	box := y.container("box")
	for _, name := range []string{"a/1", "a/2", "a/b/3", "c", "d/4", "z<&>\"' "} {
		b := box.NewBlockBlobClient(name)
		_, err := b.Upload(t.Context(), streaming.NopCloser(strings.NewReader(name)), &blockblob.UploadOptions{Metadata: map[string]*string{"ownerid": to.Ptr("")}})
		testkit.Must(t, err)
	}
	var flat []string
	pager := box.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{MaxResults: to.Ptr[int32](2), Include: container.ListBlobsInclude{Metadata: true}})
	for pager.More() {
		page, err := pager.NextPage(t.Context())
		testkit.Must(t, err)
		for _, b := range page.Segment.BlobItems {
			flat = append(flat, *b.Name)
			if owner, ok := b.Metadata["ownerid"]; !ok || owner == nil || *owner != "" {
				t.Errorf("metadata of %s is %v", *b.Name, b.Metadata)
			}
			properties, err := box.NewBlobClient(*b.Name).GetProperties(t.Context(), nil)
			testkit.Must(t, err)
			if `"`+string(*b.Properties.ETag)+`"` != string(*properties.ETag) || *b.Properties.ContentLength != int64(len(*b.Name)) ||
				!b.Properties.LastModified.Equal(*properties.LastModified) {
				t.Errorf("%s is listed as %+v", *b.Name, b.Properties)
			}
		}
	}
	testkit.Slices(t, flat, []string{"a/1", "a/2", "a/b/3", "c", "d/4", "z<&>\"' "}, "blobs")
	var tree []string
	hierarchy := box.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{Prefix: to.Ptr("a/"), MaxResults: to.Ptr[int32](1)})
	for hierarchy.More() {
		page, err := hierarchy.NextPage(t.Context())
		testkit.Must(t, err)
		for _, b := range page.Segment.BlobItems {
			tree = append(tree, *b.Name)
		}
		for _, p := range page.Segment.BlobPrefixes {
			tree = append(tree, "prefix "+*p.Name)
		}
	}
	testkit.Slices(t, tree, []string{"a/1", "a/2", "prefix a/b/"}, "the tree")
	_, err := y.service().NewContainerClient("nope").NewListBlobsFlatPager(nil).NextPage(t.Context())
	wantCode(t, err, bloberror.ContainerNotFound)
}

// Metadata with names whose order is not that of their bytes is signed by another rule in
// newer clients; both are let in.
func TestHeadersInEitherOrder(t *testing.T) {
	y := newYard(t)
	b := y.container("box").NewBlockBlobClient("b")
	all := map[string]*string{"a_b": to.Ptr("1"), "ab": to.Ptr("2"), "a1": to.Ptr("3"), "a": to.Ptr("4"), "b_": to.Ptr("5")}
	_, err := b.Upload(t.Context(), streaming.NopCloser(strings.NewReader("")), &blockblob.UploadOptions{Metadata: all})
	testkit.Must(t, err)
	got, err := b.GetProperties(t.Context(), nil)
	if err != nil || len(got.Metadata) != len(all) {
		t.Errorf("metadata is %v, %v", got.Metadata, err)
	}
}

// A bearer token that may manage the namespace opens everything; any other, nothing.
func TestBearerByTheOfficialClient(t *testing.T) {
	y := newYard(t)
	client, err := azblob.NewClient(y.url(), anyToken{}, &azblob.ClientOptions{ClientOptions: y.options()})
	testkit.Must(t, err)
	_, err = client.CreateContainer(t.Context(), "box", nil)
	testkit.Must(t, err)
	_, err = client.UploadBuffer(t.Context(), "box", "b", []byte("x"), nil)
	testkit.Must(t, err)
}
