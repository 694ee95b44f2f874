package cluster

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/cluster/bundle"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/testkit"
)

// moves is the history of what says how far the yard has come with anything, each value with the epoch that it was
// written under: cursors of deliveries, books of retry logs, dead letters, checkpoints of functions and processors, and
// the leases that give epochs. It listens to what nodes announce to each other, at all servers at once, so that only
// that is missed which was not announced, or to which no server passed on; and in the end it reads what is stored.
// The bytes are those of docs/internals/format/entries.md, grid.md and groups.md.
type moves struct {
	yard   *yard
	keys   *sealed.Keys // with which some values are sealed
	conns  []*nats.Conn // one to each server
	reader *nats.Conn

	mu   sync.Mutex
	seen map[string]map[uint64]move // guarded by mu: by key and by the sequence in the key's stream
	errs errorList
}

// move is one value of a key.
type move struct {
	seq, before uint64 // before is the sequence of the value that it replaced, 0 if none
	deleted     bool
	value       []byte
}

// overhear begins to listen, until it is judged.
func (y *yard) overhear(t testing.TB) *moves {
	t.Helper()
	m := &moves{yard: y, seen: map[string]map[uint64]move{}}
	if y.servers == nil {
		m.dialPeers(t)
	} else {
		m.dialServers(t)
	}
	for _, conn := range m.conns {
		testkit.Value(conn.Subscribe("y."+y.name+".a.>", func(msg *nats.Msg) {
			if len(msg.Data) > 8 { // else it has a sequence only, of something large
				m.add(binary.BigEndian.Uint64(msg.Data), msg.Data[8:])
			}
		}))(t)
	}
	return m
}

// dialServers connects to each server, and once more to read in the end.
func (m *moves) dialServers(t testing.TB) {
	t.Helper()
	m.keys = testkit.Value(sealed.ParseKeys(string(testkit.Value(os.ReadFile(m.yard.secret))(t))))(t)
	for i := range m.yard.servers.Replicas {
		m.conns = append(m.conns, m.yard.servers.DialOnly(t, i))
	}
	m.reader = m.yard.servers.Dial(t, 0)
}

// dialPeers does so where servers are inside, as a node that has none.
func (m *moves) dialPeers(t testing.TB) {
	t.Helper()
	b := testkit.Value(bundle.Read(m.yard.bundle))(t)
	m.keys = testkit.Value(sealed.ParseKeys(b.SecretsKey))(t)
	secure := nats.Secure(testkit.Value(b.TLS())(t))
	var all []string
	for _, p := range b.Peers {
		url := "tls://" + p.NodesAddress()
		all = append(all, url)
		m.conns = append(m.conns, natstest.Dial(t, url, secure, nats.IgnoreDiscoveredServers()))
	}
	m.reader = natstest.Dial(t, strings.Join(all, ","), secure, nats.IgnoreDiscoveredServers())
}

