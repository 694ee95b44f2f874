package entries

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/storage/jetstream/answers"
)

// Damage is something of a bucket that is not as nodes have written it, or that this node has
// otherwise in memory.
type Damage struct {
	// Seq is the message where it shows; 0 where there is none.
	Seq uint64
	// Key is that of the entry; empty where it is not known.
	Key  string
	Text string
	// Memory: the bucket is as it should be, and what this node has in memory is not.
	Memory bool
}

// Audit compares the messages of a bucket with what this node has in memory. What differs is looked at
// again in the end, when both are as new as can be. One goroutine uses it; only End asks the servers.
type Audit struct {
	store  *Store
	bucket string
	seed   maphash.Seed
	seen   map[uint64]bool // hashes of the keys of all messages that were taken
	doubts map[string]bool // keys of which the two differed
	found  []Damage
	more   int
}

// maxFound is how much damage of one bucket is reported one by one.
const maxFound = 1000

// NewAudits begins an audit of each bucket of a store that has been loaded, by the name of its stream.
func NewAudits(s *Store) map[string]*Audit {
	all := map[string]*Audit{}
	for name := range s.buckets {
		all[s.layout.stream(name)] = &Audit{
			store: s, bucket: name, seed: maphash.MakeSeed(), seen: map[uint64]bool{}, doubts: map[string]bool{},
		}
	}
	return all
}

// Intact finds out whether a message is what was written, by its own checksum.
func (a *Audit) Intact(data []byte) error {
	_, err := decode(math.MaxUint64/4, data) // behind what it may have been stored as before
	return err
}

// Take takes the next message of the bucket, with the whole subject.
func (a *Audit) Take(seq uint64, subject string, data []byte) {
	m, err := decode(seq, data)
	switch {
	case err != nil:
		a.note(Damage{Seq: seq, Text: err.Error()})
		return
	case m.kind == barrier:
		if subject != a.store.layout.barrier(a.bucket) {
			a.note(Damage{Seq: seq, Text: fmt.Sprintf("a barrier is under the subject %q", subject)})
		}
		return
	case a.store.layout.bucketOf(m.key) != a.bucket || a.store.layout.subject(a.bucket, m.key) != subject:
		a.note(Damage{Seq: seq, Key: m.key, Text: fmt.Sprintf("the entry is under the subject %q of another", subject)})
		return
	}
	a.seen[a.hash(m.key)] = true
	if a.differs(m) != "" && len(a.doubts) < maxFound {
		a.doubts[m.key] = true
	}
}

func (a *Audit) hash(key string) uint64 { return maphash.String(a.seed, key) }

// differs says in what the memory of this node differs from a message; nothing where it does not, or is
// newer.
func (a *Audit) differs(m message) string {
	has, known := a.store.replica.state(m.key)
	switch {
	case known && has.seq > m.seq:
		return ""
	case m.kind == deletion && (!known || has.kind == deletion):
		return ""
	case !known:
		return "this node does not know the entry"
	case has.seq < m.seq:
		return fmt.Sprintf("this node has the entry as of message %d", has.seq)
	case has.kind != m.kind:
		return "this node takes the entry for deleted"
	case !bytes.Equal(has.value, m.value):
		return "this node has another value of the entry"
	}
	return ""
}

func (a *Audit) note(d Damage) {
	if len(a.found) >= maxFound {
		a.more++
		return
	}
	a.found = append(a.found, d)
}

// rounds is how often an entry has to differ to be believed: others change entries meanwhile.
const rounds = 3

// End gives what is wrong, and how many more there were. It asks the servers for the entries that
// differed, and for those that this node has and the bucket did not. It blocks until they have answered,
// or ctx ends.
func (a *Audit) End(ctx context.Context) (found []Damage, more int, err error) {
	for _, key := range a.store.replica.keysOf(a.bucket) {
		if !a.seen[a.hash(key)] && len(a.doubts) < maxFound {
			a.doubts[key] = true
		}
	}
	doubts := slices.Sorted(maps.Keys(a.doubts))
	var differ []Damage
	for range rounds {
		if differ, err = a.lookAgain(ctx, doubts); err != nil {
			return nil, 0, err
		}
		doubts = nil
		for _, d := range differ {
			doubts = append(doubts, d.Key)
		}
	}
	for _, d := range differ {
		a.note(d)
	}
	return a.found, a.more, nil
}

// lookAgain compares entries with the newest messages of their keys, as the leader has them: those first,
// so that memory is at least as new when it is compared.
func (a *Audit) lookAgain(ctx context.Context, keys []string) (differ []Damage, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	newest := map[string]message{}
	for _, key := range keys {
		m, there, err := a.newest(ctx, key)
		if err != nil {
			return nil, err
		}
		if there {
			newest[key] = m
		}
	}
	if err := a.store.fresh(ctx, []string{a.bucket}); err != nil {
		return nil, err
	}
	for _, key := range keys {
		m, there := newest[key]
		has, known := a.store.replica.state(key)
		if there {
			if text := a.differs(m); text != "" {
				differ = append(differ, Damage{Seq: m.seq, Key: key, Text: text, Memory: true})
			}
		} else if known && has.kind == value {
			text := fmt.Sprintf("this node has the entry as of message %d, and the servers have none that can be read", has.seq)
			differ = append(differ, Damage{Key: key, Text: text, Memory: true})
		}
	}
	return differ, nil
}

// newest gives the newest message of a key, as the leader has it; false where there is none.
func (a *Audit) newest(ctx context.Context, key string) (message, bool, error) {
	s := a.store
	ask, err := json.Marshal(map[string]string{"last_by_subj": s.layout.subject(a.bucket, key)})
	if err != nil {
		return message{}, false, err
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	answer, err := s.conn.RequestMsgWithContext(ctx, &nats.Msg{Subject: "$JS.API.STREAM.MSG.GET." + s.layout.stream(a.bucket), Data: ask})
	if err != nil {
		return message{}, false, outOfReach(ctx, err)
	}
	var got struct {
		Error   *answers.Refusal `json:"error"`
		Message struct {
			Seq  uint64 `json:"seq"`
			Data []byte `json:"data"`
		} `json:"message"`
	}
	if err := json.Unmarshal(answer.Data, &got); err != nil {
		return message{}, false, err
	}
	switch {
	case got.Error == nil:
	case got.Error.Code == answers.CodeNoMessage:
		return message{}, false, nil
	default:
		return message{}, false, got.Error
	}
	m, err := decode(got.Message.Seq, got.Message.Data)
	if errors.Is(err, errMessage) { // which was reported when it was read
		return message{}, false, nil
	}
	return m, err == nil, err
}

// keysOf gives the keys of a bucket that are not deleted.
func (r *replica) keysOf(bucket string) (keys []string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for key, it := range r.items {
		if it.bucket == bucket && it.kind == value {
			keys = append(keys, key)
		}
	}
	return keys
}
