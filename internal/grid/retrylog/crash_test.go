package retrylog

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

var (
	crashSeeds = flag.Int("crash.seeds", 60, "how many seeds the power-cut test runs")
	crashSeed  = flag.Uint64("crash.seed", 0, "run this one seed only")
)

// G5: nothing that was put and not done is missing after power cuts at any moment, kills, full
// disks and a meta store that loses answers; and what was done and saved does not come back.
func TestPowerCuts(t *testing.T) { powerCuts(t, disk.Always) }

// The same where power cuts may cost what was put before them: nothing that was put later is
// taken for what was lost.
func TestPowerCutsWithoutSync(t *testing.T) { powerCuts(t, disk.OS) }

func powerCuts(t *testing.T, mode disk.SyncMode) {
	if *crashSeed != 0 {
		livesAndDeaths(t, *crashSeed, mode)
		return
	}
	for seed := 1; seed <= *crashSeeds && !t.Failed(); seed++ {
		livesAndDeaths(t, uint64(seed), mode)
	}
}

func livesAndDeaths(t *testing.T, seed uint64, mode disk.SyncMode) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrasher(t, seed)
		if mode != disk.Always {
			c.sync = mode
			c.restart()
		}
		for range 2 + c.random.IntN(3) {
			c.live()
			c.crash()
			c.reconcile()
			if t.Failed() {
				t.Logf("run again with: go test ./internal/grid/retrylog -run '^%s$' -crash.seed=%d", t.Name(), seed)
				return
			}
		}
	})
}

// crasher drives a yard and knows what it owes.
type crasher struct {
	*yard
	random *rand.Rand // of the test's goroutine
	fates  *rand.Rand // of the taker
	last   int
	mu     sync.Mutex
	// owed were put, acknowledged and not done; settled were done, and that was saved with
	// nothing before them undone. Guarded by mu.
	owed, settled map[string]bool
	// doubtful may have copies that nobody was told of. Guarded by mu.
	doubtful map[string]bool
	// held are entries that were handed out and are not done. Guarded by mu.
	held []Entry
}

var parkedLogs = []string{"red", "green"}

func newCrasher(t *testing.T, seed uint64) *crasher {
	random := rand.New(rand.NewPCG(seed, 1))
	c := &crasher{random: random, fates: rand.New(rand.NewPCG(seed, 5)), owed: map[string]bool{}, settled: map[string]bool{}, doubtful: map[string]bool{}}
	jitter := rand.New(rand.NewPCG(seed, 3))
	c.yard = newYard(t, Config{Jitter: func() float64 { return 2*jitter.Float64() - 1 }})
	c.mem.SetRand(rand.New(rand.NewPCG(seed, 4)))
	return c
}

// live is one life: a few dozen things happen, and at some moment the power may be gone.
func (c *crasher) live() {
	c.taker.hook = c.dispose
	c.run()
	if c.random.IntN(2) == 0 {
		c.meta.Inject(metatest.Shaky(rand.New(rand.NewPCG(c.random.Uint64(), 2)), meta.ErrUncertain, metatest.Unheard(meta.ErrUncertain)))
	}
	if c.random.IntN(3) > 0 {
		c.mem.FailAfter(c.random.IntN(200))
	}
	for range 5 + c.random.IntN(60) {
		c.step()
		synctest.Wait()
	}
}

func (c *crasher) step() {
	switch n := c.random.IntN(20); {
	case n < 9:
		c.putSome()
	case n < 13:
		time.Sleep(time.Duration(c.random.IntN(3000)) * time.Millisecond)
	case n < 15:
		c.takeFrom(c.parked(c.random), 1+c.random.IntN(5))
	case n < 17:
		c.finishSome()
	case n < 18:
		c.expect(c.Save(context.Background()))
	case n < 19:
		c.mem.SetCapacity(int64(c.random.IntN(2)) * 400_000)
	default:
		c.settle()
	}
}

