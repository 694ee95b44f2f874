package logs

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/testkit/history"
)

var (
	stormSeeds = flag.Int("storm.seeds", 3, "how many seeds of faults are tried")
	stormSeed  = flag.Uint64("storm.seed", 1, "the first of them; zero: any")
)

// storm is a yard in trouble: nodes that append, and a list of what they were told.
type storm struct {
	*yard
	t     *testing.T
	rand  *rand.Rand // used by the test's own goroutine
	parts int

	mu      sync.Mutex
	acked   map[string]map[eventlog.Sequence]string // by partition: number and text; guarded by mu
	refused map[string]bool                         // texts; guarded by mu
	read    map[string]string                       // what readers were given, by partition and number; guarded by mu
	doubts  int                                     // guarded by mu

	histories []history.Log // by partition, but for the aged one
}

// aged is the number that stands for the partition of a log that loses its oldest events all the time.
const aged = -1

// process is one life of a node.
type process struct {
	*Engine
	storage *model.Node
	name    string
	writers sync.WaitGroup
	stop    chan struct{}
}

func (s *storm) start(name string) *process {
	storage := s.cluster.Node(name)
	cfg := s.cfg
	cfg.Storage, cfg.Store, cfg.Fill, cfg.Log = storage, s.store, fillers, testkit.Quiet()
	return &process{Engine: New(cfg), storage: storage, name: name, stop: make(chan struct{})}
}

// kill ends a process as the kernel does: nothing that it has under way is heard of any more.
func (p *process) kill(t *testing.T) {
	p.storage.Close()
	close(p.stop)
	p.writers.Wait()
	testkit.Check(t, p.Close())
}

