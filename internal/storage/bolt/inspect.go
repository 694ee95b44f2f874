package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"slices"

	"go.etcd.io/bbolt"
)

// bbolt's file format, version 2: all numbers in the machine's byte order. A page
// begins with its id (8 bytes), type (2), element count (2) and the number of pages
// that continue it (4); a tree page goes on with 16 bytes per element, then the keys
// and values, which each element finds relative to its own place.
const (
	pageHeader    = 16
	elementHeader = 16
	bucketHeader  = 16 // before an inline bucket's page: root page, sequence

	typeBranch   = 1
	typeLeaf     = 2
	typeFreelist = 16

	metaMagic   = 0xED0CDAED
	metaVersion = 2
	metaSum     = 56 // where a meta's checksum is, and what it covers ends
	metaBytes   = metaSum + 8

	noFreelist = ^uint64(0)
)

// openToRead opens the file without touching more of it than its meta pages.
func openToRead(path string) (*database, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 { // bbolt would try to fill it
		return nil, fmt.Errorf("%w: the file is empty", ErrCorrupt)
	}
	return openBolt(path, bbolt.Options{ReadOnly: true})
}

// inspect looks at the structure of the file.
func inspect(db *database) error {
	info, err := db.file.Stat()
	if err != nil {
		return err
	}
	in := &inspector{file: db.file, pageBytes: uint64(db.Info().PageSize), fileBytes: uint64(info.Size())}
	m, err := in.meta()
	if err != nil {
		return err
	}
	in.pages = m.pages
	in.seen = make([]bool, m.pages) // as many as the file has room for, meta saw to that
	if m.freelist != noFreelist {
		if err := in.freelist(m.freelist); err != nil {
			return err
		}
	}
	return in.tree(m.root, 0, nil, nil)
}

// inspector walks all pages in use, each once.
type inspector struct {
	file        io.ReaderAt
	pageBytes   uint64
	fileBytes   uint64
	pages       uint64 // page ids are below this
	seen        []bool // by page id
	pageBuffers []*pageBuffer
}

// pageBuffer has room for the page that the walk is at in one depth of the tree. Pages there
// follow each other on it, so that a large file costs no more memory than a small one.
type pageBuffer struct {
	bytes    []byte
	elements []element
}

// pageBuffer gives the room of a depth, 0 for the root.
func (in *inspector) pageBuffer(depth int) *pageBuffer {
	if depth == len(in.pageBuffers) {
		in.pageBuffers = append(in.pageBuffers, &pageBuffer{bytes: make([]byte, in.pageBytes)})
	}
	return in.pageBuffers[depth]
}

// metaPage is what a meta page says of the rest.
type metaPage struct{ root, freelist, pages, transaction uint64 }

// meta reads both meta pages and gives the newer of those that are whole. One that is
// not is what a power cut leaves, and no damage.
func (in *inspector) meta() (metaPage, error) {
	var newest *metaPage
	for id := range uint64(2) {
		buf := make([]byte, pageHeader+metaBytes)
		if _, err := in.file.ReadAt(buf, int64(id*in.pageBytes)); err != nil && !errors.Is(err, io.EOF) {
			return metaPage{}, err
		}
		if m, ok := parseMeta(buf[pageHeader:]); ok && (newest == nil || m.transaction > newest.transaction) {
			newest = &m
		}
	}
	if newest == nil {
		return metaPage{}, fmt.Errorf("%w: neither of its two meta pages is valid", ErrCorrupt)
	}
	if newest.pages > in.fileBytes/in.pageBytes {
		return metaPage{}, fmt.Errorf("%w: the file was cut short: it has %d bytes, its %d pages of %d do not fit",
			ErrCorrupt, in.fileBytes, newest.pages, in.pageBytes)
	}
	return *newest, nil
}

func parseMeta(b []byte) (metaPage, bool) {
	order := binary.NativeEndian
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSum])
	m := metaPage{
		root:        order.Uint64(b[16:]),
		freelist:    order.Uint64(b[32:]),
		pages:       order.Uint64(b[40:]),
		transaction: order.Uint64(b[48:]),
	}
	return m, order.Uint32(b) == metaMagic && order.Uint32(b[4:]) == metaVersion && order.Uint64(b[metaSum:]) == sum.Sum64()
}

// read gives a page with all that continues it, on the page buffer given.
func (in *inspector) read(id uint64, on *pageBuffer) (page, error) {
	if id < 2 || id >= in.pages {
		return nil, in.damage(id, "it is referred to, but the pages in use are 2 to %d", in.pages-1)
	}
	p := page(on.bytes[:in.pageBytes])
	if _, err := in.file.ReadAt(p, int64(id*in.pageBytes)); err != nil {
		return nil, fmt.Errorf("read page %d: %w", id, err)
	}
	if p.id() != id {
		return nil, in.damage(id, "it says to be page %d", p.id())
	}
	more := uint64(p.overflow())
	if id+more >= in.pages {
		return nil, in.damage(id, "it says to go on for %d pages", more)
	}
	for i := id; i <= id+more; i++ {
		if in.seen[i] {
			return nil, in.damage(i, "it is referred to twice")
		}
		in.seen[i] = true
	}
	if more == 0 {
		return p, nil
	}
	on.bytes = slices.Grow(p, int(more*in.pageBytes))[:(1+more)*in.pageBytes]
	if _, err := in.file.ReadAt(on.bytes[in.pageBytes:], int64((id+1)*in.pageBytes)); err != nil {
		return nil, fmt.Errorf("read what continues page %d: %w", id, err)
	}
	return on.bytes, nil
}

