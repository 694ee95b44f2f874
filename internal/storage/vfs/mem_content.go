package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

const (
	// sectorBytes is what a disk writes at once.
	sectorBytes = 512
	// pageBytes is the grain in which contents are kept; a multiple of sectorBytes.
	pageBytes = 4096
	// maxPast bounds what is remembered of one sector, and of a file's lengths,
	// between two syncs. The oldest and the newest are always among it.
	maxPast = 8
)

type page [pageBytes]byte

// content is a file's bytes, as programs see them now and as the disk may hold them.
// The system writes sectors back whenever and in whatever order it likes, so between
// two syncs the disk may hold any past version of each sector.
//
// Invariants: a page that is absent is all zeros, and so is everything behind
// length. What is not in dirty is on the disk as it is in pages.
type content struct {
	pages  map[int64]*page
	length int64
	// dirty holds the sectors changed since the last sync, and doubtful ones.
	dirty map[int64]*sector
	// lengths holds the lengths since the last sync, from the durable one to length.
	lengths []int64
}

// sector is the past of one dirty sector; its present is in the page.
type sector struct {
	// versions are what it held before each change, beginning with the durable one.
	// nil means zeros.
	versions [][]byte
	// doubtful: a sync of it failed. The system then takes the sector for clean, so
	// no later sync writes it until it is changed again.
	doubtful bool
}

func newContent() content {
	return content{
		pages:   make(map[int64]*page),
		dirty:   make(map[int64]*sector),
		lengths: []int64{0},
	}
}

// readAt fills p with what there is at the offset and tells how much that is.
func (c *content) readAt(p []byte, offset int64) int {
	if offset >= c.length {
		return 0
	}
	p = p[:min(int64(len(p)), c.length-offset)]
	for done := 0; done < len(p); {
		at := offset + int64(done)
		part := p[done:min(len(p), done+int(pageBytes-at%pageBytes))]
		if pg := c.pages[at/pageBytes]; pg != nil {
			copy(part, pg[at%pageBytes:])
		} else {
			clear(part)
		}
		done += len(part)
	}
	return len(p)
}

// writeAt changes bytes and remembers what they were.
func (c *content) writeAt(p []byte, offset int64) {
	if len(p) == 0 {
		return
	}
	end := offset + int64(len(p))
	for s := offset / sectorBytes; s*sectorBytes < end; s++ {
		c.remember(s)
	}
	c.put(p, offset)
	if end > c.length {
		c.setLength(end)
	}
}

// truncate changes the length; what is cut off reads as zeros if it comes back.
func (c *content) truncate(length int64) {
	if length < c.length {
		for n := range c.pages {
			first := max(length, n*pageBytes)
			for at := first; at < (n+1)*pageBytes; at = (at/sectorBytes + 1) * sectorBytes {
				c.remember(at / sectorBytes)
			}
		}
		c.zeroFrom(length)
	}
	if length != c.length {
		c.setLength(length)
	}
}

// sync makes all durable but what a failed sync has put in doubt.
func (c *content) sync() {
	maps.DeleteFunc(c.dirty, func(_ int64, s *sector) bool { return !s.doubtful })
	c.lengths = append(c.lengths[:0], c.length)
}

// failSync puts all that is not durable in doubt.
func (c *content) failSync() {
	for _, s := range c.dirty {
		s.doubtful = true
	}
}

// flip inverts bits of one byte, in every version that it has.
func (c *content) flip(offset int64, bits byte) {
	at := offset % sectorBytes
	if past := c.dirty[offset/sectorBytes]; past != nil {
		for i, v := range past.versions {
			if v == nil {
				v = make([]byte, sectorBytes)
				past.versions[i] = v
			}
			v[at] ^= bits
		}
	}
	c.pageFor(offset)[offset%pageBytes] ^= bits
}

// cut gives what may be found after a power loss, as a content that is all durable.
func (c *content) cut(rnd *rand.Rand) content {
	after := newContent()
	for n, pg := range c.pages {
		copied := *pg
		after.pages[n] = &copied
	}
	after.length = c.cutLength(rnd)
	c.cutSectors(rnd, &after)
	after.zeroFrom(after.length)
	after.lengths[0] = after.length
	return after
}

// cutLength chooses a length: the durable one, the newest, or one on the way. A growing file may be
// found at any length in between, for its pages are written one by one.
func (c *content) cutLength(rnd *rand.Rand) int64 {
	switch rnd.IntN(3) {
	case 0:
		return c.lengths[0]
	case 1:
		return c.length
	}
	i := rnd.IntN(len(c.lengths))
	length := c.lengths[i]
	if i > 0 && c.lengths[i-1] < length {
		length -= rnd.Int64N(length - c.lengths[i-1])
	}
	return length
}

// cutSectors chooses a version of each dirty sector. The last one to survive may be
// torn: its first bytes new, the rest old.
func (c *content) cutSectors(rnd *rand.Rand, after *content) {
	fate := chooseFate(rnd)
	var torn *sector
	var tornAt int64
	for _, n := range slices.Sorted(maps.Keys(c.dirty)) {
		past := c.dirty[n]
		if fate.survives(rnd) {
			torn, tornAt = past, n
			continue // the page holds the newest already
		}
		after.put(zeroed(past.pick(rnd, fate)), n*sectorBytes)
	}
	if torn != nil && fate.mixed && rnd.IntN(2) == 0 {
		kept := 1 + rnd.IntN(sectorBytes-1)
		old := zeroed(torn.pick(rnd, fate))
		after.put(old[kept:], tornAt*sectorBytes+int64(kept))
	}
}

// pick chooses an old version, the durable one most often.
func (s *sector) pick(rnd *rand.Rand, f fate) []byte {
	if !f.mixed || rnd.IntN(2) == 0 {
		return s.versions[0]
	}
	return s.versions[rnd.IntN(len(s.versions))]
}

func zeroed(version []byte) []byte {
	if version == nil {
		return make([]byte, sectorBytes)
	}
	return version
}

// remember keeps the sector as it is before a change.
func (c *content) remember(n int64) {
	past := c.dirty[n]
	if past == nil {
		past = &sector{}
		c.dirty[n] = past
	}
	past.doubtful = false
	if len(past.versions) == maxPast {
		past.versions = slices.Delete(past.versions, 1, 2)
	}
	var version []byte
	if pg := c.pages[n*sectorBytes/pageBytes]; pg != nil {
		at := n * sectorBytes % pageBytes
		version = slices.Clone(pg[at : at+sectorBytes])
	}
	past.versions = append(past.versions, version)
}

func (c *content) setLength(length int64) {
	if len(c.lengths) == maxPast {
		c.lengths = slices.Delete(c.lengths, 1, 2)
	}
	c.length = length
	c.lengths = append(c.lengths, length)
}

// put copies bytes into the pages and does nothing else.
func (c *content) put(p []byte, offset int64) {
	for len(p) > 0 {
		n := copy(c.pageFor(offset)[offset%pageBytes:], p)
		p, offset = p[n:], offset+int64(n)
	}
}

func (c *content) pageFor(offset int64) *page {
	n := offset / pageBytes
	if c.pages[n] == nil {
		c.pages[n] = new(page)
	}
	return c.pages[n]
}

// zeroFrom restores the invariant behind a length.
func (c *content) zeroFrom(length int64) {
	for n, pg := range c.pages {
		switch {
		case n*pageBytes >= length:
			delete(c.pages, n)
		case (n+1)*pageBytes > length:
			clear(pg[length-n*pageBytes:])
		}
	}
}