func (p *process) partition(t *testing.T, number int) eventlog.Partition {
	for {
		id, shape := eventlog.PartitionID{Log: "orders", Number: number}, orders
		if number == aged {
			id, shape = eventlog.PartitionID{Log: "aged"}, eventlog.Shape{Partitions: 1, Retention: eventlog.Retention{Age: 20 * time.Second}}
		}
		err := p.Provide(t.Context(), id.Log, shape)
		if err == nil {
			part, err := p.Partition(id)
			testkit.Must(t, err)
			return part
		}
		if !errors.Is(err, eventlog.ErrUnavailable) {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// write appends one text after the other, and looks after those in doubt.
func (s *storm) write(p *process, writer string, number int, pauses *rand.Rand) {
	part := p.partition(s.t, number)
	for n := 0; part != nil; n++ {
		select {
		case <-p.stop:
			return
		case <-time.After(time.Duration(pauses.IntN(300)) * time.Millisecond):
		}
		text := fmt.Sprintf("%s/%d", writer, n)
		if n%7 == 6 {
			if !s.appendMany(part, number, text) {
				return
			}
			continue
		}
		for !s.append(p, part, number, text) {
			select {
			case <-p.stop:
				return
			case <-time.After(time.Second):
			}
		}
	}
}

// append appends a text until it is stored, once; it is false if it has to be tried again.
func (s *storm) append(p *process, part eventlog.Partition, number int, what string) bool {
	known := part.Peek().Next
	past := s.history(number)
	begun := past.Now()
	done, err := eventlog.Append(s.t.Context(), part, text(what))
	record(past, begun, what, done, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.ackedLocked(number, done.First, what)
		delete(s.refused, what)
		return true
	case errors.Is(err, eventlog.ErrClosed):
		return true
	case errors.Is(err, eventlog.ErrUncertain):
		s.doubts++
		s.mu.Unlock()
		found, at := s.look(p, part, known, what)
		s.mu.Lock()
		if found {
			s.ackedLocked(number, at, what)
		}
		return found
	case errors.Is(err, eventlog.ErrUnavailable):
		s.refused[what] = true
		return false
	default:
		s.t.Errorf("append: %v", err)
		return true
	}
}

// appendMany submits some together, of which a prefix is stored. It is false if what became of them is
// not known.
func (s *storm) appendMany(part eventlog.Partition, number int, what string) bool {
	var batches []eventlog.Batch
	var texts []string
	for i := range 5 {
		texts = append(texts, fmt.Sprintf("%s.%d", what, i))
		batches = append(batches, text(texts[i]))
	}
	past := s.history(number)
	begun := past.Now()
	receipts, err := part.SubmitAll(s.t.Context(), batches)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		for _, what := range texts {
			record(past, begun, what, eventlog.Appended{}, err)
		}
		return errors.Is(err, eventlog.ErrUnavailable)
	}
	doubtful := false
	for i, r := range receipts {
		s.mu.Unlock()
		done, err := r.Wait(s.t.Context())
		record(past, begun, texts[i], done, err)
		s.mu.Lock()
		switch {
		case err == nil && doubtful:
			s.t.Errorf("%s is stored behind one that is not", texts[i])
		case err == nil:
			s.ackedLocked(number, done.First, texts[i])
		case errors.Is(err, eventlog.ErrUncertain), errors.Is(err, eventlog.ErrClosed):
			doubtful = true
		case errors.Is(err, eventlog.ErrUnavailable):
			s.refused[texts[i]] = true
			doubtful = true
		}
	}
	return !doubtful
}

func (s *storm) ackedLocked(number int, at eventlog.Sequence, what string) {
	key := fmt.Sprint(number)
	if s.acked[key] == nil {
		s.acked[key] = map[eventlog.Sequence]string{}
	}
	s.acked[key][at] = what
}

// look finds out what became of a batch in doubt, as a producer would: it asks for the bounds, and
// reads up to there.
func (s *storm) look(p *process, part eventlog.Partition, from eventlog.Sequence, what string) (bool, eventlog.Sequence) {
	for {
		found, at, err := find(s.t.Context(), part, from, what)
		if err == nil {
			return found, at
		}
		select {
		case <-p.stop:
			return true, -1
		case <-time.After(time.Second):
		}
	}
}

func find(ctx context.Context, part eventlog.Partition, from eventlog.Sequence, what string) (bool, eventlog.Sequence, error) {
	b, err := part.Bounds(ctx)
	if err != nil {
		return false, 0, err
	}
	c, err := part.Cursor(ctx, eventlog.At(from))
	if err != nil {
		return false, 0, err
	}
	defer c.Close()
	for c.At() < b.Next {
		run, err := c.TryNext(ctx)
		if err != nil {
			return false, 0, err
		}
		for i, e := range run.Events {
			if string(e.Message) == what {
				return true, run.First + eventlog.Sequence(i), nil
			}
		}
	}
	return false, 0, nil
}

// follow reads a partition as it grows.
func (s *storm) follow(p *process, number int) {
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	go func() { <-p.stop; cancel() }()
	part, past := p.partition(s.t, number), s.history(number)
	var c eventlog.Cursor
	for next := eventlog.Sequence(0); part != nil && ctx.Err() == nil; {
		var err error
		if c == nil {
			if c, err = part.Cursor(ctx, eventlog.At(next)); err != nil {
				c = nil
				time.Sleep(time.Second)
				continue
			}
		}
		begun := past.Now()
		run, err := c.Next(ctx)
		if err != nil {
			if !errors.Is(err, eventlog.ErrUnavailable) && !errors.Is(err, eventlog.ErrClosed) && ctx.Err() == nil {
				s.t.Errorf("a reader at %d hears %v", next, err)
				return
			}
			time.Sleep(time.Second)
			continue
		}
		testkit.That(s.t, run.First == next || number == aged && run.First > next, "a reader at %d is given %d", next, run.First)
		s.mu.Lock()
		for i, e := range run.Events {
			s.readLocked(number, run.First+eventlog.Sequence(i), string(e.Message))
		}
		s.mu.Unlock()
		if n := run.Len(); n > 0 { // the last one says the most
			past.Read(0, begun, string(run.Events[n-1].Message), int64(run.Next())-1)
		}
		next = run.Next()
	}
}

// readLocked compares what one reader was given with what all others were.
func (s *storm) readLocked(number int, at eventlog.Sequence, what string) {
	key := fmt.Sprintf("%d:%d", number, at)
	if before, ok := s.read[key]; ok && before != what {
		s.t.Errorf("event %d of partition %d is %q to one and %q to another", at, number, before, what)
	}
	s.read[key] = what
}

// produce appends for a producer that all nodes append for in turns: who has claimed it reads what
// there is and goes on.
func (s *storm) produce(p *process, pauses *rand.Rand) {
	part := p.partition(s.t, s.parts)
	for part != nil {
		select {
		case <-p.stop:
			return
		case <-time.After(time.Duration(pauses.IntN(4000)) * time.Millisecond):
		}
		claim, err := part.Claim(s.t.Context(), 7)
		if err != nil {
			continue
		}
		next, err := count(s.t.Context(), part, claim.Next)
		for range 10 {
			if err == nil {
				b := text(fmt.Sprintf("p/%d", next))
				b.Producer, b.Claim = eventlog.Producer{ID: 7, First: int32(next), Set: true}, claim
				_, err = eventlog.Append(s.t.Context(), part, b)
				next++
			}
		}
	}
}

func count(ctx context.Context, part eventlog.Partition, below eventlog.Sequence) (n int, err error) {
	c, err := part.Cursor(ctx, eventlog.Earliest())
	if err != nil {
		return 0, err
	}
	defer c.Close()
	for c.At() < below {
		run, err := c.TryNext(ctx)
		if err != nil {
			return 0, err
		}
		n += run.Len()
	}
	return n, nil
}

// trouble is what goes wrong in one stretch of time.
func (s *storm) trouble() model.Faults {
	chance := func() float64 { return []float64{0, 0, 0.02, 0.1}[s.rand.IntN(4)] }
	return model.Faults{
		Delay: time.Duration(s.rand.IntN(20)) * time.Millisecond,
		Lost:  chance(), AckLost: chance(), Twice: chance(), Late: chance(), Unavailable: chance(),
		Lag: time.Duration(s.rand.IntN(3)) * 200 * time.Millisecond, AnnouncementLost: chance() * 5,
	}
}

// C1, C2, C5: acknowledged ⊆ read, once, in each writer's order; numbers are dense, and alike at every
// node, whatever goes wrong; and each partition is linearizable: porcupine finds one order of all
// appends, reads and questions for its end.
func TestFaults(t *testing.T) {
	if raced { // make test runs it without
		t.Skip("the race detector of go1.26 crashes in the timers of such a bubble")
	}
	begin := *stormSeed
	if begin == 0 {
		begin = rand.Uint64()
	}
	for i := range *stormSeeds {
		seed := begin + uint64(i)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runStorm(t, seed) })
		})
	}
}

