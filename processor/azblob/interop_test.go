package azblob_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2/checkpoints"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/azblob"
)

// group has capitals, which the SDK for Go keeps.
var group = processor.Group{Namespace: "Space.servicebus.windows.net", Hub: "Orders", Group: "$Default"}

// pair is one container that the SDK's checkpoint store and ours share.
type pair struct {
	*testing.T
	container *container.Client
	sdk       *checkpoints.BlobStore
	ours      processor.Store
}

func newPair(t *testing.T) *pair {
	c := newContainer(t, azurite(t), nil)
	sdk, err := checkpoints.NewBlobStore(c, nil)
	testkit.Must(t, err)
	return &pair{t, c, sdk, azblob.New(c, azblob.Config{PathCase: azblob.AsGiven})}
}

func TestTheSDKReadsOurRecords(t *testing.T) { // P8
	p := newPair(t)
	mine := claim(t, p.ours, processor.Lease{Partition: "3", Owner: "ours", Epoch: 1})
	c := begin(t, p.ours, mine)
	c.Sequence, c.Offset, c.HubID = 12, "480", "2026-11-15T08:00:00Z" // for which there is no place
	c = save(t, p.ours, mine, c)

	if o := p.sdkOwner("3"); o.OwnerID != "ours" || *o.ETag == "" || !o.LastModifiedTime.Equal(mine.Renewed) {
		t.Errorf("the SDK reads ownership %+v of %+v", o, mine)
	}
	if got := p.sdkCheckpoint("3"); *got.SequenceNumber != 12 || *got.Offset != "480" {
		t.Errorf("the SDK reads checkpoint %d at %s", *got.SequenceNumber, *got.Offset)
	}
	mine.Owner = ""
	claim(t, p.ours, mine)
	testkit.Equal(t, p.sdkOwner("3").OwnerID, "", "the SDK reads owner … of a partition that was released")
	c.Sequence, c.Offset = 20, ""
	testkit.Must(t, testkit.Err(p.ours.Force(t.Context(), group, c)))
	if got := p.sdkCheckpoint("3"); *got.SequenceNumber != 20 { // it would read nothing at all without an offset
		t.Errorf("the SDK reads checkpoint %d", *got.SequenceNumber)
	}
}

func TestWeReadTheSDKsRecords(t *testing.T) { // P8
	p := newPair(t)
	theirs := p.sdkClaim("3", "theirs", nil)
	p.sdkSave("3", 12, "480")
	l := lease(t, p.ours, "3")
	if l.Owner != "theirs" || l.Epoch != 0 || !l.Renewed.Equal(theirs.LastModifiedTime) || l.Version == "" {
		t.Errorf("we read lease %+v of %+v", l, theirs)
	}
	if c := checkpoint(t, p.ours, "3"); c.Sequence != 12 || c.Offset != "480" || c.Version == "" {
		t.Errorf("we read checkpoint %+v", c)
	}
	p.sdkClaim("3", "", theirs.ETag)
	if l := lease(t, p.ours, "3"); l.Owner != "" {
		t.Errorf("we read %+v of what was relinquished", l)
	}
}

func TestRecordsAreTheSDKsByteForByte(t *testing.T) { // P8
	p := newPair(t)
	p.sdkClaim("0", "me", nil)
	p.sdkSave("0", 12, "480")
	theirs := p.official()
	for name := range theirs {
		testkit.Must(t, testkit.Err(p.container.NewBlobClient(name).Delete(t.Context(), nil)))
	}
	mine := claim(t, p.ours, processor.Lease{Partition: "0", Owner: "me", Epoch: 1})
	c := begin(t, p.ours, mine)
	c.Sequence, c.Offset = 12, "480"
	save(t, p.ours, mine, c)
	if ours := p.official(); !maps.Equal(ours, theirs) || len(ours) != 2 {
		t.Errorf("ours are %v, the SDK's %v", ours, theirs)
	}
}

func TestTheSDKTakesOverFromUs(t *testing.T) { // P8
	p := newPair(t)
	mine := claim(t, p.ours, processor.Lease{Partition: "0", Owner: "ours", Epoch: 1})
	c := begin(t, p.ours, mine)
	c.Sequence, c.Offset = 12, "480"
	c = save(t, p.ours, mine, c)

	p.sdkClaim("0", "theirs", p.sdkOwner("0").ETag)
	lost(t, p.ours, mine)
	testkit.ErrorIs(t, testkit.Err(p.ours.Save(t.Context(), group, mine, c)), processor.ErrFenced, "save after the SDK took the partition")
	testkit.ErrorIs(t, testkit.Err(p.ours.Begin(t.Context(), group, mine)), processor.ErrFenced, "begin after the SDK took the partition")
	if l := lease(t, p.ours, "0"); l.Owner != "theirs" || l.Epoch != 1 {
		t.Errorf("we read lease %+v", l)
	}
}

