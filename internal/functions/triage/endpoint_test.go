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
	for _, test := range []struct {
		name string
		play func(e *Endpoint) (since int64)
		want Sight
	}{
		{"nothing", func(e *Endpoint) int64 { return 0 }, Sight{}},
		{"there was no call before", func(e *Endpoint) int64 { e.Succeeded(e.Begin()); return 0 }, Sight{}},
		{"a call that began and succeeded since", func(e *Endpoint) int64 {
			e.Down(e.Begin(), me)
			since := e.Now()
			e.Succeeded(e.Begin())
			return since
		}, Sight{Well: true}},
		{"a call that was under way", func(e *Endpoint) int64 {
			long := e.Begin()
			e.Down(e.Begin(), me)
			since := e.Now()
			e.Succeeded(long)
			return since
		}, Sight{}},
		{"another finds it down", func(e *Endpoint) int64 {
			e.Down(e.Begin(), other)
			e.Down(e.Begin(), me)
			return e.Now()
		}, Sight{Ill: true}},
		{"only one oneself", func(e *Endpoint) int64 {
			e.Down(e.Begin(), me)
			e.Down(e.Begin(), me)
			return e.Now()
		}, Sight{}},
		{"another found it down, and then it was well", func(e *Endpoint) int64 {
			e.Down(e.Begin(), other)
			e.Succeeded(e.Begin())
			e.Down(e.Begin(), me)
			return e.Now()
		}, Sight{}},
		{"of many the newest count", func(e *Endpoint) int64 {
			e.Down(e.Begin(), third)
			since := e.Now()
			e.Succeeded(e.Begin())
			e.Down(e.Begin(), other)
			e.Down(e.Begin(), me)
			return since
		}, Sight{Well: true, Ill: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var e Endpoint
			testkit.Equal(t, e.See(test.play(&e), me), test.want)
		})
	}
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