func runStorm(t *testing.T, seed uint64) {
	y := newYard(seed, model.Faults{})
	y.cfg.TendInterval, y.cfg.indexFrames, y.cfg.markFrames, y.cfg.CacheBytes = time.Second, 16, 64, 64<<10
	s := &storm{yard: y, t: t, rand: rand.New(rand.NewPCG(seed, 1)), parts: 3, acked: map[string]map[eventlog.Sequence]string{}, refused: map[string]bool{}, read: map[string]string{}, histories: make([]history.Log, 3)}
	if seed%2 == 0 { // each partition has a stream of its own, which is often not followed for a while
		y.cfg.HubStreams, y.cfg.idle = 4, 500*time.Millisecond
	}
	writers := 0
	begin := func(name string) *process {
		p := s.start(name)
		ctx, cancel := context.WithCancel(t.Context())
		p.writers.Go(func() { testkit.Check(t, p.Run(ctx)) })
		p.writers.Go(func() { <-p.stop; cancel() })
		for number := aged; number < s.parts; number++ {
			writers++
			writer, pauses := fmt.Sprint(name, writers), rand.New(rand.NewPCG(seed, uint64(writers)))
			questions := rand.New(rand.NewPCG(seed, uint64(2000+writers)))
			p.writers.Go(func() { s.write(p, writer, number, pauses) })
			p.writers.Go(func() { s.follow(p, number) })
			p.writers.Go(func() { s.ask(p, number, questions) })
		}
		turns := rand.New(rand.NewPCG(seed, uint64(1000+writers)))
		p.writers.Go(func() { s.produce(p, turns) })
		return p
	}
	names := []string{"a", "b", "c"}
	nodes := []*process{begin("a"), begin("b"), begin("c")}
	for range 12 {
		y.cluster.SetFaults(s.trouble())
		victim := s.rand.IntN(len(nodes))
		switch s.rand.IntN(6) {
		case 0:
			y.cluster.CutOff(names[victim], time.Duration(s.rand.IntN(12))*time.Second)
		case 1:
			y.cluster.LoseLeader(hubStream("orders", s.rand.IntN(max(1, y.cfg.HubStreams))), time.Duration(s.rand.IntN(9))*time.Second)
		case 2:
			y.cluster.StopServers(time.Duration(s.rand.IntN(5)) * time.Second)
		case 3:
			nodes[victim].kill(t)
			nodes[victim] = begin(names[victim])
		}
		time.Sleep(time.Duration(s.rand.IntN(8)) * time.Second)
	}
	y.cluster.SetFaults(model.Faults{})
	time.Sleep(time.Minute) // all is well, and what was late has come
	for _, n := range nodes {
		close(n.stop)
	}
	for _, n := range nodes {
		n.writers.Wait()
	}
	s.check(append(nodes, s.start("d")))
}

