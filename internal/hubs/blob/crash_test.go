package blob

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

var (
	crashSeeds = flag.Int("crash.seeds", 80, "how many seeds the power-cut test runs")
	crashSeed  = flag.Uint64("crash.seed", 0, "run this one seed only")
)

// What was acknowledged survives a power cut between any two operations of the disk or of
// the meta store; what was not is there whole or not at all; and no file is left of it.
func TestPowerCuts(t *testing.T) {
	if *crashSeed != 0 {
		powerCuts(t, *crashSeed)
		return
	}
	for seed := 1; seed <= *crashSeeds && !t.Failed(); seed++ {
		powerCuts(t, uint64(seed))
	}
}

// mortal has a meta store lose its power with the disk, after some more changes, or when the disk
// does; negative: only then. A change under way then is made or not.
func (m *crashModel) mortal(store *metatest.Faulty, left int) {
	dead := false
	store.Inject(func(op metatest.Op) error {
		if !op.Changes() {
			return nil
		}
		_, err := m.mem.List(".") // the disk may have gone first
		switch left--; {
		case dead || err != nil:
		case left != -1:
			return nil
		default:
			m.mem.FailAfter(0)
			if m.rnd.IntN(2) == 0 {
				dead = true
				return metatest.After(func(error) error { return meta.ErrUncertain })
			}
		}
		dead = true
		return meta.ErrUncertain
	})
}

// crashModel is what a store owes, by name: the bodies that a blob may have, nil for none.
type crashModel struct {
	t       *testing.T
	seed    uint64
	rnd     *rand.Rand
	entries meta.Store
	mem     *vfs.Mem
	may     map[string][][]byte
	// parts are the acknowledged blocks that wait to be committed, or nil where that is not known.
	parts map[string]map[string][]byte
	made  uint64
}

func powerCuts(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	m := &crashModel{
		t: t, seed: seed, rnd: rnd, entries: metatest.NewMemory(), mem: vfs.NewMem(), may: map[string][][]byte{},
		parts: map[string]map[string][]byte{},
	}
	m.mem.SetRand(rand.New(rand.NewPCG(seed, 2)))
	for range 2 + rnd.IntN(3) {
		m.live()
		if t.Failed() {
			t.Logf("run again with: go test ./internal/hubs/blob -run TestPowerCuts -crash.seed=%d", seed)
			return
		}
	}
}

// live is one life: open, check, work until the power goes.
func (m *crashModel) live() {
	store := metatest.NewFaulty(m.entries)
	m.mortal(store, -1)
	s, err := Open(Config{Meta: store, FS: m.mem, Log: testkit.Quiet()})
	testkit.Must(m.t, err)
	if _, err := s.CreateContainer(m.t.Context(), box, nil); err != nil && !errors.Is(err, ErrContainerExists) {
		m.t.Fatal(err)
	}
	m.reconcile(s)
	testkit.Must(m.t, s.Sweep(m.t.Context()))
	m.reconcile(s)
	m.wantNoStrays(s)
	if m.rnd.IntN(2) == 0 {
		m.mem.FailAfter(m.rnd.IntN(120))
	} else {
		m.mortal(store, m.rnd.IntN(30))
	}
	for range 5 + m.rnd.IntN(40) {
		m.step(s)
		if m.rnd.IntN(12) == 0 {
			_ = s.Sweep(m.t.Context())
		}
	}
	m.mem = m.mem.CutPower(m.rnd)
}

// reconcile checks that each blob is what it may be, and settles on that.
func (m *crashModel) reconcile(s *Service) {
	m.t.Helper()
	for name, may := range m.may {
		got, err := readAll(m.t.Context(), s, in(name))
		if errors.Is(err, ErrBlobNotFound) {
			got, err = nil, nil
		}
		testkit.Must(m.t, err)
		fits := false
		for _, one := range may {
			fits = fits || (one == nil) == (got == nil) && bytes.Equal(one, got)
		}
		if !fits {
			m.t.Errorf("%s is something else than the %d states allowed", name, len(may))
		}
		m.may[name] = [][]byte{got}
	}
}

// wantNoStrays checks that a sweep has left no file but those of blobs and blocks.
func (m *crashModel) wantNoStrays(s *Service) {
	named, err := s.sweepEntries(m.t.Context())
	testkit.Must(m.t, err)
	entries, err := m.mem.List(".")
	testkit.Must(m.t, err)
	if len(entries) != len(named) {
		m.t.Errorf("there are %d files, and entries name %d", len(entries), len(named))
	}
}

func (m *crashModel) step(s *Service) {
	name := fmt.Sprint("b", m.rnd.IntN(3))
	if m.may[name] == nil {
		m.may[name] = [][]byte{nil}
	}
	m.made++
	body := noise(m.made, 1+m.rnd.IntN(2*InlineBytes))
	switch m.rnd.IntN(8) {
	case 0:
		m.settle(name, nil, s.Delete(m.t.Context(), in(name), Conditions{}))
	case 1, 2:
		m.upload(s, name, body)
	case 3:
		m.commit(s, name)
	default:
		_, err := s.Put(m.t.Context(), in(name), bytes.NewReader(body), Content{}, Conditions{})
		m.settle(name, body, err)
	}
}

// settle notes what became of a write of a body, which forgets the blocks.
func (m *crashModel) settle(name string, body []byte, err error) {
	switch {
	case err == nil:
		m.may[name], m.parts[name] = [][]byte{body}, map[string][]byte{}
	case errors.Is(err, ErrBlobNotFound), errors.Is(err, ErrBlockList):
	default:
		m.may[name], m.parts[name] = append(m.may[name], body), nil
	}
}

func (m *crashModel) upload(s *Service, name string, body []byte) {
	id := fmt.Sprint("block-", m.rnd.IntN(3))
	_, err := s.PutBlock(m.t.Context(), in(name), id, bytes.NewReader(body), Conditions{})
	switch {
	case m.parts[name] == nil:
	case err == nil:
		m.parts[name][id] = body
	default:
		m.parts[name] = nil // the block is the old one or the new one
	}
}

// commit commits the blocks that are known to be there.
func (m *crashModel) commit(s *Service, name string) {
	var list []BlockName
	body := []byte{}
	for i := range 3 {
		id := fmt.Sprint("block-", i)
		if part, ok := m.parts[name][id]; ok {
			list, body = append(list, BlockName{id, Uncommitted}), append(body, part...)
		}
	}
	if len(list) == 0 {
		return
	}
	_, err := s.Commit(m.t.Context(), in(name), list, Content{}, Conditions{})
	if errors.Is(err, ErrBlockList) {
		m.t.Errorf("a block of %s that was acknowledged is gone", name)
	}
	m.settle(name, body, err)
}
