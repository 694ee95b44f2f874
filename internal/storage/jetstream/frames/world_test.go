package frames_test

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/testkit"
)

// world is a stream with one partition, nodes that write to it and fold it, and a network between
// them that delays, repeats, reorders and loses messages and acknowledgements.
type world struct {
	clock   int64
	stream  []stored
	nodes   []*node
	writers []*machine
	net     []packet // on their way to the stream
	acks    []ack    // on their way back
	marks   []madeMark
	claims  uint32
	content map[string]*batch // by body
}

// stored is a message of the stream.
type stored struct {
	at      frames.StreamSeq
	message []byte
}

// node folds the stream at its own pace.
type node struct {
	skew   int64
	fold   *frames.Partition
	folded int // messages of the stream
}

// machine is a writer and what is known of its batches.
type machine struct {
	name    string
	node    *node
	writer  *frames.Writer
	batches []*batch // by ticket-1
	waiting []packet // sent and neither acknowledged nor failed
	gaveUp  bool
}

type batch struct {
	owner  *machine
	ticket frames.Ticket
	events int
	answer *frames.Answer
}

type packet struct {
	to      *machine
	id      frames.FrameID
	fence   bool
	message []byte
}

type ack struct {
	packet
	at frames.StreamSeq
}

type madeMark struct {
	folded int
	mark   frames.Mark
}

func newWorld(nodes int) *world {
	w := &world{clock: 1_800_000_000_000, content: map[string]*batch{}}
	for i := range nodes {
		n := &node{skew: int64(i) * 5 * 60_000, fold: frames.NewPartition()}
		w.nodes = append(w.nodes, n)
		w.writers = append(w.writers, &machine{name: fmt.Sprintf("process-%d", i), node: n, writer: frames.NewWriter(frames.WriterID{ID: uint64(i)})})
	}
	return w
}

// claim has a node claim the one idempotent producer that there is.
func (w *world) claim(t *rapid.T, n *node) {
	w.claims++
	epoch, _, _ := n.fold.Writer(pump)
	m := &machine{name: fmt.Sprintf("claim-%d", w.claims), node: n, writer: frames.NewClaim(pump, w.claims, epoch)}
	w.writers = append(w.writers, m)
	w.drive(t, m)
}

func (w *world) submit(m *machine, events int) {
	body := fmt.Sprintf("%s/%d", m.name, len(m.batches)+1)
	if len(m.batches)%3 == 0 { // which does not gather, so that more frames are on their way
		body += strings.Repeat(" ", frames.LargeBytes)
	}
	b := &batch{owner: m, events: events}
	b.ticket = m.writer.Submit(frames.Batch{Events: events, Body: []byte(body)})
	m.batches = append(m.batches, b)
	w.content[body] = b
}

// drive does what a writer wants done.
func (w *world) drive(t *rapid.T, m *machine) {
	var a frames.Actions
	m.writer.Take(&a)
	base, time := m.node.fold.Stamp(w.seq(m.node), w.clock+m.node.skew)
	for _, f := range a.Frames {
		f.Header.Base, f.Header.Time = base, time
		w.send(packet{to: m, id: f.ID, message: frames.AppendData(nil, f.Header, f.Batches)})
	}
	for _, f := range a.Fences {
		f.Header.Base, f.Header.Time = base, time
		w.send(packet{to: m, id: f.ID, fence: true, message: frames.AppendFence(nil, f.Header)})
	}
	for _, answer := range a.Answers {
		b := m.batches[answer.Ticket-1]
		testkit.MustThat(t, b.answer == nil, "%s/%d is answered twice", m.name, answer.Ticket)
		b.answer = &answer
	}
}

// seq is what a node has folded the stream up to.
func (w *world) seq(n *node) frames.StreamSeq {
	if n.folded == 0 {
		return 0
	}
	return w.stream[n.folded-1].at
}

func (w *world) send(p packet) {
	w.net = append(w.net, p)
	p.to.waiting = append(p.to.waiting, p)
}

// store appends a message to the stream, behind some of other partitions.
func (w *world) store(p packet, others int) {
	at := frames.StreamSeq(others + 1)
	if len(w.stream) > 0 {
		at += w.stream[len(w.stream)-1].at
	}
	w.stream = append(w.stream, stored{at: at, message: p.message})
	w.acks = append(w.acks, ack{packet: p, at: at})
}

func (w *world) acknowledge(t *rapid.T, a ack) {
	a.to.settle(a.packet)
	if a.fence {
		a.to.writer.FenceAcknowledged(a.id, a.at)
	} else {
		a.to.writer.Acknowledged(a.id, a.at)
	}
	w.drive(t, a.to)
}

