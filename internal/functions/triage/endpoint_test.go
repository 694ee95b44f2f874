package triage

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

var (
	cut     = Result{Verdict: Unavailable, Reason: "reset"}
	refused = Result{Verdict: Unreachable, Reason: "refused"}
)

// R7, F4: what is down is nobody's fault, unless others succeed meanwhile.
func TestWhoseFaultItIs(t *testing.T) {
	type each = map[int64]Result
	asked := Result{Verdict: Unavailable, Wait: 5 * time.Second, Reason: "busy"}
	for _, test := range []struct {
		name    string
		sight   Sight
		accused bool
		whole   Result
		each    each
		want    Verdict
		after   bool // accused
	}{
		{"nobody else has called", Sight{}, false, cut, nil, Unavailable, false},
		{"others have found it down, too", Sight{Ill: true}, false, cut, nil, Unavailable, false},
		{"others have succeeded", Sight{Well: true}, false, cut, nil, Failed, true},
		{"and ask for time", Sight{Well: true}, false, asked, nil, Later, true},
		{"others have succeeded, and then found it down", Sight{Well: true, Ill: true}, false, cut, nil, Failed, true},
		{"others have succeeded before", Sight{}, true, cut, nil, Failed, true},
		{"others have succeeded before, and found it down since", Sight{Ill: true}, true, cut, nil, Unavailable, true},
		{"others have succeeded elsewhere", Sight{Elsewhere: true}, false, cut, nil, Failed, false},
		{"it was not reached by one of whom others elsewhere speak", Sight{Elsewhere: true}, false, refused, nil, Unreachable, false},
		{"it was not reached", Sight{Well: true}, false, refused, nil, Unreachable, false},
		{"it was not reached by one who is accused", Sight{Well: true}, true, refused, nil, Unreachable, true},
		{"it failed as any other", Sight{}, false, failed, nil, Failed, false},
		{"one event alone", Sight{Well: true}, false, done, each{1: cut, 2: done}, Failed, true},
		{"one event alone that was not reached", Sight{Well: true}, false, done, each{1: refused, 2: done}, Unreachable, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			u, whole, list := test.sight.Judge(Unit{Events: set("1-2"), Accused: test.accused}, test.whole, test.each)
			got := whole.Verdict
			if test.each != nil {
				got = list[1].Verdict
				testkit.Equal(t, list[2].Verdict, Done, "the other's verdict")
			}
			testkit.Equal(t, got, test.want, "the verdict")
			testkit.Equal(t, u.Accused, test.after, "accused")
		})
	}
}

// R7: what others show counts by when their calls began.
func TestWhatOthersShow(t *testing.T) {
	const me, other, third = 101, 102, 103
	mine := func(e *Endpoint) Since { // a call of mine that found it down has ended
		e.Down(e.Begin(), me)
		_, since := e.See(Ended{By: me, Broke: true}, Elsewhere{})
		return since
	}
	good := func(e *Endpoint) { e.Succeeded(e.Begin(), time.Time{}) }
	for _, test := range []struct {
		name string
		play func(e *Endpoint) Since
		want Sight
	}{
		{"nothing", func(e *Endpoint) Since { return Since{} }, Sight{}},
		{"there was no call before", func(e *Endpoint) Since { good(e); return Since{} }, Sight{}},
		{"a call that began and succeeded since", func(e *Endpoint) Since {
			since := mine(e)
			good(e)
			return since
		}, Sight{Well: true}},
		{"a call that was under way", func(e *Endpoint) Since {
			long := e.Begin()
			since := mine(e)
			e.Succeeded(long, time.Time{})
			return since
		}, Sight{}},
		{"another finds it down", func(e *Endpoint) Since {
			e.Down(e.Begin(), other)
			return mine(e)
		}, Sight{Ill: true}},
		{"only one oneself", func(e *Endpoint) Since {
			mine(e)
			return mine(e)
		}, Sight{}},
		{"another found it down, and then it was well", func(e *Endpoint) Since {
			e.Down(e.Begin(), other)
			good(e)
			return mine(e)
		}, Sight{}},
		{"of many the newest count", func(e *Endpoint) Since {
			e.Down(e.Begin(), third)
			_, since := e.See(Ended{By: me, Broke: true}, Elsewhere{})
			good(e)
			e.Down(e.Begin(), other)
			e.Down(e.Begin(), me)
			return since
		}, Sight{Well: true, Ill: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var e Endpoint
			got, _ := e.See(Ended{Since: test.play(&e), By: me, Broke: true}, Elsewhere{})
			testkit.Equal(t, got, test.want)
		})
	}
}