// tree checks a page, so deep in the tree, and all below it. Keys are at least low and
// below high, if given.
func (in *inspector) tree(id uint64, depth int, low, high []byte) error {
	on := in.pageBuffer(depth)
	p, err := in.read(id, on)
	if err != nil {
		return err
	}
	if p.kind() != typeBranch && p.kind() != typeLeaf || p.kind() == typeBranch && p.count() == 0 {
		return in.damage(id, "it is no tree page: type %d with %d elements", p.kind(), p.count())
	}
	elements, why := p.elements(on.elements)
	if why == "" {
		why = orderFault(elements, low, high)
	}
	if why != "" {
		return in.damage(id, "%s", why)
	}
	on.elements = elements
	for i, e := range elements {
		if p.kind() == typeLeaf {
			err = in.bucket(id, depth, e)
		} else {
			below := high
			if i+1 < len(elements) {
				below = elements[i+1].key
			}
			err = in.tree(e.child, depth+1, e.key, below)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bucket checks what is inside an element that is a bucket; a plain value has no form.
func (in *inspector) bucket(id uint64, depth int, e element) error {
	if !e.isBucket {
		return nil
	}
	if len(e.value) < bucketHeader {
		return in.damage(id, "bucket %q has %d bytes", e.key, len(e.value))
	}
	if root := binary.NativeEndian.Uint64(e.value); root != 0 {
		return in.tree(root, depth+1, nil, nil)
	}
	inline := page(e.value[bucketHeader:])
	if len(inline) < pageHeader || inline.id() != 0 || inline.kind() != typeLeaf {
		return in.damage(id, "bucket %q holds no page", e.key)
	}
	elements, why := inline.elements(nil)
	if why == "" {
		why = orderFault(elements, nil, nil)
	}
	for _, e := range elements {
		if e.isBucket {
			why = "it has a bucket in a bucket without pages"
		}
	}
	if why != "" {
		return in.damage(id, "bucket %q: %s", e.key, why)
	}
	return nil
}

// freelist checks the page of free pages, which other tools leave in the file.
func (in *inspector) freelist(id uint64) error {
	p, err := in.read(id, in.pageBuffer(0))
	if err != nil {
		return err
	}
	order := binary.NativeEndian
	ids, count := p[pageHeader:], uint64(p.count())
	if count == 0xFFFF && len(ids) >= 8 { // too many for the header: the first id is the count
		count, ids = order.Uint64(ids), ids[8:]
	}
	if p.kind() != typeFreelist || count > uint64(len(ids)/8) {
		return in.damage(id, "it is no freelist: type %d with %d elements", p.kind(), count)
	}
	for i := range count {
		free := order.Uint64(ids[8*i:])
		if free < 2 || free >= in.pages || in.seen[free] {
			return in.damage(id, "it calls page %d free", free)
		}
		in.seen[free] = true
	}
	return nil
}

func (in *inspector) damage(id uint64, why string, args ...any) error {
	return fmt.Errorf("%w: page %d at byte %d: %s", ErrCorrupt, id, id*in.pageBytes, fmt.Sprintf(why, args...))
}

// page is a page's bytes.
type page []byte

func (p page) id() uint64       { return binary.NativeEndian.Uint64(p) }
func (p page) kind() uint16     { return binary.NativeEndian.Uint16(p[8:]) }
func (p page) count() uint16    { return binary.NativeEndian.Uint16(p[10:]) }
func (p page) overflow() uint32 { return binary.NativeEndian.Uint32(p[12:]) }

// element is one entry of a tree page: a child or a key's value.
type element struct {
	key      []byte
	value    []byte // of a leaf
	isBucket bool   // of a leaf
	child    uint64 // of a branch
}

// elements takes the page apart, into the room given, or says why it cannot.
func (p page) elements(room []element) (elements []element, why string) {
	n := int(p.count())
	if pageHeader+n*elementHeader > len(p) {
		return nil, fmt.Sprintf("it has no room for its %d elements", n)
	}
	order := binary.NativeEndian
	elements = slices.Grow(room[:0], n)[:n]
	for i := range elements {
		at := pageHeader + i*elementHeader
		head := p[at : at+elementHeader]
		elements[i] = element{} // the room was another page's
		var position, keyBytes, valueBytes uint32
		if p.kind() == typeBranch {
			position, keyBytes = order.Uint32(head), order.Uint32(head[4:])
			elements[i].child = order.Uint64(head[8:])
		} else {
			elements[i].isBucket = order.Uint32(head)&1 != 0
			position, keyBytes, valueBytes = order.Uint32(head[4:]), order.Uint32(head[8:]), order.Uint32(head[12:])
		}
		begin := uint64(at) + uint64(position)
		middle := begin + uint64(keyBytes)
		end := middle + uint64(valueBytes)
		if keyBytes == 0 || end > uint64(len(p)) {
			return nil, fmt.Sprintf("element %d has its key or value outside of it", i)
		}
		elements[i].key, elements[i].value = p[begin:middle], p[middle:end]
	}
	return elements, ""
}

// orderFault says which keys are not where a search would find them, if any.
func orderFault(elements []element, low, high []byte) string {
	for i, e := range elements {
		switch {
		case i == 0 && bytes.Compare(e.key, low) < 0,
			i > 0 && bytes.Compare(e.key, elements[i-1].key) <= 0,
			high != nil && bytes.Compare(e.key, high) >= 0:
			return fmt.Sprintf("key %q of element %d is out of order", e.key, i)
		}
	}
	return ""
}
