package storetest

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"

	"github.com/eventyard/eventyard/processor"
)

// storm lets instances do everything at once to a few partitions: acquire, renew, begin, save,
// release, and count in an entry. Afterwards the books have to balance.
func storm(f *fixture) {
	books := &books{
		acquired: map[string]map[int64]string{}, begun: map[string]int64{},
		saves: map[version]processor.Version{},
	}
	const seed = 7
	f.race(racers, func(i int, s processor.Store) {
		w := &stormer{
			fixture: f, books: books, store: s, name: "instance-" + partition(i),
			rand: rand.New(rand.NewPCG(seed, uint64(i))), mine: map[string]*held{},
		}
		for range f.rounds(60) {
			w.step()
		}
	})
	books.check(f)
}

// stormPartitions are few, so that there is always somebody in the way.
const stormPartitions = 3

// books is what all instances know to have been done.
type books struct {
	mu       sync.Mutex
	acquired map[string]map[int64]string   // by partition and epoch: who
	begun    map[string]int64              // the highest epoch whose Begin has returned
	saves    map[version]processor.Version // from which version to which
	counted  int
}

// version is that of one partition's checkpoint: those of two may be alike.
type version struct {
	partition string
	processor.Version
}

func (b *books) check(f *fixture) {
	entries, err := f.store.Entries(f.ctx, f.group, "")
	if err != nil || (b.counted > 0 && len(entries) != 1) {
		f.Fatalf("the counter reads %v, %v", entries, err)
	}
	if b.counted > 0 && string(entries[0].Value) != strconv.Itoa(b.counted) {
		f.Errorf("the counter is %s after %d successful additions", entries[0].Value, b.counted)
	}
	for p, l := range f.leases() {
		for epoch := range b.acquired[p] {
			if epoch > l.Epoch {
				f.Errorf("partition %s is at epoch %d, but %d was won", p, l.Epoch, epoch)
			}
		}
	}
}

// held is a partition that an instance believes to own.
type held struct {
	lease processor.Lease
	c     processor.Checkpoint
	begun bool
}

// stormer is one instance.
type stormer struct {
	*fixture
	books *books
	store processor.Store
	name  string
	rand  *rand.Rand
	mine  map[string]*held
}

func (w *stormer) step() {
	p := partition(w.rand.IntN(stormPartitions))
	had := w.mine[p]
	switch n := w.rand.IntN(10); {
	case n == 0:
		w.count()
	case had == nil || n == 1:
		w.acquire(p)
	case n == 2:
		w.write(had, "")
		delete(w.mine, p)
	case n < 5:
		w.write(had, w.name)
	case !had.begun:
		w.begin(had)
	default:
		w.save(had)
	}
}

// acquire takes the partition in the state it is in.
func (w *stormer) acquire(p string) {
	leases, err := w.store.Leases(w.ctx, w.group)
	if err != nil {
		w.Errorf("leases: %v", err)
		return
	}
	l := lease(p, w.name, 1)
	for _, seen := range leases {
		if seen.Partition == p {
			l.Version, l.Epoch = seen.Version, seen.Epoch+1
		}
	}
	won, err := w.store.Claim(w.ctx, w.group, []processor.Lease{l})
	if err != nil {
		w.Errorf("claim: %v", err)
	}
	if len(won) == 0 {
		return
	}
	w.mine[p] = &held{lease: won[0]}
	w.books.mu.Lock()
	defer w.books.mu.Unlock()
	if w.books.acquired[p] == nil {
		w.books.acquired[p] = map[int64]string{}
	}
	if other, twice := w.books.acquired[p][l.Epoch]; twice {
		w.Errorf("epoch %d of partition %s was won by %s and by %s", l.Epoch, p, other, w.name)
	}
	w.books.acquired[p][l.Epoch] = w.name
}

// write renews the lease, or releases it for an owner "".
func (w *stormer) write(had *held, owner string) {
	l := had.lease
	l.Owner = owner
	won, err := w.store.Claim(w.ctx, w.group, []processor.Lease{l})
	if err != nil {
		w.Errorf("claim: %v", err)
	}
	if len(won) == 0 {
		delete(w.mine, l.Partition)
		return
	}
	had.lease = won[0]
}

func (w *stormer) begin(had *held) {
	c, err := w.store.Begin(w.ctx, w.group, had.lease)
	if errors.Is(err, processor.ErrFenced) {
		delete(w.mine, had.lease.Partition)
		return
	}
	if err != nil {
		w.Errorf("begin: %v", err)
		return
	}
	had.c, had.begun = c, true
	w.books.mu.Lock()
	defer w.books.mu.Unlock()
	w.books.begun[had.lease.Partition] = max(w.books.begun[had.lease.Partition], had.lease.Epoch)
}

// save must not succeed once a higher epoch has begun, nor twice from one version.
func (w *stormer) save(had *held) {
	w.books.mu.Lock()
	highest := w.books.begun[had.lease.Partition]
	w.books.mu.Unlock()
	c := had.c
	c.Sequence++
	saved, err := w.store.Save(w.ctx, w.group, had.lease, c)
	unfenced := w.opt.FirstSaveUnfenced && errors.Is(err, processor.ErrConflict) // by a former owner's first
	if errors.Is(err, processor.ErrFenced) || unfenced {
		delete(w.mine, had.lease.Partition)
		return
	}
	if err != nil { // no operator moves anything here
		w.Errorf("save: %v, want ErrFenced if anything", err)
		return
	}
	if highest > had.lease.Epoch && (!w.opt.FirstSaveUnfenced || c.Version != "") {
		w.Errorf("partition %s was saved under epoch %d after %d had begun", c.Partition, had.lease.Epoch, highest)
	}
	had.c = saved
	w.books.mu.Lock()
	defer w.books.mu.Unlock()
	from := version{c.Partition, c.Version}
	if other, twice := w.books.saves[from]; twice {
		w.Errorf("two saves replaced version %q: %q and %q", c.Version, other, saved.Version)
	}
	w.books.saves[from] = saved.Version
}

// count adds one to a shared entry; it may lose, but not lose another's addition.
func (w *stormer) count() {
	entries, err := w.store.Entries(w.ctx, w.group, "")
	if err != nil {
		w.Errorf("entries: %v", err)
		return
	}
	entry := processor.Entry{Key: "count"}
	if len(entries) == 1 {
		entry = entries[0]
	}
	n, _ := strconv.Atoi(string(entry.Value)) // zero at first
	entry.Value = []byte(strconv.Itoa(n + 1))
	_, err = w.store.Put(w.ctx, w.group, entry)
	switch {
	case err == nil:
		w.books.mu.Lock()
		defer w.books.mu.Unlock()
		w.books.counted++
	case !errors.Is(err, processor.ErrConflict):
		w.Errorf("put: %v", err)
	}
}
