package broker

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	kafka "github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

var (
	crashSeeds = flag.Int("crash.seeds", 100, "how many seeds the producers' power-cut test runs")
	crashSeed  = flag.Uint64("crash.seed", 0, "run this one seed only")
)

// H2, K3: producers that send again whatever was not acknowledged, as events or as frames, through
// power cuts, failing disks, lost answers of the meta store and new epochs, have everything stored
// exactly once and in order; and an epoch that has begun stays fenced against lower ones.
func TestProducersThroughPowerCuts(t *testing.T) {
	if *crashSeed != 0 {
		runCrashes(t, *crashSeed)
		return
	}
	for shard := range 2 {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			for seed := shard + 1; seed <= *crashSeeds && !t.Failed(); seed += 2 {
				runCrashes(t, uint64(seed))
			}
		})
	}
}

func runCrashes(t *testing.T, seed uint64) {
	y := &crashYard{t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 1)), mem: vfs.NewMem(), Memory: metatest.NewMemory()}
	y.mem.SetRand(rand.New(rand.NewPCG(seed, 2)))
	for id := range 1 + y.rnd.Int64N(3) {
		y.senders = append(y.senders, &sender{y: y, id: id, framed: y.rnd.IntN(2) == 0, positions: make(map[int]eventlog.Sequence)})
	}
	for range 3 + y.rnd.IntN(3) {
		y.live()
	}
	y.calm = true
	y.live()
	if t.Failed() {
		t.Logf("run again with: go test ./internal/hubs/broker -run TestProducersThroughPowerCuts -crash.seed=%d", seed)
	}
}

// crashYard is a broker under test, through several lives, and those who publish to it.
type crashYard struct {
	t       *testing.T
	seed    uint64
	rnd     *rand.Rand
	mem     *vfs.Mem
	Memory  *metatest.Memory
	senders []*sender
	broker  *Broker
	// calm: this life meets no faults, and is to finish everything.
	calm bool
}

// live is one life of the process.
func (y *crashYard) live() {
	faulty := vfs.NewFaulty(y.mem)
	engine, err := disk.Open(disk.Config{FS: faulty, SegmentBytes: 4 << 10, Log: testkit.Quiet()})
	testkit.Must(y.t, err, "seed %d", y.seed)
	store := metatest.NewFaulty(y.Memory)
	y.broker = open(y.t, Config{Engine: engine, Meta: store, Translators: kafka.Translators()})
	if _, err := y.broker.EnsureHub(y.t.Context(), HubConfig{Name: "orders", Partitions: 1}, nil); err != nil {
		y.t.Fatalf("seed %d: %v", y.seed, err)
	}
	y.check(false)
	for _, s := range y.senders {
		s.producer = nil
	}
	if !y.calm {
		y.disturb(faulty, store)
	}
	y.work()
	y.end(engine)
}

// disturb makes this life end at some write, or fail now and then, or both.
func (y *crashYard) disturb(faulty *vfs.Faulty, store *metatest.Faulty) {
	if y.rnd.IntN(3) > 0 {
		y.mem.FailAfter(y.rnd.IntN(80))
	}
	if y.rnd.IntN(2) == 0 {
		store.Inject(y.shaky(2 + y.rnd.IntN(4)))
	}
	if y.rnd.IntN(2) == 0 {
		faults := rand.New(rand.NewPCG(y.seed, y.rnd.Uint64()))
		faulty.Inject(func(op vfs.Op) error {
			if (op.Kind == vfs.OpSync || op.Kind == vfs.OpWrite) && faults.IntN(12) == 0 {
				return syscall.EIO
			}
			return nil
		})
	}
}

func (y *crashYard) work() {
	if y.calm {
		for _, s := range y.senders {
			s.send()
			s.send()
		}
		y.check(true)
		return
	}
	for range 10 + y.rnd.IntN(40) {
		s := y.senders[y.rnd.IntN(len(y.senders))]
		switch n := y.rnd.IntN(20); {
		case n < 14:
			s.send()
		case n < 16:
			s.beginEpoch()
		case n < 17:
			s.tryLowerEpoch()
		case n < 18:
			y.broker.ledgers.tend(y.t.Context(), 0)
		default:
			_, _ = y.broker.Publish(y.t.Context(), "orders", Target{}, events("plain"))
		}
	}
}

// end pulls the plug, or stops the process only. What is under way comes to its end first:
// a goroutine of this life must not meet the next one.
func (y *crashYard) end(engine *disk.Engine) {
	var after *vfs.Mem
	if y.rnd.IntN(4) == 0 {
		after = y.mem.CrashProcess()
	} else {
		after = y.mem.CutPower(y.rnd)
	}
	_ = engine.Close()
	y.broker.ledgers.drain(context.Background())
	y.mem = after
	y.mem.SetRand(rand.New(rand.NewPCG(y.seed, y.rnd.Uint64())))
}