// R7: what succeeds elsewhere counts for one event, after a call of its own that broke, and not while
// it is down for others.
func TestWhatOthersShowElsewhere(t *testing.T) {
	const me, other = 101, 102
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	// call is one of mine for one event, that ends in so many seconds.
	call := func(s int) Ended { return Ended{By: me, Alone: true, Broke: true, Now: at(s)} }
	good := func(s int) Elsewhere { return Elsewhere{Good: at(s)} }
	for _, test := range []struct {
		name  string
		first Ended
		play  func(e *Endpoint)
		then  Elsewhere
		want  Sight
	}{
		{"a success since", call(0), nil, good(1), Sight{Elsewhere: true}},
		{"a success before", call(2), nil, good(1), Sight{}},
		{"none", call(0), nil, Elsewhere{}, Sight{}},
		{"a success since, and then it is down there", call(0), nil, Elsewhere{Good: at(1), Down: at(2)}, Sight{Ill: true}},
		{"it was down there, and then a success", call(0), nil, Elsewhere{Good: at(2), Down: at(1)}, Sight{Elsewhere: true}},
		{"down there, and well here since", call(0), func(e *Endpoint) { e.Succeeded(e.Begin(), at(3)) }, Elsewhere{Down: at(2)}, Sight{Well: true}},
		{"a success there, but down for others here", call(0), func(e *Endpoint) { e.Down(e.Begin(), other) }, good(1), Sight{Ill: true}},
		{"a success since a call that reached nothing", Ended{By: me, Alone: true, Now: at(0)}, nil, good(1), Sight{Elsewhere: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var e Endpoint
			e.Begin()
			_, since := e.See(test.first, Elsewhere{})
			if test.play != nil {
				test.play(&e)
			}
			next := call(9)
			next.Since = since
			got, _ := e.See(next, test.then)
			testkit.Equal(t, got, test.want)
		})
	}
	t.Run("it becomes known late", func(t *testing.T) {
		var e Endpoint
		c := call(0)
		for s := range 5 {
			c.Now = at(s)
			_, c.Since = e.See(c, good(-1))
		}
		sight, since := e.See(c, good(2)) // since the third
		testkit.Equal(t, sight, Sight{Elsewhere: true})
		c.Since = since
		sight, _ = e.See(c, good(3))
		testkit.Equal(t, sight, Sight{}, "it counts once")
		sight, _ = e.See(c, good(9))
		testkit.Equal(t, sight, Sight{Elsewhere: true}, "and again for the same event")
	})
	t.Run("of several events none, nor one that did not break it", func(t *testing.T) {
		var e Endpoint
		c := call(0)
		_, c.Since = e.See(c, Elsewhere{})
		several, unreached := c, c
		several.Alone, unreached.Broke = false, false
		for _, c := range []Ended{several, unreached} {
			sight, _ := e.See(c, good(1))
			testkit.Equal(t, sight, Sight{})
		}
		sight, _ := e.See(c, good(1))
		testkit.Equal(t, sight, Sight{Elsewhere: true}, "one alone is guilty after that")
	})
	t.Run("the next only after a success here", func(t *testing.T) {
		var e Endpoint
		guilty := func(s int) bool {
			e.Begin()
			c := call(s)
			_, c.Since = e.See(c, Elsewhere{})
			c.Now = at(s + 1)
			sight, _ := e.See(c, good(s+1))
			return sight.Elsewhere
		}
		testkit.That(t, guilty(10), "the first is guilty")
		testkit.That(t, !guilty(20), "the second is not")
		e.Succeeded(e.Begin(), at(30))
		testkit.That(t, guilty(40), "after a success one is")
		e.Anew()
		testkit.That(t, guilty(50), "after the circuit was closed one is")
	})
}

