package groups

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/bolt"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

const crashPartitions = 8

// P3, P7: a yard killed in the midst of its work loses no lease, checkpoint or fence that it has
// acknowledged. Each life takes all partitions with a higher epoch, begins them and
// saves one checkpoint after the other, and prints what is acknowledged. (That bolt's
// acknowledged writes outlive a power cut is shown beside it.)
func TestAcknowledgedRecordsSurviveAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "meta.db")
	random := rand.New(rand.NewPCG(5, 6))
	former := map[string]acknowledged{}
	for range 6 {
		last := crashLife(t, path, 20+random.IntN(300))
		wantAcknowledged(t, path, last, former)
		former = last
	}
}

// acknowledged is the newest that a life has printed of a partition.
type acknowledged struct {
	epoch, sequence int64
	version         processor.Version
}

// crashLife runs a process, kills it after some lines and gives what it has acknowledged.
func crashLife(t *testing.T, path string, lines int) map[string]acknowledged {
	t.Helper()
	binary := testkit.Value(os.Executable())(t)
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), childFile+"="+path)
	cmd.Stderr = os.Stderr
	stdout := testkit.Value(cmd.StdoutPipe())(t)
	testkit.Must(t, cmd.Start())
	last := map[string]acknowledged{}
	seen := 0
	for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
		var partition string
		var a acknowledged
		if _, err := fmt.Sscan(scanner.Text(), &partition, &a.epoch, &a.sequence, &a.version); err != nil {
			t.Fatalf("the child printed %q: %v", scanner.Text(), err)
		}
		last[partition] = a
		if seen++; seen == lines {
			_ = cmd.Process.Kill() // what it has printed by now is still read
		}
	}
	if err := cmd.Wait(); err == nil || seen < lines {
		t.Fatalf("the child ended by itself after %d lines: %v", seen, err)
	}
	return last
}

// wantAcknowledged wants what was printed to be there, or what was under way behind it, and
// the life before to be fenced.
func wantAcknowledged(t *testing.T, path string, last, former map[string]acknowledged) {
	t.Helper()
	store := newBolt(t, path)
	defer store.Close()
	y := newYard(t, store)
	g := processor.Group{Hub: "orders", Group: "billing"}
	checkpoints, err1 := y.Checkpoints(t.Context(), g)
	leases, err2 := y.Leases(t.Context(), g)
	testkit.Must(t, errors.Join(err1, err2))
	epochs := map[string]int64{}
	for _, l := range leases {
		epochs[l.Partition] = l.Epoch
	}
	for _, c := range checkpoints {
		a, b := last[c.Partition], former[c.Partition]
		if a.epoch > 0 && c.Sequence != a.sequence && c.Sequence != a.sequence+1 {
			t.Errorf("partition %s is at %d, %d was acknowledged", c.Partition, c.Sequence, a.sequence)
		}
		if epochs[c.Partition] < a.epoch {
			t.Errorf("partition %s has epoch %d, %d was acknowledged", c.Partition, epochs[c.Partition], a.epoch)
		}
		if b.epoch == 0 || a.epoch == 0 {
			continue
		}
		old := processor.Lease{Partition: c.Partition, Owner: owner(b.epoch), Epoch: b.epoch}
		for _, version := range []processor.Version{b.version, c.Version} {
			c.Version = version
			testkit.ErrorIs(t, testkit.Err(y.Save(t.Context(), g, old, c)), processor.ErrFenced,
				"the owner of the life before saved partition %s", c.Partition)
		}
	}
}

func owner(epoch int64) string { return "life-" + strconv.FormatInt(epoch, 10) }

