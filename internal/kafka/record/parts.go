package record

import (
	"bytes"
	"slices"
	"sync"
	"time"
)

// A packed frame may hold hundreds of times what a reader of single events is given at once, and every part
// would have it unpacked from its beginning. So what was unpacked for a part that is not the last stays for
// the next, of the same reader or of another who is at the same frame. It is a little for all readers
// together, and goes by what is stored, byte for byte: who finds it could have unpacked it.

const (
	// maxOpenBytes is what all open frames take together. Who finds no room unpacks its frame for each part.
	maxOpenBytes = 64 << 20
	// openBusy is how long an open frame is safe from others who need room, and openIdle how long it stays
	// when nobody reads it.
	openBusy = time.Second
	openIdle = 10 * time.Second
	// maxMarks is how many places in a frame are known at which readers went on.
	maxMarks = 64
)

// openFrame is a packed frame that is given in parts.
type openFrame struct {
	raw     []byte // as it is stored
	records []byte // as they were before they were packed; not changed
	// All below is guarded by openFrames.mu.
	marks []mark // by number
	used  time.Time
}

// mark is where a record begins.
type mark struct{ number, at int }

func (f *openFrame) bytes() int { return cap(f.raw) + cap(f.records) }

// openFrames are those of all readers. Its methods may be called by many goroutines at once.
type openFrames struct {
	limit int

	mu sync.Mutex
	// All below is guarded by mu.
	all   []*openFrame
	bytes int
	// missed counts how often a packed frame was asked for that was not open.
	missed int
}

var open = &openFrames{limit: maxOpenBytes}

// find gives the records of a frame that is open, and where to begin to get to one of them. Nil: it is not.
func (o *openFrames) find(raw []byte, number int) ([]byte, mark) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.findLocked(raw)
	if f == nil {
		o.missed++
		return nil, mark{}
	}
	f.used = time.Now()
	from := mark{}
	for _, m := range f.marks {
		if m.number <= number {
			from = m
		}
	}
	return f.records, from
}

func (o *openFrames) findLocked(raw []byte) *openFrame {
	for _, f := range o.all {
		if bytes.Equal(f.raw, raw) {
			return f
		}
	}
	return nil
}

// mark notes where a reader of an open frame will go on. False: it is not open.
func (o *openFrames) mark(raw []byte, at mark) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.findLocked(raw)
	if f == nil {
		return false
	}
	if len(f.marks) == maxMarks {
		f.marks = slices.Delete(f.marks, 0, 1) // who is behind it goes through more records
	}
	after, known := slices.BinarySearchFunc(f.marks, at, func(x, y mark) int { return x.number - y.number })
	if !known {
		f.marks = slices.Insert(f.marks, after, at)
	}
	return true
}

// keep opens a frame, whose records were unpacked and are nobody else's, if there is room.
func (o *openFrames) keep(raw, records []byte) bool {
	f := &openFrame{raw: bytes.Clone(raw), records: records, used: time.Now()}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.makeRoomLocked(f.bytes()) {
		return false
	}
	o.all = append(o.all, f)
	o.bytes += f.bytes()
	time.AfterFunc(openIdle, func() { o.tidy(f) })
	return true
}

// makeRoomLocked closes frames that nobody reads just now, until there is room for so many bytes.
func (o *openFrames) makeRoomLocked(bytes int) bool {
	for _, f := range slices.Clone(o.all) {
		if o.bytes+bytes > o.limit && time.Since(f.used) >= openBusy {
			o.removeLocked(f)
		}
	}
	return o.bytes+bytes <= o.limit
}

// drop closes a frame that was read to its end.
func (o *openFrames) drop(raw []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if f := o.findLocked(raw); f != nil {
		o.removeLocked(f)
	}
}

// tidy closes a frame that nobody reads any more, and else looks again later.
func (o *openFrames) tidy(f *openFrame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case !slices.Contains(o.all, f):
	case time.Since(f.used) >= openIdle:
		o.removeLocked(f)
	default:
		time.AfterFunc(openIdle, func() { o.tidy(f) })
	}
}

func (o *openFrames) removeLocked(f *openFrame) {
	o.all = slices.DeleteFunc(o.all, func(other *openFrame) bool { return other == f })
	o.bytes -= f.bytes()
}