// check compares what all nodes read with what the writers were told.
func (s *storm) check(nodes []*process) {
	t := s.t
	total, produced, calls := 0, 0, 0
	for number := range s.parts + 1 {
		var all []string
		for i, n := range nodes {
			p := n.partition(t, number)
			testkit.Must(t, testkit.Err(p.Sealed(t.Context())))
			got := readAll(t, p, eventlog.Earliest())
			if i == 0 {
				all = got
			}
			testkit.Slices(t, got, all, "node %s and partition %d", n.name, number)
		}
		s.checkOrder(all)
		if number == s.parts {
			produced = len(all)
		} else {
			testkit.Check(t, s.histories[number].Check(all), "partition %d", number)
			calls += s.histories[number].Len()
		}
		for at, what := range all {
			s.readLocked(number, eventlog.Sequence(at), what)
		}
		for at, what := range s.acked[fmt.Sprint(number)] {
			if at >= 0 {
				testkit.MustThat(t, int(at) < len(all) && all[at] == what, "%s was stored at %d", what, at)
				total++
			}
		}
	}
	s.checkAged(nodes)
	for _, stream := range testkit.Value(nodes[0].storage.Names(t.Context()))(t) {
		for _, d := range audit(t, nodes[0].Engine, stream, s.cluster.Messages(stream)) {
			t.Errorf("stream %s is found damaged: %+v", stream, d)
		}
	}
	testkit.That(t, total > 50 && produced > 10, "only %d were acknowledged, and %d of the producer", total, produced)
	t.Logf("%d acknowledged, %d of the producer, %d in doubt; histories of %d calls", total, produced, s.doubts, calls)
	for _, n := range nodes {
		testkit.Check(t, n.Close())
		n.storage.Close()
	}
}

// checkAged: where each node still has events of the log that loses them, it has what was acknowledged
// and what readers were given.
func (s *storm) checkAged(nodes []*process) {
	t := s.t
	for _, n := range nodes {
		p := n.partition(t, aged)
		b := testkit.Value(p.Sealed(t.Context()))(t)
		c := testkit.Value(p.Cursor(t.Context(), eventlog.Earliest()))(t)
		first, all := c.At(), readAll(t, p, eventlog.At(c.At()))
		testkit.Equal(t, first+eventlog.Sequence(len(all)), b.Next, "the end at node %s", n.name)
		s.checkOrder(all)
		for at, what := range all {
			s.readLocked(aged, first+eventlog.Sequence(at), what)
		}
		for at, what := range s.acked[fmt.Sprint(aged)] {
			testkit.MustThat(t, at < first || all[at-first] == what, "%s was stored at %d", what, at)
		}
	}
	testkit.That(t, testkit.Value(nodes[0].partition(t, aged).Bounds(t.Context()))(t).First > 0, "nothing was removed")
}

// checkOrder: nothing twice, nothing that was refused, each writer's in its order; of the producer,
// each of its numbers.
func (s *storm) checkOrder(all []string) {
	seen, last := map[string]bool{}, map[string]int{}
	for at, what := range all {
		testkit.MustThat(s.t, !seen[what], "%s is stored twice", what)
		testkit.MustThat(s.t, !s.refused[what], "%s was refused, and is stored", what)
		seen[what] = true
		writer, number, _ := strings.Cut(what, "/")
		var n, part int
		fmt.Sscanf(number, "%d.%d", &n, &part)
		n = n*10 + part
		testkit.MustThat(s.t, n >= last[writer], "%s comes behind %d", what, last[writer])
		last[writer] = n
		testkit.MustThat(s.t, writer != "p" || n == at*10, "event %d of the producer is %s", at, what)
	}
}