// add takes in a message of a stream of entries.
func (m *moves) add(seq uint64, message []byte) {
	key, one, err := readMove(seq, message)
	if err != nil {
		m.errs.add(err)
		return
	}
	if kindOf(key) == nil {
		return
	}
	if one.value, _, err = m.keys.Open(key, one.value); err != nil {
		m.errs.add(err)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen[key] == nil {
		m.seen[key] = map[uint64]move{}
	}
	m.seen[key][seq] = one
}

// readMove reads a message of version 1, or of version 2: a value that was stored again, so that it does not lie far
// behind all others. That one has 8 bytes more in its header, says that it replaced the one before, and is the same.
func readMove(seq uint64, b []byte) (key string, one move, err error) {
	const (
		begins, again     = 20, 28 // where the key begins
		checksum          = 4
		written, repeated = 1, 2
	)
	header := begins
	if len(b) > 0 && b[0] == repeated {
		header = again
	}
	if len(b) < header+checksum || b[0] != written && b[0] != repeated {
		return "", move{}, fmt.Errorf("message %d of an entry, of %d bytes, cannot be read", seq, len(b))
	}
	end := header + int(binary.BigEndian.Uint16(b[18:]))
	if end > len(b)-checksum {
		return "", move{}, fmt.Errorf("message %d of an entry is cut off", seq)
	}
	one = move{seq: seq, before: binary.BigEndian.Uint64(b[10:]), deleted: b[1] == 2, value: slices.Clone(b[end : len(b)-checksum])}
	return string(b[header:end]), one, nil
}

// readStored adds what the servers have now.
func (m *moves) readStored(t testing.TB) {
	t.Helper()
	js := testkit.Value(jetstream.New(m.reader))(t)
	var streams []string
	for name := range js.StreamNames(t.Context(), jetstream.WithStreamListSubject("y."+m.yard.name+".e.>")).Name() {
		streams = append(streams, name)
	}
	testkit.MustThat(t, len(streams) > 1, "there are no streams of entries: %v", streams)
	for _, name := range streams {
		eventually(t, "stream "+name+" cannot be read", func() bool { return m.readStream(t.Context(), js, name) == nil })
	}
}

func (m *moves) readStream(ctx context.Context, js jetstream.JetStream, name string) error {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	consumer, err := js.CreateConsumer(ctx, name, jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, InactiveThreshold: time.Minute})
	if err != nil {
		return err
	}
	for left := consumer.CachedInfo().NumPending; left > 0; {
		batch, err := consumer.FetchNoWait(1000)
		if err != nil {
			return err
		}
		got := 0
		for msg := range batch.Messages() {
			info, err := msg.Metadata()
			if err != nil {
				return err
			}
			m.add(info.Sequence.Stream, msg.Data())
			left = info.NumPending
			got++
		}
		if err := batch.Error(); err != nil || got == 0 {
			return fmt.Errorf("%d messages are left: %w", left, cmp.Or(err, errValue))
		}
	}
	return nil
}

// judge: no value of a key was followed by one of a lower epoch, and none went back. raised is how many keys had more
// than one epoch.
func (m *moves) judge(t testing.TB) (raised int) {
	t.Helper()
	for _, conn := range m.conns {
		conn.Close()
	}
	m.readStored(t)
	m.reader.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, err := range m.errs.list() {
		t.Error(err)
	}
	changes, missed := 0, 0
	keys := map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(m.seen)) {
		all := slices.SortedFunc(maps.Values(m.seen[key]), func(a, b move) int { return cmp.Compare(a.seq, b.seq) })
		report, err := judgeMoves(key, all)
		testkit.Check(t, err)
		changes, missed = changes+len(all), missed+report.missed
		keys[kindOf(key).name]++
		if report.epochs > 1 {
			raised++
		}
	}
	testkit.That(t, missed <= changes/20, "%d changes were not heard of, beside %d that were: this proves too little", missed, changes)
	t.Logf("cursors: %d changes of %v; %d more were not heard of; %d of them have passed from an epoch to a higher one", changes, keys, missed, raised)
	return raised
}

// moved is what a value says: the epoch that it was written under, the one from which on others are refused, and how far
// something has come. Who has it has an epoch of its own where owners are named.
type moved struct {
	epoch, fence int64
	owner        string
	marks        map[string]int64
}

// moveKind is a kind of keys.
type moveKind struct {
	name string
	keys *regexp.Regexp
	read func(value []byte) (moved, error)
}

var moveKinds = []moveKind{
	{"cursors of deliveries", regexp.MustCompile(`^grid/cursors/[0-9a-f]{2}/.+/\d+$`), readCursors},
	{"books of retry logs", regexp.MustCompile(`^grid/tiers/[0-9a-f]{2}$`), readBook},
	{"books of parked logs", regexp.MustCompile(`^grid/shelves/[0-9a-f]{2}$`), readBook},
	{"boxes of dead letters", regexp.MustCompile(`^grid/dead/[^/]+$`), readBox},
	{"checkpoints", regexp.MustCompile(`^records/.+/checkpoint/\d+$`), readCheckpoint},
	{"leases", regexp.MustCompile(`^records/.+/lease/\d+$`), readLease},
}

// kindOf is a key's; nil: it says of nothing how far it has come.
func kindOf(key string) *moveKind {
	for i, k := range moveKinds {
		if k.keys.MatchString(key) {
			return &moveKinds[i]
		}
	}
	return nil
}