// workUntilKilled is what the child does.
func workUntilKilled(path string) error {
	store, err := bolt.Open(bolt.Config{Path: path, Log: testkit.Quiet()})
	if err != nil {
		return err
	}
	engine, err := disk.Open(disk.Config{FS: vfs.NewMem(), Log: testkit.Quiet()})
	if err != nil {
		return err
	}
	ctx := context.Background()
	b, err := broker.Open(ctx, broker.Config{Engine: engine, Meta: store, Log: testkit.Quiet()})
	if err != nil {
		return err
	}
	if _, err := b.EnsureHub(ctx, broker.HubConfig{Name: "orders", Partitions: crashPartitions}, []string{"billing"}); err != nil {
		return err
	}
	k, err := New(Config{Meta: store, Broker: b, Log: testkit.Quiet()})
	if err != nil {
		return err
	}
	return saveForEver(ctx, k, processor.Group{Hub: "orders", Group: "billing"})
}

func saveForEver(ctx context.Context, k *Registry, g processor.Group) error {
	epoch := int64(1)
	all := make([]processor.Lease, crashPartitions)
	for i := range all {
		all[i].Partition = strconv.Itoa(i)
	}
	had, err := k.Leases(ctx, g)
	if err != nil {
		return err
	}
	for _, l := range had {
		i, _ := strconv.Atoi(l.Partition)
		all[i], epoch = l, max(epoch, l.Epoch+1)
	}
	for i := range all {
		all[i].Owner, all[i].Epoch = owner(epoch), epoch
	}
	won, err := k.Claim(ctx, g, all)
	if err != nil || len(won) != len(all) {
		return fmt.Errorf("won %d: %w", len(won), err)
	}
	errs := make([]error, len(won))
	var workers sync.WaitGroup
	for i, l := range won {
		workers.Go(func() { errs[i] = savePartition(ctx, k, g, l) })
	}
	workers.Wait()
	return errors.Join(errs...)
}

func savePartition(ctx context.Context, k *Registry, g processor.Group, l processor.Lease) error {
	c, err := k.Begin(ctx, g, l)
	for err == nil {
		fmt.Println(c.Partition, l.Epoch, c.Sequence, c.Version)
		c.Sequence++
		c, err = k.Save(ctx, g, l, c)
	}
	return err
}

// P3: a store that loses the answers to writes that it made leads to no lost checkpoint and to
// no second owner: who does not know reads again.
func TestLostAnswers(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		store := storagetest.Entries(t)
		y := newYard(t, store)
		g := y.group(t, "orders", "billing", 1)
		losing := metatest.NewFaulty(store)
		losing.Inject(func(op metatest.Op) error { // before or after it has done what it was asked for
			if op.Kind != metatest.OpSet {
				return nil
			}
			return map[int]error{0: meta.ErrUncertain, 1: metatest.Unheard(meta.ErrUncertain)}[random.IntN(8)]
		})
		shaky, err := New(Config{Meta: losing, Broker: y.broker, Log: testkit.Quiet()})
		testkit.Must(t, err)
		saved := int64(-1)
		for epoch := int64(1); epoch < 10; epoch++ {
			l, ok := claimShaky(t, y, shaky, g, epoch)
			if !ok {
				continue
			}
			c, err := shaky.Begin(t.Context(), g, l)
			for range 10 {
				if err != nil {
					break
				}
				if c.Sequence < saved {
					t.Fatalf("seed %d: at %d after %d was acknowledged", seed, c.Sequence, saved)
				}
				saved = c.Sequence
				c.Sequence++
				c, err = shaky.Save(t.Context(), g, l, c)
			}
			if err != nil && !errors.Is(err, meta.ErrUncertain) {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}

// claimShaky takes the partition and, if the answer is lost, looks whether it has.
func claimShaky(t *testing.T, y *yard, shaky *Registry, g processor.Group, epoch int64) (processor.Lease, bool) {
	t.Helper()
	l := processor.Lease{Partition: "0", Owner: owner(epoch), Epoch: epoch}
	look := func() (had processor.Lease) {
		leases, err := y.Leases(t.Context(), g)
		testkit.Must(t, err)
		for _, had = range leases {
		}
		return had
	}
	l.Version = look().Version
	won, err := shaky.Claim(t.Context(), g, []processor.Lease{l})
	if err == nil {
		return won[0], true
	}
	had := look()
	return had, had.Owner == l.Owner
}