func TestWeTakeOverFromTheSDK(t *testing.T) { // P8
	p := newPair(t)
	theirs := p.sdkClaim("0", "theirs", nil)
	p.sdkSave("0", 12, "480")

	l := lease(t, p.ours, "0")
	l.Owner, l.Epoch = "ours", l.Epoch+1
	mine := claim(t, p.ours, l)
	if c := begin(t, p.ours, mine); c.Sequence != 12 || c.Offset != "480" {
		t.Errorf("we begin at %+v", c)
	}
	if won := p.sdkTry("0", "theirs", theirs.ETag); len(won) != 0 {
		t.Errorf("the SDK renewed what we have taken: %+v", won)
	}
}

func TestACheckpointOfTheSDKIsAConflictForUs(t *testing.T) { // P8
	p := newPair(t)
	mine := claim(t, p.ours, processor.Lease{Partition: "0", Owner: "ours", Epoch: 1})
	p.sdkSave("0", 12, "480")
	c := begin(t, p.ours, mine)
	p.sdkSave("0", 13, "520") // a straggler's, which nothing can fence
	c.Sequence, c.Offset = 20, "800"
	testkit.ErrorIs(t, testkit.Err(p.ours.Save(t.Context(), group, mine, c)), processor.ErrConflict, "save over the SDK's checkpoint")
	if c = begin(t, p.ours, mine); c.Sequence != 13 {
		t.Errorf("we begin again at %+v", c)
	}
}

func (p *pair) sdkTry(partition, owner string, tag *etag) []azeventhubs.Ownership {
	p.Helper()
	won, err := p.sdk.ClaimOwnership(p.Context(), []azeventhubs.Ownership{{
		FullyQualifiedNamespace: group.Namespace, EventHubName: group.Hub, ConsumerGroup: group.Group,
		PartitionID: partition, OwnerID: owner, ETag: tag,
	}}, nil)
	if err != nil {
		p.Fatal(err)
	}
	return won
}

func (p *pair) sdkClaim(partition, owner string, tag *etag) azeventhubs.Ownership {
	p.Helper()
	won := p.sdkTry(partition, owner, tag)
	if len(won) != 1 {
		p.Fatalf("the SDK could not claim partition %s", partition)
	}
	return won[0]
}

func (p *pair) sdkOwner(partition string) azeventhubs.Ownership {
	p.Helper()
	all, err := p.sdk.ListOwnership(p.Context(), group.Namespace, group.Hub, group.Group, nil)
	i := slices.IndexFunc(all, func(o azeventhubs.Ownership) bool { return o.PartitionID == partition })
	if err != nil || i < 0 {
		p.Fatalf("the SDK lists %+v, %v", all, err)
	}
	return all[i]
}

func (p *pair) sdkSave(partition string, sequence int64, offset string) {
	p.Helper()
	err := p.sdk.SetCheckpoint(p.Context(), azeventhubs.Checkpoint{
		FullyQualifiedNamespace: group.Namespace, EventHubName: group.Hub, ConsumerGroup: group.Group,
		PartitionID: partition, SequenceNumber: to.Ptr(sequence), Offset: to.Ptr(offset),
	}, nil)
	if err != nil {
		p.Fatal(err)
	}
}

func (p *pair) sdkCheckpoint(partition string) azeventhubs.Checkpoint {
	p.Helper()
	all, err := p.sdk.ListCheckpoints(p.Context(), group.Namespace, group.Hub, group.Group, nil)
	i := slices.IndexFunc(all, func(c azeventhubs.Checkpoint) bool { return c.PartitionID == partition })
	if err != nil || i < 0 {
		p.Fatalf("the SDK lists %+v, %v", all, err)
	}
	return all[i]
}

// official gives the blobs of the official layout, each with its metadata and size.
func (p *pair) official() map[string]string {
	p.Helper()
	found := map[string]string{}
	for name, b := range list(p.T, p.container) {
		if !strings.Contains(name, "/eventyard/") {
			found[name] = b
		}
	}
	return found
}
