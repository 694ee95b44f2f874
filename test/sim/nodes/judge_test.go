package nodes

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// judge is told of everything, and knows what must hold.
type judge struct {
	// reckless, for a test of the judge: receivers do not ask whether they may read.
	reckless bool

	mu sync.Mutex
	// All guarded by mu.
	problems []string
	found    int
	trace    []string
	parts    []*account
	fates    map[string]fate // of what was tried, by its text
	counts   map[string]int
}

// account is what is known of one partition.
type account struct {
	number int
	texts  map[int64]string // what somebody read
	ends   map[string]int64 // how far each node's reader has come
	acked  map[string]int64 // where tries were said to be stored
	made   map[string]int   // how many of its events each producer was told to be stored

	lease      leaseRecord
	checkpoint checkpointRecord
	begun      bool  // there is a checkpoint
	epoch      int64 // the highest under which a handler was called
	owner      string
	handled    int64
	changes    []string // of its lease and checkpoint, the newest

	visitors map[*visitor]bool
	reading  *visitor // who was seen to read last
	left     map[*visitor]bool
}

// fate is what a sender was told of a try.
type fate int

const (
	open fate = iota
	stays
	never
)

func newJudge(p plan) *judge {
	j := &judge{fates: map[string]fate{}, counts: map[string]int{}}
	for number := range p.partitions {
		j.parts = append(j.parts, &account{
			number: number, texts: map[int64]string{}, ends: map[string]int64{}, acked: map[string]int64{}, made: map[string]int{},
			handled: -1, visitors: map[*visitor]bool{}, left: map[*visitor]bool{},
		})
	}
	return j
}

func (j *judge) fail(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failLocked(format, args...)
}

// failLocked notes that something did not hold. The first ones tell most.
func (j *judge) failLocked(format string, args ...any) {
	if j.found++; j.found <= 5 {
		j.problems = append(j.problems, fmt.Sprintf("%v: %s", since(), fmt.Sprintf(format, args...)))
	}
}

func (j *judge) failed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.found > 0
}

// says notes what happened, for who reads why something failed.
func (j *judge) says(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.trace = append(j.trace, fmt.Sprintf("%v %s", since(), fmt.Sprintf(format, args...)))
}

// counted is how often what happened.
func (j *judge) counted() map[string]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.counts)
}

func (a *account) note(format string, args ...any) {
	if len(a.changes) >= 40 {
		a.changes = a.changes[20:]
	}
	a.changes = append(a.changes, fmt.Sprintf("%v %s", since(), fmt.Sprintf(format, args...)))
}

func (a *account) story() string { return "\n    " + strings.Join(a.changes, "\n    ") }

// doubts: a sender does not know what became of a try.
func (j *judge) doubts() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counts["in doubt"]++
}

// tries: a sender is about to send a text.
func (j *judge) tries(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fates[text] = open
}

// acknowledged: it was told that the text is stored at a number.
func (j *judge) acknowledged(partition int, text string, at int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counts["acknowledged"]++
	j.fates[text] = stays
	j.parts[partition].acked[text] = at
	j.readLocked("the sender", j.parts[partition], at, text)
}

// refused: it was told that the text is not stored.
func (j *judge) refused(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counts["refused"]++
	j.fates[text] = never
}

// produced: a producer was told that its event of that number is stored.
func (j *judge) produced(partition int, name string, number int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counts["produced"]++
	j.parts[partition].made[name] = number + 1
}

// read: somebody was given an event.
func (j *judge) read(who string, partition int, at int64, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	a := j.parts[partition]
	j.readLocked(who, a, at, text)
	a.ends[who] = max(a.ends[who], at+1)
}

func (j *judge) readLocked(who string, a *account, at int64, text string) {
	if before, known := a.texts[at]; known && before != text {
		j.failLocked("event %d of partition %d is %q to %s, and was %q to another", at, a.number, text, who, before)
	}
	a.texts[at] = text
	if j.fates[text] == never {
		j.failLocked("%q of partition %d was refused, and %s reads it", text, a.number, who)
	}
}

// followed is where a node's reader goes on.
func (j *judge) followed(node string, partition int) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.parts[partition].ends[node]
}

// leaseRecord and checkpointRecord are what the yard stores; docs/internals/format/groups.md.
type leaseRecord struct {
	Owner string `json:"owner"`
	Epoch int64  `json:"epoch"`
}

type checkpointRecord struct {
	Sequence int64 `json:"sequence"`
	Epoch    int64 `json:"epoch"`
	Fence    int64 `json:"fence"`
}

// stored is called by the servers with every message, in order. Entries are as
// docs/internals/format/entries.md says.
func (j *judge) stored(stream string, m streams.Message) {
	if !strings.HasPrefix(stream, "Y_y_e_") || m.Data[1] == 3 {
		return
	}
	body := m.Data[:len(m.Data)-4]
	key, value := string(body[20:20+binary.BigEndian.Uint16(body[18:])]), body[20+binary.BigEndian.Uint16(body[18:]):]
	words := strings.Split(key, "/") // records/LOG/GROUP/KIND/PARTITION
	if len(words) != 5 || words[0] != "records" {
		return
	}
	number, err := strconv.Atoi(words[4])
	if err != nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	a := j.parts[number]
	switch words[3] {
	case "lease":
		var l leaseRecord
		if err := json.Unmarshal(value, &l); err != nil {
			j.failLocked("%s: %v", key, err)
		}
		j.leasedLocked(a, l)
	case "checkpoint":
		var c checkpointRecord
		if err := json.Unmarshal(value, &c); err != nil {
			j.failLocked("%s: %v", key, err)
		}
		j.savedLocked(a, c)
	}
}