// R7, F3, F4: it uses up no retry and puts nothing away; after the retries it is waited for with
// back-off, which counts.
func TestAfterACallThatFoundItDown(t *testing.T) {
	type each = map[int64]Result
	two := Policy{Retries: 2, Delay: 50 * time.Millisecond}
	forever := Policy{Retries: -1, Delay: time.Second}
	for _, test := range []struct {
		name   string
		policy Policy
		unit   Unit
		whole  Result
		each   each
		want   []string
	}{
		{"the first waits as the policy says", two, Unit{Events: set("1-4")}, refused, nil, []string{`call 1-4 a1/0 down1 "refused" in 50ms`}},
		{"so does the last of its retries", two, Unit{Events: set("1-4"), Attempts: 1, Down: 1}, cut, nil, []string{`call 1-4 a2/0 down2 "reset" in 50ms`}},
		{"then it is waited for longer", two, Unit{Events: set("1-4"), Attempts: 2, Down: 2}, refused, nil, []string{`call 1-4 a3/0 down3 "refused" in 225ms counts`}},
		{"and longer", two, Unit{Events: set("1-4"), Attempts: 3, Down: 3}, refused, nil, []string{`call 1-4 a4/0 down4 "refused" in 450ms counts`}},
		{"up to a second", two, Unit{Events: set("1"), Attempts: 9, Down: 9}, refused, nil, []string{`call 1 a10/0 down10 "refused" in 900ms counts`}},
		{"or the policy's delay", Policy{Delay: time.Minute}, Unit{Events: set("1"), Attempts: 9, Down: 9}, refused, nil,
			[]string{`call 1 a10/0 down10 "refused" in 54s counts`}},
		{"what has used up its retries is not put away for it", two, Unit{Events: set("1"), Attempts: 2, Used: 2, Halved: true}, cut, nil,
			[]string{`call 1 a3/2 down1 halved "reset" in 50ms`}},
		{"what breaks for several is looked for in halves", two, Unit{Events: set("1-4"), Attempts: 2, Down: 2}, cut, nil,
			[]string{`call 1-2 a3/0 down3 "reset" in 225ms counts`, `call 3-4 a3/0 down3 "reset"`}},
		{"and in halves of halves", two, Unit{Events: set("1-2"), Attempts: 3, Down: 3}, cut, nil,
			[]string{`call 1 a4/0 down4 "reset" in 450ms counts`, `call 2 a4/0 down4 "reset"`}},
		{"a wish is heeded", two, Unit{Events: set("1"), Down: 7}, Result{Verdict: Unavailable, Wait: time.Hour}, nil,
			[]string{`call 1 a1/0 down8 in 1h0m0s counts`}},
		{"for ever is by the policy alone", forever, Unit{Events: set("1-2"), Attempts: 99, Down: 99}, cut, nil,
			[]string{`call 1-2 a100/0 down100 "reset" in 1s`}},
		{"who is guilty uses up the policy", two, Unit{Events: set("1"), Attempts: 5, Down: 5, Accused: true}, failed, nil,
			[]string{`call 1 a6/1 accused "no" in 50ms`}},
		{"and is put away", two, Unit{Events: set("1"), Attempts: 7, Used: 2, Accused: true}, failed, nil, []string{`away 1 a8/3 accused "no"`}},
		{"single events wait together", two, Unit{Events: set("1-5"), Attempts: 2, Used: 2, Down: 2}, done, each{2: refused, 3: cut, 4: failed, 5: untouched},
			[]string{`finish 1 a2/2 down2`, `call 2-3 a3/2 down3 "refused" in 225ms counts`, `away 4 a3/3 "no"`, `call 5 a2/2 down2`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Diff(t, test.want, shows(test.policy.After(test.unit, test.whole, test.each, 0.5)))
		})
	}
}
