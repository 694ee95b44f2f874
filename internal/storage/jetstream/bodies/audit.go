package bodies

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Damage is a message of a body that is not what was written.
type Damage struct {
	Seq uint64
	// Body is the name of the body.
	Body string
	Text string
}

// Audit checks the messages of all bodies, and that each body has all its chunks. One goroutine uses it;
// only End asks the servers.
type Audit struct {
	store  *Store
	chunks map[uint64]bool // the sequences of those that were taken and that no index has named yet
	found  []Damage
	more   int
}

// maxFound is how much damage is reported one by one.
const maxFound = 1000

// Audit begins one of the stream of all bodies.
func (s *Store) Audit() *Audit { return &Audit{store: s, chunks: map[uint64]bool{}} }

// Intact finds out whether a message is what was written, by its own checksum.
func (a *Audit) Intact(data []byte) error {
	kind := byte(kindChunk)
	if len(data) > 1 && data[1] == kindIndex {
		kind = kindIndex
	}
	_, err := open(kind, data)
	return err
}

// Take takes the next message, with the whole subject.
func (a *Audit) Take(seq uint64, subject string, data []byte) {
	name, isIndex := strings.CutSuffix(strings.TrimPrefix(subject, a.store.subjects("")), ".i")
	if !isIndex {
		name = strings.TrimSuffix(name, ".c")
		if _, err := open(kindChunk, data); err != nil {
			a.note(Damage{seq, name, err.Error()})
		}
		a.chunks[seq] = true
		return
	}
	x, err := decodeIndex(data)
	if err != nil {
		a.note(Damage{seq, name, err.Error()})
		return
	}
	for _, chunk := range x.seqs {
		if !a.chunks[chunk] {
			a.note(Damage{seq, name, fmt.Sprintf("its part at message %d is missing", chunk)})
			break
		}
		delete(a.chunks, chunk)
	}
}

func (a *Audit) note(d Damage) {
	if len(a.found) >= maxFound {
		a.more++
		return
	}
	a.found = append(a.found, d)
}

// End gives what is wrong, and how many more there were. A body that was removed meanwhile is left out: it
// asks the servers which there are, and blocks until they have answered, or ctx ends.
func (a *Audit) End(ctx context.Context) (found []Damage, more int, err error) {
	if len(a.found) == 0 {
		return nil, 0, nil
	}
	names, err := a.store.List(ctx)
	if err != nil {
		return nil, 0, err
	}
	return slices.DeleteFunc(a.found, func(d Damage) bool { return !slices.Contains(names, d.Body) }), a.more, nil
}
