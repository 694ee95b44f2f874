package retrylog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G5: what waits is handed out when its wait is over, to the millisecond, for every wait that
// there is.
func TestEveryWaitOfTheLadderIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, Config{Ladder: retry.Ladder()})
		y.run()
		random := rand.New(rand.NewPCG(1, 2))
		want := map[string]time.Time{}
		for round := range 3 {
			for i, wait := range retry.Ladder() {
				name := fmt.Sprintf("%d.%d", round, i)
				y.put(wait, thing(name))
				want[name] = time.Now().Add(wait)
				time.Sleep(time.Duration(random.IntN(5000)) * time.Millisecond)
			}
		}
		time.Sleep(24*time.Hour + time.Minute)
		y.stop()
		got := y.taker.handed()
		testkit.Equal(t, len(got), len(want), "handed out")
		for _, e := range got {
			if due := want[nameOf(e.Delivery)]; !e.at.Equal(due) || !e.Due.Equal(due) {
				t.Errorf("%s was due at %v by its pending delivery, handed out at %v, want %v", nameOf(e.Delivery), e.Due, e.at, due)
			}
		}
		if !slices.IsSortedFunc(got, func(a, b taken) int { return a.Due.Compare(b.Due) }) {
			t.Error("not in order of due times")
		}
	})
}

// G5: the wait is the least of the ladder that is not less.
func TestWaitsAreRoundedUp(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		for _, test := range []struct{ asked, got time.Duration }{
			{0, 100 * time.Millisecond},
			{-time.Hour, 100 * time.Millisecond},
			{100 * time.Millisecond, 100 * time.Millisecond},
			{101 * time.Millisecond, time.Second},
			{9 * time.Second, 10 * time.Second},
			{time.Minute, time.Minute},
			{time.Hour, time.Minute},
		} {
			batch := []pending.Delivery{thing("a")}
			testkit.Must(t, y.Put(t.Context(), test.asked, batch))
			testkit.Equal(t, time.Until(batch[0].Due), test.got, "a wait of %v became", test.asked)
		}
		time.Sleep(300 * time.Microsecond)
		batch := []pending.Delivery{thing("a")}
		testkit.Must(t, y.Put(t.Context(), time.Second, batch))
		testkit.Equal(t, time.Until(batch[0].Due), time.Second+700*time.Microsecond, "due in")
	})
}

func TestWhatIsDueTogetherIsHandedOutTogether(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.put(10*time.Second, thing("a"), thing("b"))
		time.Sleep(9 * time.Second)
		y.put(time.Second, thing("c"))
		y.put(10*time.Second, thing("d"))
		y.run()
		y.wantAfter(time.Second-time.Millisecond, "")
		for _, e := range y.wantAfter(time.Millisecond, "c a b") { // the shorter wait first, then as they were put
			testkit.Equal(t, e.batch, 1, "%s came in batch", nameOf(e.Delivery))
		}
		y.wantAfter(9*time.Second, "d")
	})
}

func TestAPutWakesASleeper(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.run()
		time.Sleep(12345 * time.Millisecond)
		y.put(time.Minute, thing("long"))
		time.Sleep(time.Second)
		y.put(100*time.Millisecond, thing("short"))
		y.wantAfter(100*time.Millisecond, "short")
		y.wantAfter(time.Minute-1100*time.Millisecond, "long")
	})
}

// G5: with jitter each is handed out when it is due, in order.
func TestJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(3, 4))
		y := newYard(t, Config{Jitter: func() float64 { return 3*random.Float64() - 1.5 }, Spread: 0.2})
		y.run()
		const n = 300
		var puts []time.Time
		for i := range n {
			y.put(time.Minute, thing(fmt.Sprint(i)))
			puts = append(puts, time.Now())
			time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
		}
		time.Sleep(2 * time.Minute)
		got := y.taker.handed()
		testkit.MustEqual(t, len(got), n, "handed out")
		early, late := 0, 0
		for _, e := range got {
			if !e.at.Equal(e.Due) {
				t.Errorf("%s was due at %v, handed out at %v", nameOf(e.Delivery), e.Due, e.at)
			}
			var i int
			_, _ = fmt.Sscan(nameOf(e.Delivery), &i)
			wait := e.at.Sub(puts[i])
			if wait < 48*time.Second || wait > 72*time.Second {
				t.Errorf("%s waited %v", nameOf(e.Delivery), wait)
			}
			if wait < 50*time.Second {
				early++
			}
			if wait > 70*time.Second {
				late++
			}
		}
		if early == 0 || late == 0 {
			t.Errorf("%d waited a sixth less, %d a sixth more", early, late)
		}
	})
}