// check reads the log: of each sender all that was acknowledged is there, once and in
// order, frames where they were said to be, and what was not, maybe, behind it; or for certain,
// where all is to be there.
func (y *crashYard) check(all bool) {
	y.t.Helper()
	found, positions := make(map[string][]string), make(map[string]eventlog.Sequence)
	for at, m := range readAll(y.t, y.broker, "orders")[0] {
		who, _, _ := strings.Cut(m, " ")
		positions[m] = eventlog.Sequence(at)
		found[who] = append(found[who], m)
	}
	for _, s := range y.senders {
		got := found[s.name()]
		least, most := s.acknowledged, s.acknowledged+s.underWay()
		if all {
			least = most
		}
		if len(got) < least || len(got) > most {
			y.t.Errorf("seed %d: %d events of %s, want %d to %d", y.seed, len(got), s.name(), least, most)
		}
		for i, m := range got {
			testkit.MustEqual(y.t, m, s.message(i), "seed %d: event %d of %s", y.seed, i, s.name())
		}
		for n, position := range s.positions {
			testkit.Equal(y.t, positions[s.message(n)], position, "seed %d: where event %d of %s is", y.seed, n, s.name())
		}
	}
}

// sender publishes a sequence of messages, and sends again what was not acknowledged.
type sender struct {
	y        *crashYard
	id       int64
	producer *Producer // nil: it has to begin
	// epoch is the highest that has begun for certain, if any has begun.
	epoch int16
	begun bool
	// unsure: another may have begun, which failed without an answer.
	unsure bool
	// acknowledged is how many messages are stored for certain; the batches behind them
	// are under way, by how many messages each has.
	acknowledged int
	batches      []int

	// framed: it sends frames, in epochs of its own choice. base is how many messages were acknowledged
	// when the epoch began, and shown says that it has stored something. positions are those of frames,
	// by their first message.
	framed    bool
	base      int
	shown     bool
	positions map[int]eventlog.Sequence
}

// waiter is what is under way, in either form.
type waiter interface {
	Wait(context.Context) (Published, error)
}

func (s *sender) name() string         { return fmt.Sprintf("sender%d", s.id) }
func (s *sender) message(n int) string { return fmt.Sprintf("%s %d", s.name(), n) }

func (s *sender) underWay() (n int) {
	for _, count := range s.batches {
		n += count
	}
	return n
}

// submit sends messages, the first of which is number at.
func (s *sender) submit(at, count int) (waiter, error) {
	messages := make([]string, count)
	for i := range messages {
		messages[i] = s.message(at + i)
	}
	if s.framed {
		frames := []eventlog.Batch{frameOf(s.id, s.epoch, int32(at-s.base), messages...)}
		return s.y.broker.SubmitFrames(s.y.t.Context(), "orders", FrameTarget{}, frames)
	}
	return s.producer.Submit(s.y.t.Context(), int32(at+1), events(messages...))
}

// ready has a producer of the present epoch, begun anew if need be.
func (s *sender) ready() bool {
	if s.producer != nil || s.framed {
		return true
	}
	cfg := ProducerConfig{ID: &s.id, Epoch: &s.epoch}
	if s.unsure {
		cfg.Epoch = nil
	}
	if cfg.Epoch != nil && s.begun && s.y.rnd.IntN(2) == 0 {
		cfg.Last = new(int32(s.acknowledged)) // and sends all again that is behind it
	}
	return s.begin(cfg)
}

func (s *sender) begin(cfg ProducerConfig) bool {
	p, err := s.y.broker.Producer(s.y.t.Context(), "orders", "0", cfg)
	if err != nil {
		s.producer = nil
		s.unsure = s.unsure || cfg.Epoch == nil
		s.blame("begin", err)
		return false
	}
	if p.Epoch() < s.epoch {
		s.y.t.Errorf("seed %d: %s got epoch %d after %d", s.y.seed, s.name(), p.Epoch(), s.epoch)
	}
	s.producer, s.epoch, s.begun, s.unsure = p, p.Epoch(), true, false
	if cfg.Last != nil && p.Last() != *cfg.Last {
		s.y.t.Errorf("seed %d: %s gave %d and is told %d", s.y.seed, s.name(), *cfg.Last, p.Last())
	}
	s.learn(int(p.Last()))
	return true
}

// learn takes what the broker says is stored as acknowledged: whole batches, and never
// less than it acknowledged before.
func (s *sender) learn(stored int) {
	for s.acknowledged < stored && len(s.batches) > 0 {
		s.acknowledged += s.batches[0]
		s.batches = s.batches[1:]
	}
	if s.acknowledged != stored {
		s.y.t.Errorf("seed %d: %s has %d acknowledged, the broker knows %d", s.y.seed, s.name(), s.acknowledged, stored)
	}
}

