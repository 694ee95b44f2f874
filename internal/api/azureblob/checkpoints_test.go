package azureblob

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2/checkpoints"

	"github.com/eventyard/eventyard/internal/testkit"
)

func ownership(partition, owner string, etag *azcore.ETag) azeventhubs.Ownership {
	return azeventhubs.Ownership{
		FullyQualifiedNamespace: "ns.example.test", EventHubName: "Orders", ConsumerGroup: "$Default",
		PartitionID: partition, OwnerID: owner, ETag: etag,
	}
}

// The official Go library's checkpoint store goes through all that it does. // P1, P8
func TestTheOfficialCheckpointStore(t *testing.T) {
	y := newYard(t)
	store, err := checkpoints.NewBlobStore(y.container("leases"), nil)
	testkit.Must(t, err)
	claim := func(o azeventhubs.Ownership) *azeventhubs.Ownership {
		t.Helper()
		got, err := store.ClaimOwnership(t.Context(), []azeventhubs.Ownership{o}, nil)
		testkit.Must(t, err)
		if len(got) == 0 {
			return nil
		}
		return &got[0]
	}
	list := func() []azeventhubs.Ownership {
		t.Helper()
		got, err := store.ListOwnership(t.Context(), "ns.example.test", "Orders", "$Default", nil)
		testkit.Must(t, err)
		return got
	}
	testkit.Equal(t, len(list()), 0, "somebody owns something before anybody has claimed")
	first := claim(ownership("0", "me", nil))
	if first == nil || first.ETag == nil || first.LastModifiedTime.IsZero() {
		t.Fatalf("the first claim gave %+v", first)
	}
	if claim(ownership("0", "other", nil)) != nil {
		t.Error("a second first claim has won")
	}
	if claim(ownership("1", "other", nil)) == nil {
		t.Error("another partition was not free")
	}
	renewed := claim(ownership("0", "me", first.ETag))
	if renewed == nil || *renewed.ETag == *first.ETag {
		t.Fatalf("the renewal gave %+v", renewed)
	}
	if claim(ownership("0", "other", first.ETag)) != nil {
		t.Error("a stale ETag has won")
	}
	owned := list()
	if len(owned) != 2 || owned[0].OwnerID != "me" || owned[0].PartitionID != "0" || `"`+string(*owned[0].ETag)+`"` != string(*renewed.ETag) ||
		!owned[0].LastModifiedTime.Equal(renewed.LastModifiedTime) {
		t.Errorf("the list is %+v", owned)
	}
	stolen := claim(ownership("0", "other", owned[0].ETag)) // by the ETag of the list
	if stolen == nil {
		t.Fatal("the present ETag has lost")
	}
	if claim(ownership("0", "", stolen.ETag)) == nil {
		t.Error("it was not relinquished")
	}
	if owned = list(); owned[0].OwnerID != "" {
		t.Errorf("after it was relinquished the list is %+v", owned)
	}

	for _, at := range []int64{5, 10} {
		testkit.Must(t, store.SetCheckpoint(t.Context(), azeventhubs.Checkpoint{
			FullyQualifiedNamespace: "ns.example.test", EventHubName: "Orders", ConsumerGroup: "$Default", PartitionID: "0",
			Offset: to.Ptr(fmt.Sprint(at)), SequenceNumber: to.Ptr(at),
		}, nil))
	}
	saved, err := store.ListCheckpoints(t.Context(), "ns.example.test", "Orders", "$Default", nil)
	if err != nil || len(saved) != 1 || *saved[0].SequenceNumber != 10 || *saved[0].Offset != "10" {
		t.Errorf("checkpoints are %+v, %v", saved, err)
	}
}

// Of many that claim a partition that nobody has, exactly one wins; and of many that steal
// it. // P1
func TestOneClaimWins(t *testing.T) {
	y := newYard(t)
	store, err := checkpoints.NewBlobStore(y.container("leases"), nil)
	testkit.Must(t, err)
	race := func(partition string, etag *azcore.ETag) azeventhubs.Ownership {
		t.Helper()
		var won atomic.Pointer[azeventhubs.Ownership]
		var count atomic.Int32
		var all sync.WaitGroup
		for i := range 24 {
			all.Go(func() {
				got, err := store.ClaimOwnership(t.Context(), []azeventhubs.Ownership{ownership(partition, fmt.Sprint("w", i), etag)}, nil)
				testkit.Check(t, err)
				if len(got) == 1 {
					count.Add(1)
					won.Store(&got[0])
				}
			})
		}
		all.Wait()
		testkit.MustEqual(t, count.Load(), 1, "have won")
		return *won.Load()
	}
	for p := range 3 {
		winner := race(fmt.Sprint(p), nil)
		thief := race(fmt.Sprint(p), winner.ETag)
		owned, err := store.ListOwnership(t.Context(), "ns.example.test", "Orders", "$Default", nil)
		if err != nil || owned[p].OwnerID != thief.OwnerID {
			t.Errorf("%v, %v, want the owner %s", owned, err, thief.OwnerID)
		}
	}
}