// G5: a look-ahead that is too small for all costs order, but no entry waits for longer than
// the longest jitter.
func TestAFullLookAheadDelaysWithinTheJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(5, 6))
		y := newYard(t, Config{Jitter: func() float64 { return 2*random.Float64() - 1 }})
		retryLog := y.logs[3]
		retryLog.ahead.room = 20 * (heldBytes + 100)
		peak := 0
		y.taker.hook = func(e Entry) { peak = max(peak, retryLog.ahead.bytes); e.Done() }
		y.run()
		const n = 2000
		var puts []time.Time
		for i := range n {
			y.put(time.Minute, thing(fmt.Sprint(i)))
			puts = append(puts, time.Now())
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * time.Minute)
		got := y.taker.handed()
		testkit.MustEqual(t, len(got), n, "handed out")
		late := 0
		for _, e := range got {
			var i int
			_, _ = fmt.Sscan(nameOf(e.Delivery), &i)
			if wait := e.at.Sub(puts[i]); wait < 54*time.Second || wait > 66*time.Second {
				t.Errorf("%d waited %v", i, wait)
			}
			if e.at.Before(e.Due) {
				t.Errorf("%d came before it was due", i)
			}
			if e.at.After(e.Due) {
				late++
			}
		}
		if late == 0 || peak > retryLog.ahead.room+heldBytes+200 {
			t.Errorf("%d were late, %d bytes read ahead with room for %d", late, peak, retryLog.ahead.room)
		}
	})
}

// G5: what was not done when the process ended is handed out again, what was done is not.
func TestAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.put(time.Second, thing("a"), thing("b"), thing("c"))
		y.put(time.Minute, thing("later"))
		y.run()
		got := y.wantAfter(time.Second, "a b c")
		got[0].Done()
		got[0].Done() // safe twice
		got[2].Done() // above b, which holds the cursor
		y.restart()
		y.run()
		got = y.wantHanded("b c")
		done(got)
		y.restart()
		y.run()
		y.wantHanded("")
		got = y.wantAfter(59*time.Second, "later")
		y.stop()
		done(got) // after Run has ended
		testkit.Must(t, y.Save(t.Context()))
		y.kill()
		y.run()
		y.wantAfter(time.Hour, "")
		y.put(time.Second, thing("z"))
		y.wantAfter(time.Second, "z")
	})
}

// What fell due while nobody ran is handed out at once, in the order in which it was due.
func TestOverdueAfterAStart(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.put(time.Minute, thing("3"))
		y.put(10*time.Second, thing("2"))
		y.put(time.Second, thing("1"))
		y.restart()
		time.Sleep(time.Hour)
		y.put(100*time.Millisecond, thing("4"))
		y.run()
		y.wantHanded("1 2 3")
		y.wantAfter(100*time.Millisecond, "4")
	})
}

func TestRunTwice(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.run()
		synctest.Wait()
		if err := y.Run(t.Context(), y.taker.take); err == nil {
			t.Error("a second Run beside the first was allowed")
		}
		y.put(10*time.Second, thing("a"))
		time.Sleep(9500 * time.Millisecond)
		y.stop() // with a in the look-ahead
		y.run()
		y.wantAfter(500*time.Millisecond, "a")
	})
}

func TestRunEndsWithTheEngine(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.put(10*time.Second, thing("a"), thing("b"))
		ended := make(chan error)
		go func() { ended <- y.Run(t.Context(), y.taker.take) }()
		time.Sleep(time.Second)
		testkit.Must(t, y.engine.Close())
		testkit.ErrorIs(t, y.Put(t.Context(), time.Second, things(1)), eventlog.ErrClosed, "a put into a closed engine")
		testkit.ErrorIs(t, <-ended, eventlog.ErrClosed, "Run ended with")
	})
}