var errValue = errors.New("the value cannot be read")

// readCursors reads a version, an epoch, and for each subscription the length of its id, the id and its mark.
func readCursors(b []byte) (moved, error) {
	m := moved{marks: map[string]int64{}}
	if len(b) == 0 || b[0] != 2 {
		return m, fmt.Errorf("%w: it has no epoch", errValue)
	}
	epoch, n := binary.Uvarint(b[1:])
	if n <= 0 {
		return m, errValue
	}
	m.epoch, m.fence = int64(epoch), int64(epoch)
	for b = b[1+n:]; len(b) > 0; {
		length := int(b[0])
		if len(b) < 1+length {
			return m, errValue
		}
		mark, n := binary.Uvarint(b[1+length:])
		if n <= 0 {
			return m, errValue
		}
		m.marks[string(b[1:1+length])] = int64(mark)
		b = b[1+length+n:]
	}
	return m, nil
}

func readBook(b []byte) (moved, error) {
	var book struct {
		Epoch   int64
		Cursors map[string]struct{ Next int64 }
	}
	err := json.Unmarshal(b, &book)
	m := moved{epoch: book.Epoch, fence: book.Epoch, marks: map[string]int64{}}
	for name, c := range book.Cursors {
		m.marks[name] = c.Next
	}
	return m, err
}

func readBox(b []byte) (moved, error) {
	var box struct{ Epoch, Written int64 }
	err := json.Unmarshal(b, &box)
	return moved{epoch: box.Epoch, fence: box.Epoch, marks: map[string]int64{"what was written": box.Written}}, err
}

func readCheckpoint(b []byte) (moved, error) {
	var c struct{ Sequence, Epoch, Fence int64 }
	err := json.Unmarshal(b, &c)
	return moved{epoch: c.Epoch, fence: c.Fence, marks: map[string]int64{"sequence": c.Sequence}}, err
}

func readLease(b []byte) (moved, error) {
	var l struct {
		Owner string
		Epoch int64
	}
	err := json.Unmarshal(b, &l)
	return moved{epoch: l.Epoch, fence: l.Epoch, owner: l.Owner}, err
}

// moveReport is what there is to say of a key.
type moveReport struct {
	missed int // changes that are known of and were not seen, at least
	epochs int // under how many values were written
}

// judgeMoves compares each value of a key with the one before it, in the order of their sequences.
func judgeMoves(key string, all []move) (report moveReport, err error) {
	kind, epochs := kindOf(key), map[int64]bool{}
	var last moved
	for i, one := range all {
		next := i > 0 && one.before == all[i-1].seq // no value was between
		if i > 0 && !next {
			report.missed++
		}
		if one.deleted {
			continue
		}
		now, err := kind.read(one.value)
		if err != nil {
			return report, fmt.Errorf("%s, value %d: %w", key, one.seq, err)
		}
		epochs[now.fence] = true
		if i > 0 && !all[i-1].deleted {
			if err := now.follows(last, next); err != nil {
				return report, fmt.Errorf("%s, value %d: %w", key, one.seq, err)
			}
		}
		last = now
	}
	report.epochs = len(epochs)
	return report, nil
}

// follows tells whether a value may follow another, at once or with others between.
func (m moved) follows(last moved, next bool) error {
	switch {
	case m.fence < last.fence || m.epoch < last.epoch:
		return fmt.Errorf("it was written under epoch %d (fence %d), and the one before under %d (fence %d)", m.epoch, m.fence, last.epoch, last.fence)
	case m.owner != "" && m.owner != last.owner && m.epoch == last.epoch:
		return fmt.Errorf("%q has epoch %d, which %q had", m.owner, m.epoch, last.owner)
	}
	for name, before := range last.marks {
		switch now, there := m.marks[name]; {
		case there && now < before:
			return fmt.Errorf("%s goes back from %d to %d", name, before, now)
		case there && now > before && m.epoch != m.fence && next: // else the one between may have moved it
			return fmt.Errorf("%s moves from %d to %d under epoch %d, when %d has begun", name, before, now, m.epoch, m.fence)
		}
	}
	return nil
}