// blame lets faults pass that were made on purpose.
func (s *sender) blame(doing string, err error) {
	for _, expected := range []error{
		vfs.ErrPowerLost, syscall.EIO, errShaky, eventlog.ErrFenced, eventlog.ErrUncertain, meta.ErrUncertain, meta.ErrNoSpace,
	} {
		if errors.Is(err, expected) && !s.y.calm {
			return
		}
	}
	s.y.t.Errorf("seed %d: %s of %s: %v", s.y.seed, doing, s.name(), err)
}

// send submits what is under way again, and some more, without waiting; then it waits.
func (s *sender) send() {
	if !s.ready() {
		return
	}
	if !s.y.calm || len(s.batches) == 0 {
		for range 1 + s.y.rnd.IntN(3) {
			s.batches = append(s.batches, 1+s.y.rnd.IntN(4))
		}
	}
	var pending []waiter
	at := s.acknowledged
	for _, count := range s.batches {
		p, err := s.submit(at, count)
		if err != nil {
			s.blameBehind(len(pending), err)
			break
		}
		pending = append(pending, p)
		at += count
	}
	s.wait(pending)
}

// blameBehind allows a batch to be out of order where one before it may have failed meanwhile.
func (s *sender) blameBehind(before int, err error) {
	if before > 0 && errors.Is(err, ErrOutOfOrder) {
		return
	}
	s.blame("submit", err)
}

// wait takes in the answers. One that says stored says so of all before it, which then
// must not have been refused.
func (s *sender) wait(pending []waiter) {
	waited, refused, failed := 0, false, false
	for _, p := range pending {
		stored, err := p.Wait(s.y.t.Context())
		waited++
		forgotten := errors.Is(err, ErrRepeatTooOld)
		if err != nil && !forgotten {
			s.blame("wait", err)
			refused, failed = refused || certain(err), true
			continue
		}
		if refused {
			s.y.t.Errorf("seed %d: %s: a batch was stored behind one that was refused", s.y.seed, s.name())
		}
		first := s.acknowledged
		for ; waited > 0; waited-- {
			first = s.acknowledged
			s.acknowledged += s.batches[0]
			s.batches = s.batches[1:]
		}
		if s.shown = true; s.framed && !forgotten {
			s.positions[first] = stored.First
		}
	}
	if failed && s.y.rnd.IntN(2) == 0 {
		s.producer = nil // as one does who lost the connection
	}
}

// beginEpoch takes over from itself, and shows that the epoch before is over.
func (s *sender) beginEpoch() {
	if s.framed && len(s.batches) == 0 && s.shown { // else what is under way would be stored in both
		s.epoch++
		s.base, s.shown = s.acknowledged, false
	}
	if !s.begun || s.framed {
		return
	}
	old := s.producer
	if !s.begin(ProducerConfig{ID: &s.id}) || old == nil {
		return
	}
	if _, err := old.Submit(s.y.t.Context(), int32(s.acknowledged+1), events("never")); !errors.Is(err, ErrProducerFenced) {
		s.y.t.Errorf("seed %d: %s: an epoch that was over: %v", s.y.seed, s.name(), err)
	}
}

// tryLowerEpoch must not succeed once a higher one has begun, in whatever life.
func (s *sender) tryLowerEpoch() {
	if s.epoch == 0 || s.framed && !s.shown {
		return
	}
	err := s.sendNever(s.epoch - 1)
	if err == nil {
		s.y.t.Errorf("seed %d: %s: epoch %d sent after %d began", s.y.seed, s.name(), s.epoch-1, s.epoch)
	} else if !errors.Is(err, ErrProducerFenced) {
		s.blame("a lower epoch", err)
	}
}

// sendNever sends something in an epoch.
func (s *sender) sendNever(epoch int16) error {
	ctx := s.y.t.Context()
	if s.framed {
		return testkit.Err(s.y.broker.SubmitFrames(ctx, "orders", FrameTarget{}, []eventlog.Batch{frameOf(s.id, epoch, 0, "never")}))
	}
	p, err := s.y.broker.Producer(ctx, "orders", "0", ProducerConfig{ID: &s.id, Epoch: &epoch})
	if err != nil {
		return err
	}
	return testkit.Err(p.Submit(ctx, int32(s.acknowledged+1), events("never")))
}

var errShaky = errors.New("the store did not answer")

// shaky has one in so many changes of an entry fail, before or after it is made.
func (y *crashYard) shaky(one int) func(metatest.Op) error {
	rnd := rand.New(rand.NewPCG(y.seed, y.rnd.Uint64())) // used by one goroutine at a time
	return func(op metatest.Op) error {
		if op.Kind != metatest.OpSet || rnd.IntN(one) > 0 {
			return nil
		}
		lost := errors.Join(errShaky, meta.ErrUncertain)
		switch rnd.IntN(4) {
		case 0:
			return lost
		case 1:
			return metatest.Unheard(lost)
		}
		return errors.Join(errShaky, meta.ErrNoSpace)
	}
}