func (w *world) fail(t *rapid.T, p packet) {
	p.to.settle(p)
	if p.fence {
		p.to.writer.FenceFailed(p.id)
	} else {
		p.to.writer.Failed(p.id)
	}
	w.drive(t, p.to)
}

func (w *world) giveUp(t *rapid.T, m *machine) {
	m.gaveUp = true
	m.writer.GiveUp()
	w.drive(t, m)
}

func (m *machine) settle(p packet) {
	m.waiting = slices.DeleteFunc(m.waiting, func(q packet) bool { return q.id == p.id })
}

// advance has a node fold so many more messages.
func (w *world) advance(t *rapid.T, n *node, messages int) {
	var seen []frames.Seen
	for range messages {
		s := w.stream[n.folded]
		h, err := frames.DecodeHeader(s.message)
		testkit.Must(t, err)
		v := n.fold.Apply(s.at, h)
		testkit.MustThat(t, v.Outcome != frames.Hole && v.Outcome != frames.Old, "%v at %d, where nothing is missing", v.Outcome, s.at)
		seen = append(seen, frames.Seen{At: s.at, Header: h, Verdict: v})
		n.folded++
	}
	for _, m := range w.of(n) {
		m.writer.Folded(w.seq(n), seen)
		w.drive(t, m)
	}
}

func (w *world) of(n *node) []*machine {
	return slices.DeleteFunc(slices.Clone(w.writers), func(m *machine) bool { return m.node != n })
}

// mark has a node write a mark, and reads it.
func (w *world) mark(t *rapid.T, n *node) {
	state, ok := n.fold.Snapshot("p")
	testkit.MustThat(t, ok, "a fold has a hole, where nothing is missing")
	message := frames.AppendMark(nil, frames.Header{}, frames.NewMarks(w.seq(n), []frames.PartitionState{state}, 0)[0])
	f, err := frames.Decode(message)
	testkit.Must(t, err)
	m, err := frames.DecodeMark(f)
	testkit.Must(t, err)
	w.marks = append(w.marks, madeMark{folded: n.folded, mark: m})
}

// restore has a node go on from a mark ahead of its fold, as behind a hole.
func (w *world) restore(t *rapid.T, n *node, m madeMark) {
	for _, machine := range w.of(n) {
		w.giveUp(t, machine)
	}
	state, ok := m.mark.Find("p")
	testkit.MustThat(t, ok, "no such partition")
	n.fold, n.folded = frames.Restore(m.mark.AsOf, state), m.folded
	w.advance(t, n, 0)
}

// heal ends all faults and lets everybody finish: each message arrives once and is acknowledged.
// What was held up before stays where it is.
func (w *world) heal(t *rapid.T) {
	late := w.net
	w.net, w.acks = nil, nil
	for _, m := range w.writers {
		for _, p := range slices.Clone(m.waiting) {
			w.fail(t, p)
		}
	}
	for range 1000 {
		for _, p := range w.net {
			w.store(p, 0)
		}
		w.net = nil
		acks := w.acks
		w.acks = nil
		for _, a := range acks {
			w.acknowledge(t, a)
		}
		for _, n := range w.nodes {
			w.advance(t, n, len(w.stream)-n.folded)
		}
		if !slices.ContainsFunc(w.writers, func(m *machine) bool { return !m.writer.Idle() || !m.writer.Settled() }) {
			w.net = late
			return
		}
	}
	t.Fatal("writers do not come to rest")
}

// outcome is what a reader makes of the whole stream.
type outcome struct {
	verdicts []frames.Verdict
	numbers  map[string]eventlog.Sequence // by body
	state    frames.PartitionState
}

// read folds the stream from a mark on, or from the start.
func (w *world) read(t *rapid.T, fold *frames.Partition, from int) outcome {
	o := outcome{numbers: map[string]eventlog.Sequence{}}
	for _, s := range w.stream[from:] {
		f, err := frames.Decode(s.message)
		testkit.Must(t, err)
		next := fold.State().Next
		v := fold.Apply(s.at, f.Header)
		o.verdicts = append(o.verdicts, v)
		if v.Outcome != frames.Counted {
			testkit.Equal(t, fold.State().Next, next, "numbers for what does not count")
			continue
		}
		testkit.Equal(t, v.First, next, "numbers are dense")
		for before, b := range f.All() {
			_, twice := o.numbers[string(b.Body)]
			testkit.MustThat(t, !twice, "%s counts twice", b.Body)
			o.numbers[string(b.Body)] = v.First + eventlog.Sequence(before)
		}
	}
	o.state, _ = fold.Snapshot("p")
	return o
}