func (c *crasher) putSome() {
	var batch []pending.Delivery
	for range 1 + c.random.IntN(4) {
		c.last++
		p := thing(fmt.Sprint(c.last))
		p.Event = append(p.Event, make([]byte, c.random.IntN(1<<c.random.IntN(16)))...)
		batch = append(batch, p)
	}
	var err error
	if c.random.IntN(4) > 0 {
		err = c.Put(context.Background(), c.cfg.Ladder[c.random.IntN(len(c.cfg.Ladder))], batch)
	} else {
		err = c.parked(c.random).Put(context.Background(), batch)
	}
	c.expect(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range batch {
		if err == nil {
			c.owed[nameOf(p)] = true
		} else {
			c.doubtful[nameOf(p)] = true
		}
	}
}

func (c *crasher) parked(random *rand.Rand) *Parked {
	return c.Parked(parkedLogs[random.IntN(len(parkedLogs))])
}

// expect wants no errors but those that were brought about.
func (c *crasher) expect(err error) {
	for _, known := range []error{
		nil, vfs.ErrPowerLost, meta.ErrUncertain, eventlog.ErrUncertain, eventlog.ErrNoSpace, syscall.ENOSPC,
	} {
		if errors.Is(err, known) {
			return
		}
	}
	c.t.Errorf("unexpected: %v", err)
}

// dispose is what becomes of an entry that is handed out.
func (c *crasher) dispose(e Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wantAlive(e)
	switch c.fates.IntN(4) {
	case 0: // delivered
		c.doneLocked(e)
	case 1: // on a parked log, where that works
		if err := c.parked(c.fates).Put(context.Background(), []pending.Delivery{e.Delivery}); err == nil {
			e.Done()
			break
		}
		c.doubtful[nameOf(e.Delivery)] = true
		c.held = append(c.held, e)
	default:
		c.held = append(c.held, e)
	}
}

func (c *crasher) wantAlive(e Entry) {
	if c.settled[nameOf(e.Delivery)] {
		c.t.Errorf("%s is back, which was done and saved", nameOf(e.Delivery))
	}
}

func (c *crasher) doneLocked(e Entry) {
	e.Done()
	delete(c.owed, nameOf(e.Delivery))
}

func (c *crasher) takeFrom(s *Parked, limit int) bool {
	got, err := s.TryTake(context.Background(), limit, 1<<20)
	c.expect(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range got {
		c.wantAlive(e)
	}
	c.held = append(c.held, got...)
	return len(got) > 0
}

func (c *crasher) finishSome() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.random.Shuffle(len(c.held), func(i, j int) { c.held[i], c.held[j] = c.held[j], c.held[i] })
	n := c.random.IntN(len(c.held) + 1)
	for _, e := range c.held[:n] {
		c.doneLocked(e)
	}
	c.held = c.held[n:]
}

// settle does all there is and saves that.
func (c *crasher) settle() {
	c.takeAll()
	c.mu.Lock()
	var names []string
	for _, e := range c.held {
		names = append(names, nameOf(e.Delivery))
		c.doneLocked(e)
	}
	c.held = nil
	c.mu.Unlock()
	err := c.Save(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.expect(err); err != nil || len(c.owed) > 0 || len(c.held) > 0 {
		return // the storage was at fault
	}
	for _, name := range names {
		c.settled[name] = !c.doubtful[name]
	}
}

// takeAll waits until everything was due and takes it off the parked logs.
func (c *crasher) takeAll() {
	time.Sleep(2 * c.cfg.Ladder[len(c.cfg.Ladder)-1])
	synctest.Wait()
	for _, name := range parkedLogs {
		for c.takeFrom(c.Parked(name), 100) {
		}
	}
}

// crash ends the process or the machine.
func (c *crasher) crash() {
	c.meta.Inject(nil)
	after, lost := c.mem.CrashProcess, false
	if c.random.IntN(3) > 0 {
		after = func() *vfs.Mem { return c.mem.CutPower(c.random) }
		lost = c.sync != disk.Always
	}
	c.yard.crash(after())
	c.mem.SetCapacity(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = nil
	if lost {
		clear(c.owed) // nothing is promised of these
	}
}

// reconcile wants everything that is owed to be there.
func (c *crasher) reconcile() {
	seen := map[string]bool{}
	c.taker.hook = func(e Entry) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.wantAlive(e)
		c.held = append(c.held, e)
	}
	c.run()
	c.takeAll()
	c.mu.Lock()
	for _, e := range c.held {
		seen[nameOf(e.Delivery)] = true
	}
	for name := range c.owed {
		if !seen[name] {
			c.t.Errorf("%s was put and not done, and is missing", name)
		}
	}
	c.mu.Unlock()
	c.wantCounted()
	c.stop()
}

// wantCounted wants the counts to be of what is held. What is on a parked log is not counted.
func (c *crasher) wantCounted() {
	var waiting int64
	for _, w := range c.Waiting("mailer2345678") {
		waiting += w.Count
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range parkedLogs {
		waiting += testkit.Value(c.Parked(name).Len(context.Background()))(c.t)
	}
	testkit.Equal(c.t, waiting, int64(len(c.held)), "are counted, %d handed out and not done", len(c.held))
}
