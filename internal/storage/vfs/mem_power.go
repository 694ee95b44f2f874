package vfs

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
)

// fate is how much of what was not synced survives a power cut. If each part had an
// even chance, large writes would never be found whole nor wholly lost.
type fate struct {
	chance float64
	mixed  bool
}

func chooseFate(rnd *rand.Rand) fate {
	switch rnd.IntN(4) {
	case 0:
		return fate{chance: 0}
	case 1:
		return fate{chance: 1}
	default:
		return fate{chance: rnd.Float64(), mixed: true}
	}
}

func (f fate) survives(rnd *rand.Rand) bool { return rnd.Float64() < f.chance }

// CutPower ends m, whose handles and methods answer ErrPowerLost from then on, and gives what is
// found when the power is back, at rnd's choice. What was synced is there. Of the rest each
// 512-byte sector, each file's length and each change of names is new, old or something in between,
// as explained at Mem. May be called again, for another outcome of the same cut.
func (m *Mem) CutPower(rnd *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost = true

	after := m.successor()
	folders := make(map[*node]map[string]*node)
	for l, n := range m.names.cut(rnd) {
		if folders[l.dir] == nil {
			folders[l.dir] = make(map[string]*node)
		}
		folders[l.dir][l.name] = n
	}
	after.rebuild(rnd, folders, m.root, after.root)
	return after
}

// rebuild copies what is in the old folder, as it survived, into the new one. It
// goes by name so that the same rnd always gives the same outcome.
func (m *Mem) rebuild(rnd *rand.Rand, folders map[*node]map[string]*node, from, to *node) {
	for _, name := range slices.Sorted(maps.Keys(folders[from])) {
		old := folders[from][name]
		fresh := newDir()
		if !old.isDir() {
			fresh = &node{content: old.content.cut(rnd)}
			m.used += fresh.content.length
		}
		to.children[name] = fresh
		m.names.durable[link{to, name}] = fresh
		if old.isDir() {
			m.rebuild(rnd, folders, old, fresh)
		}
	}
}

// CrashProcess ends m as CutPower does, but the machine stays up: the file system
// returned holds all that was written, synced or not, and what was not synced is
// still at the mercy of a later CutPower. Only locks and open files are gone.
func (m *Mem) CrashProcess() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost = true

	after := m.successor()
	after.root, m.root = m.root, newDir()
	after.names, m.names = m.names, newNames()
	after.closeAll(after.root)
	return after
}

// closeAll forgets the handles of the ended Mem and counts the room anew, without
// the files that only those handles kept.
func (m *Mem) closeAll(n *node) {
	n.handles = 0
	m.used += n.content.length
	for _, child := range n.children {
		m.closeAll(child)
	}
}

// FailAfter lets n more mutating operations succeed. The next one is when the power
// goes: it fails with ErrPowerLost before it takes effect, except that a WriteAt may
// have written a beginning of its bytes, and everything after it fails too, reads
// included. Then CutPower tells what is left. A negative n never fails.
//
// Mutating are WriteAt, Truncate, Sync, Create, Rename, Remove, SyncDir, a Lock that
// makes its file, each folder that MkdirAll makes, and each file and folder that
// RemoveAll removes; with or without success.
func (m *Mem) FailAfter(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.budget = n
}

// Ops counts the mutating operations so far, the one that failed for want of power not included.
func (m *Mem) Ops() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ops
}

// SetRand sets the choice of how much the WriteAt writes that FailAfter ends. Without
// it, it is the same choices for each Mem.
func (m *Mem) SetRand(rnd *rand.Rand) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rnd = rnd
}

// SetCapacity bounds the sum of all file lengths. What would exceed it fails with
// syscall.ENOSPC, a WriteAt after writing what fits. Zero means no bound.
func (m *Mem) SetCapacity(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = bytes
}

// Corrupt inverts bits of one byte of a file, on the disk and in memory.
func (m *Mem) Corrupt(name string, offset int64, flip byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.fileLocked("corrupt", name)
	if err != nil {
		return err
	}
	if offset < 0 || offset >= n.content.length {
		return pathError("corrupt", name, fmt.Errorf("offset %d of %d bytes: %w", offset, n.content.length, fs.ErrInvalid))
	}
	n.content.flip(offset, flip)
	return nil
}

// successor is an empty Mem of the same settings.
func (m *Mem) successor() *Mem {
	after := NewMem()
	after.rnd = m.rnd
	after.capacity = m.capacity
	return after
}

// readyLocked guards operations that change nothing.
func (m *Mem) readyLocked() error {
	if m.lost {
		return ErrPowerLost
	}
	return nil
}

// stepLocked guards and counts operations that change something.
func (m *Mem) stepLocked() error {
	if m.lost {
		return ErrPowerLost
	}
	if m.budget == 0 {
		m.lost = true
		return ErrPowerLost
	}
	if m.budget > 0 {
		m.budget--
	}
	m.ops++
	return nil
}