// leasedLocked: an epoch has one owner, and never falls.
func (j *judge) leasedLocked(a *account, l leaseRecord) {
	a.note("lease of %q, epoch %d", l.Owner, l.Epoch)
	before := a.lease
	if l.Epoch < before.Epoch || l.Epoch == before.Epoch && l.Owner != "" && l.Owner != before.Owner {
		j.failLocked("partition %d: the lease of %q and epoch %d follows that of %q and %d%s", a.number, l.Owner, l.Epoch, before.Owner, before.Epoch, a.story())
	}
	if l.Epoch > before.Epoch {
		j.counts["acquired"]++
	}
	a.lease = l
}

// savedLocked: no checkpoint moves back, or under an old epoch, or ahead of the work.
func (j *judge) savedLocked(a *account, c checkpointRecord) {
	a.note("checkpoint %d, epoch %d, fence %d", c.Sequence, c.Epoch, c.Fence)
	before := a.checkpoint
	if !a.begun {
		before.Sequence = -1
	}
	switch {
	case c.Fence < before.Fence:
		j.failLocked("partition %d: the fence falls from %d to %d%s", a.number, before.Fence, c.Fence, a.story())
	case c.Sequence != before.Sequence && c.Epoch < before.Fence:
		j.failLocked("partition %d: a checkpoint moves under epoch %d, and %d has begun%s", a.number, c.Epoch, before.Fence, a.story())
	case c.Sequence < before.Sequence:
		j.failLocked("partition %d: the checkpoint falls from %d to %d%s", a.number, before.Sequence, c.Sequence, a.story())
	case c.Sequence > a.handled:
		j.failLocked("partition %d: the checkpoint is %d, and only %d is handled%s", a.number, c.Sequence, a.handled, a.story())
	}
	a.checkpoint, a.begun = c, true
}

// handles: a handler is called.
func (j *judge) handles(i *instance, partition string, epoch int64, events []event.Event) {
	if i.dead.Err() != nil {
		return // nobody sees what a dead process does
	}
	number, _ := strconv.Atoi(partition)
	j.mu.Lock()
	defer j.mu.Unlock()
	a := j.parts[number]
	j.counts["called"]++
	a.note("%s is called with %d to %d, epoch %d", i.id, events[0].Sequence, events[len(events)-1].Sequence, epoch)
	for n, e := range events {
		if e.Sequence != events[0].Sequence+int64(n) {
			j.failLocked("%s is called with %d of partition %d as number %d of a batch that begins with %d", i.id, e.Sequence, number, n, events[0].Sequence)
		}
		j.readLocked(i.id, a, e.Sequence, string(e.Body))
	}
	if first := events[0].Sequence; first > a.handled+1 {
		j.failLocked("%s is called with %d of partition %d, and only %d is handled%s", i.id, first, number, a.handled, a.story())
	}
	if epoch < a.epoch || epoch == a.epoch && i.id != a.owner {
		j.failLocked("%s is called for partition %d under epoch %d, after %s was under %d%s", i.id, number, epoch, a.owner, a.epoch, a.story())
		return
	}
	a.epoch, a.owner = epoch, i.id
}

func (j *judge) handled(partition string, events []event.Event) {
	number, _ := strconv.Atoi(partition)
	j.mu.Lock()
	defer j.mu.Unlock()
	a := j.parts[number]
	a.handled = max(a.handled, events[len(events)-1].Sequence)
}

// enters and goes: a visitor has its slot, or is about to give it back.
func (j *judge) enters(partition int, v *visitor) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counts["visits"]++
	j.parts[partition].visitors[v] = true
	j.lookLocked(j.parts[partition])
}

func (j *judge) goes(partition int, v *visitor) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.parts[partition].visitors, v)
}

// look finds out who reads a slot now: at most one, and nobody who was followed by another.
func (j *judge) look(partition int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lookLocked(j.parts[partition])
}

func (j *judge) lookLocked(a *account) {
	var reads *visitor
	for v := range a.visitors {
		if !v.may(j.reckless) {
			continue
		}
		if reads != nil {
			j.failLocked("%s at node %s and %s at node %s read partition %d at once", v.name, v.n.name, reads.name, reads.n.name, a.number)
		}
		reads = v
	}
	if reads == nil || reads == a.reading {
		return
	}
	if a.left[reads] {
		j.failLocked("%s at node %s reads partition %d again after %s", reads.name, reads.n.name, a.number, a.reading.name)
	}
	if a.reading != nil {
		a.left[a.reading] = true
	}
	j.counts["turns"]++
	a.reading = reads
}
