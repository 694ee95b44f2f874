//go:build linux

package interop

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2/checkpoints"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/azblob"
)

const (
	sharedHub        = "Shared" // with a capital, which the SDK for Go keeps in blob names
	sharedGroup      = "readers"
	sharedPartitions = 6
	// moveTime bounds one change of the group on a slow machine.
	moveTime = 90 * time.Second
)

// TestSharedGroup has an unmodified processor of the official Go library and one of ours in
// one group, under load. Each comes and goes while the other goes on: they spread the partitions
// evenly, and take over from each other exactly behind the checkpoint. // P1, P2, P3, P8
func TestSharedGroup(t *testing.T) {
	t.Parallel()
	t.Run("Azurite", func(t *testing.T) {
		t.Parallel()
		blobs := startAzurite(t)
		shareGroup(t, startYard(t, sharedLayout()), blobs.Connection())
	})
	t.Run("the yard's blobs", func(t *testing.T) {
		t.Parallel()
		y := startYard(t, sharedLayout())
		shareGroup(t, y, y.blobs(t))
	})
}

func sharedLayout() layout { return layout{hubs: map[string]int{sharedHub: sharedPartitions}} }

// sharing is a group that both kinds of processors read.
type sharing struct {
	*testing.T
	namespace string
	official  *checkpoints.BlobStore
	own       processor.Store
	*ledger
}

func shareGroup(t *testing.T, y *yard, blobs string) {
	s := newSharing(t, y, blobs)
	load := startLoad(t, connection(y.hostPort(t, "amqp"), "sender", sharedHub, "UseDevelopmentEmulator=true"))

	ours := s.startOurs("ours-1")
	s.awaitSpread(map[string]int{"ours-1": 6})
	s.moving()
	theirs := s.startTheirs("theirs-1")
	s.awaitSpread(map[string]int{"ours-1": 3, "theirs-1": 3})

	s.atRest()
	theirs.stop()
	s.awaitSpread(map[string]int{"ours-1": 6})
	s.moving()
	theirs = s.startTheirs("theirs-2")
	s.awaitSpread(map[string]int{"ours-1": 3, "theirs-2": 3})

	s.atRest()
	ours.stop()
	s.awaitSpread(map[string]int{"theirs-2": 6})
	s.moving()
	ours = s.startOurs("ours-2") // takes from one that cannot be asked
	s.awaitSpread(map[string]int{"ours-2": 3, "theirs-2": 3})

	sent := load.stop()
	s.await("all events", func() bool { return maps.Equal(s.handledUpTo(), sent) })
	ours.stop()
	theirs.stop()
	s.checkEnd(sent)
}

func newSharing(t *testing.T, y *yard, blobs string) *sharing {
	t.Helper()
	c, err := container.NewClientFromConnectionString(blobs, "checkpoints", nil)
	testkit.Must(t, err)
	testkit.Must(t, testkit.Err(c.Create(t.Context(), nil)))
	official, err := checkpoints.NewBlobStore(c, nil)
	testkit.Must(t, err)
	namespace := y.hostPort(t, "amqp") // the SDK takes the port along
	return &sharing{
		T: t, namespace: namespace, official: official,
		own:    azblob.New(c, azblob.Config{PathCase: azblob.AsGiven, Namespace: namespace}),
		ledger: newLedger(t),
	}
}

// listener is the connection string of one who may only read.
func (s *sharing) listener() string {
	return connection(s.namespace, "listener", "", "UseDevelopmentEmulator=true")
}

// awaitSpread waits until the partitions are owned in these numbers, and each is read on by its
// owner.
func (s *sharing) awaitSpread(want map[string]int) {
	s.Helper()
	began := time.Now()
	s.await("the spread", func() bool { return maps.Equal(counts(s.owners()), want) && maps.Equal(s.workers(), s.owners()) })
	before := s.handledUpTo()
	s.await("every partition to go on", func() bool {
		now := s.handledUpTo()
		for p, handled := range before {
			if now[p] < handled+2*checkpointEvery {
				return false
			}
		}
		return true
	})
	if got := s.workers(); !maps.Equal(counts(got), want) {
		s.Errorf("partitions have moved again, to %v", got)
	}
	s.Logf("spread as %v after %v", want, time.Since(began).Round(100*time.Millisecond))
}

// owners are those of the partitions, as the SDK reads them; partitions that nobody owns are left
// out.
func (s *sharing) owners() map[string]string {
	s.Helper()
	all, err := s.official.ListOwnership(s.Context(), s.namespace, sharedHub, sharedGroup, nil)
	if err != nil {
		s.Fatal(err)
	}
	owners := map[string]string{}
	for _, o := range all {
		if o.OwnerID != "" {
			owners[o.PartitionID] = o.OwnerID
		}
	}
	return owners
}

func counts(owners map[string]string) map[string]int {
	n := map[string]int{}
	for _, owner := range owners {
		n[owner]++
	}
	return n
}

// checkEnd looks at what is left when everybody has gone: nothing is owned, and both stores read
// the checkpoints that were made last.
func (s *sharing) checkEnd(sent map[string]int64) {
	s.Helper()
	if owners := s.owners(); len(owners) != 0 {
		s.Errorf("%v are owned by processors that have stopped", owners)
	}
	saved := s.savedUpTo()
	if theirs := s.readByTheirs(); !maps.Equal(theirs, saved) {
		s.Errorf("the SDK reads checkpoints %v of %v", theirs, saved)
	}
	if ours := s.readByOurs(); !maps.Equal(ours, saved) {
		s.Errorf("we read checkpoints %v of %v", ours, saved)
	}
	for p, last := range sent {
		if saved[p] > last || saved[p] <= last-2*checkpointEvery {
			s.Errorf("partition %s ends at %d, its checkpoint is %d", p, last, saved[p])
		}
	}
	s.report()
}

func (s *sharing) readByTheirs() map[string]int64 {
	s.Helper()
	all, err := s.official.ListCheckpoints(s.Context(), s.namespace, sharedHub, sharedGroup, nil)
	if err != nil {
		s.Fatal(err)
	}
	read := map[string]int64{}
	for _, c := range slices.DeleteFunc(all, func(c azeventhubs.Checkpoint) bool { return c.SequenceNumber == nil || c.Offset == nil }) {
		read[c.PartitionID] = *c.SequenceNumber
	}
	return read
}

func (s *sharing) readByOurs() map[string]int64 {
	s.Helper()
	all, err := s.own.Checkpoints(s.Context(), processor.Group{Namespace: "127.0.0.1", Hub: sharedHub, Group: sharedGroup})
	if err != nil {
		s.Fatal(err)
	}
	read := map[string]int64{}
	for _, c := range all {
		read[c.Partition] = c.Sequence
	}
	return read
}

// await polls, as those whom it waits for are programs of others.
func (s *sharing) await(what string, found func() bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), moveTime)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !found() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.Fatalf("waited for %s: owned are %v, read by %v up to %v", what, s.owners(), s.workers(), s.handledUpTo())
		}
	}
}
