package bolt

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

const (
	sectorBytes = 512
	cutCommits  = 60
)

// A power cut at any moment of a commit leaves the state before it or the one after
// it, and after it once its last sync was done. The files that a cut could leave are
// made from the file before and after each commit, by what bbolt does in between: it
// lengthens the file and syncs; writes the changed pages and syncs; writes one meta
// page and syncs. Until a sync has ended, any of the sectors written may be on disk
// and any may not. TestAFailedSyncIsHonoured shows that the syncs are there.
func TestAPowerCutLeavesTheStateBeforeOrAfterACommit(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	path, imagePath := storePath(t), storePath(t)
	s := openStore(t, Config{Path: path, NoSync: true, ReserveBytes: 64 << 10})
	entriesBucket := make(map[string]meta.Entry)
	pageBytes := s.db.Info().PageSize

	for commit := range cutCommits {
		before, stateBefore := readFile(t, path), maps.Clone(entriesBucket)
		changeSome(t, s, random, entriesBucket)
		after := readFile(t, path)
		cut := &powerCut{random: random, pageBytes: pageBytes, before: before, after: after}
		check := func(moment string, image []byte, states ...map[string]meta.Entry) {
			t.Helper()
			wantImage(t, fmt.Sprintf("commit %d, cut %s", commit, moment), imagePath, image, states...)
		}
		check("before the file grew", before, stateBefore)
		for range 3 {
			check("while pages were written", cut.somePages(), stateBefore)
		}
		check("before the meta page was written", cut.allPages(), stateBefore)
		check("while the meta page was written", cut.tornMeta(), stateBefore, entriesBucket)
		check("after the last sync", after, entriesBucket)
	}
}

// changeSome commits a few changes at once: small and large values, deletions.
func changeSome(t *testing.T, s *Store, random *rand.Rand, entriesBucket map[string]meta.Entry) {
	t.Helper()
	var changes []*change
	for range 1 + random.IntN(6) {
		key := fmt.Sprintf("k/%02d", random.IntN(40))
		if slices.ContainsFunc(changes, func(c *change) bool { return c.key == key }) {
			continue
		}
		c := &change{key: key, expected: entriesBucket[key].Revision}
		if c.expected == 0 || random.IntN(4) > 0 {
			value := make([]byte, random.IntN(300))
			if random.IntN(5) == 0 {
				value = make([]byte, random.IntN(12000)) // several pages
			}
			for i := range value {
				value[i] = byte(random.Uint32())
			}
			c.record = newRecord(value)
		}
		changes = append(changes, c)
	}
	s.commit.Lock()
	s.commitChanges(changes)
	s.commit.Unlock()
	for _, c := range changes {
		testkit.Must(t, c.err)
		if delete(entriesBucket, c.key); c.record != nil {
			entriesBucket[c.key] = c.reported().Entry
		}
	}
}

// powerCut makes the files that a cut during one commit could leave.
type powerCut struct {
	random        *rand.Rand
	pageBytes     int
	before, after []byte
}

// grown is the file before the commit, at its length after it.
func (p *powerCut) grown() []byte {
	image := make([]byte, len(p.after))
	copy(image, p.before)
	return image
}

// somePages has any of the sectors of the changed pages, and the old meta pages.
func (p *powerCut) somePages() []byte {
	image := p.grown()
	for at := 2 * p.pageBytes; at < len(image); at += sectorBytes {
		if p.random.IntN(2) == 0 {
			copy(image[at:min(at+sectorBytes, len(image))], p.after[at:])
		}
	}
	return image
}

// allPages has all changed pages and the old meta pages.
func (p *powerCut) allPages() []byte {
	image := p.grown()
	copy(image[2*p.pageBytes:], p.after[2*p.pageBytes:])
	return image
}

// tornMeta has all changed pages and the beginning of the new meta page. No disk tears
// within a sector; bbolt's checksum must see it all the same.
func (p *powerCut) tornMeta() []byte {
	image := p.allPages()
	for id := range 2 {
		begin := id * p.pageBytes
		old, changed := image[begin:begin+p.pageBytes], p.after[begin:begin+p.pageBytes]
		if !bytes.Equal(old, changed) {
			copy(old, changed[:p.random.IntN(pageHeader+metaBytes+8)])
		}
	}
	return image
}

// wantImage checks that a file is sound and holds exactly one of the states.
func wantImage(t *testing.T, name, path string, image []byte, states ...map[string]meta.Entry) {
	t.Helper()
	testkit.Must(t, os.WriteFile(path, image, 0o600))
	testkit.Must(t, Check(path), "%s", name)
	s := openStore(t, Config{Path: path, NoSync: true, ReserveBytes: 64 << 10})
	defer func() { _ = s.Close() }()
	entries, err := s.List(t.Context(), "")
	testkit.Must(t, err, "%s", name)
	if !slices.ContainsFunc(states, func(state map[string]meta.Entry) bool { return holds(entries, state) }) {
		t.Fatalf("%s: the %d entries are those of none of the %d states allowed", name, len(entries), len(states))
	}
}

func holds(entries []meta.Entry, state map[string]meta.Entry) bool {
	for _, entry := range entries {
		if want := state[entry.Key]; want.Revision != entry.Revision || !bytes.Equal(want.Value, entry.Value) {
			return false
		}
	}
	return len(entries) == len(state)
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	content := testkit.Value(os.ReadFile(path))(t)
	return content
}

// A power cut while a store is created leaves a whole store or none; what is left of
// the attempt is cleared away.
func TestAPowerCutDuringCreationLeavesNoHalfStore(t *testing.T) {
	path := storePath(t)
	leftover := path + newSuffix + "123"
	testkit.Must(t, os.WriteFile(leftover, make([]byte, 100), 0o600))
	s := openStore(t, Config{Path: path})
	set(t, s, "a", 0, "one")
	if _, err := os.Stat(leftover); !os.IsNotExist(err) {
		t.Errorf("what a cut has left is still there: %v", err)
	}
	testkit.Check(t, s.db.View(func(tx *bbolt.Tx) error { return checkFormat(tx) }))
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v; it holds keys and is for its owner only", info.Mode(), err)
	}
}
