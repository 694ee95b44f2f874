// Package model keeps the contract of package streams in memory, for any number of simulated nodes:
// the storage that tests give to an engine which is to run on servers. It can fail in every way that
// servers, connections and clients were seen to fail, and in the same words; what it has acknowledged
// it never loses.
//
// It runs inside bubbles of testing/synctest and outside: it does no I/O, waits by timers alone, and
// has no goroutine while nothing is under way. All chance is drawn from one seed, so that a run is
// repeated as far as the order of goroutines allows.
package model

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

const (
	// patience is how long a node waits for an answer.
	patience = 3 * time.Second
	// noticed is how long after a cut a node knows that its connection is lost.
	noticed = 4 * time.Second
	// maxMessageBytes is what the servers take.
	maxMessageBytes = 8 << 20
	// defaultReplicas is how many replicas a stream has that was made without a number.
	defaultReplicas = 3
)

// Faults says what goes wrong by chance. The zero value is a storage without faults that answers at
// once. Chances are from 0 to 1, for each publish, call or announcement.
type Faults struct {
	// Delay is how long a message takes at most, there and back again. Those of one node stay in order. A
	// new stream is out of reach for twice as long.
	Delay time.Duration

	// Lost: what is published is lost before it is stored.
	Lost float64
	// AckLost: it is stored, or done, and the answer is lost. Also of Make, Delete and Purge.
	AckLost float64
	// Twice: it is stored, and once more a moment later.
	Twice float64
	// Late: it is stored later than others that were published after it, up to LateBy. An announcement
	// is heard as late.
	Late   float64
	LateBy time.Duration // zero means twice the time after which a publish is in doubt

	// Unavailable and NoSpace: it is refused with that error. Unavailable is also of all other calls.
	Unavailable, NoSpace float64

	// Lag is how far replicas are behind for readers, at most.
	Lag time.Duration
	// AnnouncementLost: one listener does not hear it.
	AnnouncementLost float64
}

// Cluster is the servers, and the network between them and the nodes. All methods may be called by
// many goroutines at once.
type Cluster struct {
	arrivals agenda // what reaches the servers

	mu      sync.Mutex
	rand    *rand.Rand
	faults  Faults
	streams map[string]*stream
	network map[string]*link // by the name of the node
	nodes   []*Node          // those not closed
	down    time.Time        // until when all servers are gone
	stored  func(stream string, m streams.Message)
	inboxes int // how many were made
}

// New gives servers without streams.
func New(seed uint64, faults Faults) *Cluster {
	return &Cluster{
		rand:    rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15)),
		faults:  faults,
		streams: map[string]*stream{},
		network: map[string]*link{},
	}
}

// SetFaults says what goes wrong from now on. What is under way keeps the fate that it has.
func (c *Cluster) SetFaults(faults Faults) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = faults
}

// Observe has a function called with every message right when it is stored, in the order of its stream.
// It must neither wait nor call anything here. It is set before anything is stored.
func (c *Cluster) Observe(stored func(stream string, m streams.Message)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stored = stored
}

// Node gives a new connection of the node with that name, as a process of its own would have. It is
// a streams.Storage.
func (c *Cluster) Node(name string) *Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := &Node{c: c, link: c.linkLocked(name)}
	c.nodes = append(c.nodes, n)
	return n
}

func (c *Cluster) linkLocked(node string) *link {
	l := c.network[node]
	if l == nil {
		l = &link{}
		c.network[node] = l
	}
	return l
}

// CutOff cuts all connections of a node for a time, which replaces what is left of a cut before: the
// node does not know before some seconds have passed, what it publishes until then is in doubt, and
// if the cut is shorter it arrives late. Zero ends a cut. Connections made meanwhile are cut, too.
func (c *Cluster) CutOff(node string, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, now := c.linkLocked(node), time.Now()
	if !l.cut(now) {
		l.since = now
	}
	l.until = now.Add(d)
	c.arrivals.at(l.until, func() { c.reconnect(l) })
}

// Freeze has a node stand still for a time, which replaces what is left of one before: nothing leaves it,
// what comes waits for it, and both go on where they were. Its clock goes on.
func (c *Cluster) Freeze(node string, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.linkLocked(node).thaw = time.Now().Add(d)
}

// LoseLeader has a stream be without a leader for a time, then another replica leads. What was
// published and not acknowledged is in doubt; nothing can be published, and reads go on.
func (c *Cluster) LoseLeader(name string, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[name]; s != nil {
		c.loseLocked(s, d)
	}
}

// LoseLeaders is LoseLeader of every stream.
func (c *Cluster) LoseLeaders(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.streams)) { // so that a run can be repeated
		c.loseLocked(c.streams[name], d)
	}
}

func (c *Cluster) loseLocked(s *stream, d time.Duration) {
	s.leaderless = time.Now().Add(d)
	s.leader = c.rand.IntN(len(s.replicas))
}

// StopServers has all servers gone for a time, which replaces what is left of a time before. They
// come back with all that they have stored.
func (c *Cluster) StopServers(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = time.Now().Add(d)
}

// StopReplica has one replica of a stream give no answers for a time. The others go on, and lead.
func (c *Cluster) StopReplica(name string, replica int, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[name]
	s.replicas[replica].away = time.Now().Add(d)
	if s.leader == replica {
		s.leader = (replica + 1) % len(s.replicas)
	}
}

// Damage flips a byte of a stored message, at one replica, or at all where replica is negative. It
// reports whether there is such a message.
func (c *Cluster) Damage(stream string, seq streams.Seq, replica int) bool {
	return c.harm(stream, seq, replica, func(data []byte) *harm {
		data = slices.Clone(data)
		if len(data) > 0 {
			data[c.rand.IntN(len(data))] ^= 1 << c.rand.IntN(8)
		}
		return &harm{data: data}
	})
}

// Hide has a stored message missing from the answers of one replica, or of all where replica is
// negative. It reports whether there is such a message.
func (c *Cluster) Hide(stream string, seq streams.Seq, replica int) bool {
	return c.harm(stream, seq, replica, func([]byte) *harm { return &harm{missing: true} })
}

func (c *Cluster) harm(stream string, seq streams.Seq, replica int, how func([]byte) *harm) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[stream]
	if s == nil {
		return false
	}
	i, there := s.find(seq)
	if !there || replica >= len(s.replicas) {
		return false
	}
	done := how(s.messages[i].Data)
	for r := range s.replicas {
		if replica < 0 || r == replica {
			s.replicas[r].harmed[seq] = done
		}
	}
	return true
}

// Messages are all that a stream holds, without damage: what a test may compare with.
func (c *Cluster) Messages(stream string) []streams.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[stream]
	if s == nil {
		return nil
	}
	all := make([]streams.Message, len(s.messages))
	for i, m := range s.messages {
		all[i] = m.copy()
	}
	return all
}

// happens says whether something of that chance does, this time.
func (c *Cluster) happens(chance float64) bool {
	return chance > 0 && c.rand.Float64() < chance
}

// upTo draws a time.
func (c *Cluster) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(c.rand.Int64N(int64(d) + 1))
}

// lateness draws how late something is that is late.
func (c *Cluster) lateness() time.Duration {
	if c.faults.LateBy > 0 {
		return c.upTo(c.faults.LateBy)
	}
	return c.upTo(2 * patience)
}