// A ladder may change from one release to the next: what waits in a retry log that is no more, or
// that now has another wait, is handed out when it said.
func TestAnotherLadder(t *testing.T) {
	for _, test := range []struct {
		name   string
		ladder []time.Duration
	}{
		{"shorter", []time.Duration{time.Second}},
		{"longer", []time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour, 2 * time.Hour}},
		{"of longer waits", []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour}},
		{"of shorter waits", []time.Duration{1, 2, 3, 4}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard(t, Config{})
				waits := y.cfg.Ladder
				for life := range 2 {
					for i, wait := range waits {
						for j := range 3 { // the first is read ahead, the others have to be found in time
							y.put(wait, thing(fmt.Sprintf("%d-%d-%d", life, i, j)))
							time.Sleep(time.Millisecond)
						}
					}
					y.cfg.Ladder = test.ladder
					y.restart()
				}
				start := time.Now()
				y.run()
				time.Sleep(5 * time.Hour)
				got := y.wantSome(12 + 3*len(waits))
				for _, e := range got {
					if late := e.at.Sub(e.Due); late != 0 && e.Due.After(start) {
						t.Errorf("%s was handed out %v late", nameOf(e.Delivery), late)
					}
				}
			})
		})
	}
}

// wantSome waits for nothing but what can happen now.
func (y *yard) wantSome(n int) []taken {
	y.t.Helper()
	synctest.Wait()
	got := y.taker.handed()
	testkit.Equal(y.t, len(got), n, "handed out")
	return got
}

func TestLargePutsAreSplit(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		var batch []pending.Delivery
		for i := range 40 {
			p := thing(fmt.Sprint(i))
			p.Event = append(p.Event, strings.Repeat("x", 1<<(i%18))...)
			batch = append(batch, p)
		}
		big := thing("big")
		big.Event = append(big.Event, strings.Repeat("x", 1<<20+1<<18)...)
		batch = append(batch, big)
		y.put(time.Second, batch...)
		y.run()
		time.Sleep(time.Second)
		got := y.wantSome(41)
		for i, e := range got {
			testkit.Equal(t, string(e.Event), string(batch[i].Event),
				"the event of %s came back otherwise", nameOf(e.Delivery))
		}
		big.Event = make([]byte, eventlog.MaxBatchBytes)
		testkit.ErrorIs(t, y.Put(t.Context(), time.Second, []pending.Delivery{big}), eventlog.ErrTooLarge,
			"an impossible pending delivery")
		testkit.Must(t, y.Put(t.Context(), time.Second, nil))
	})
}

// Settings that make no sense, and cursors that cannot be read or are a newer release's.
func TestOpenRefuses(t *testing.T) {
	y := newYard(t, Config{})
	stored := func(key, value string) func(*Config) {
		return func(c *Config) {
			testkit.Must(t, testkit.Err(c.Meta.CompareAndSet(t.Context(), key, 0, []byte(value))))
		}
	}
	failing := func(kind metatest.OpKind) func(*Config) {
		return func(c *Config) {
			c.Meta.(*metatest.Faulty).Inject(func(op metatest.Op) error {
				if op.Kind == kind {
					return errBroken
				}
				return nil
			})
		}
	}
	for name, test := range map[string]struct {
		edit func(c *Config)
		want string
	}{
		"no engine":              {func(c *Config) { c.Engine = nil }, "engine"},
		"no meta store":          {func(c *Config) { c.Meta = nil }, "meta store"},
		"no ladder":              {func(c *Config) { c.Ladder = nil }, "ladder"},
		"a wait of nothing":      {func(c *Config) { c.Ladder = []time.Duration{0, 1} }, "longer than nothing"},
		"a ladder that falls":    {func(c *Config) { c.Ladder = []time.Duration{2, 1} }, "rise"},
		"a ladder with a step":   {func(c *Config) { c.Ladder = []time.Duration{1, 1} }, "rise"},
		"too wide a spread":      {func(c *Config) { c.Spread = 1 }, "spread"},
		"a negative spread":      {func(c *Config) { c.Spread = -0.1 }, "spread"},
		"a later format":         {stored(retryLogsKey, `{"v":2}`), "format 2"},
		"no JSON":                {stored(retryLogsKey, "{"), retryLogsKey},
		"a parked log's no JSON": {stored(parkedUnder+"00", "{"), parkedUnder + "00"},
		"cursors out of reach":   {failing(metatest.OpGet), errBroken.Error()},
		"parked logs' cursors":   {failing(metatest.OpList), errBroken.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := y.cfg
			cfg.Meta = metatest.NewFaulty(metatest.NewMemory())
			test.edit(&cfg)
			if _, err := Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it gave %v, want something of %q", err, test.want)
			}
		})
	}
}
