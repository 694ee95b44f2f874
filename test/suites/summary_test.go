package suites

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
)

// report is a line that go test -json prints.
type report struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// summary gathers what tests report: of a package it tells how many of its tests ran, how many of them
// over servers, and how many were skipped; at the end, which and why. What a test or package that fails
// printed is shown.
type summary struct {
	to      io.Writer
	printed map[string]map[string]*strings.Builder // by package and test, of those that have not ended
	over    map[string][]string                    // tests that had storage on servers, by package
	ran     map[string][]string                    // by package
	skipped map[string][]string                    // by package
	why     map[string]map[string][]string         // tests by package, by why they were skipped
	all     totals
}

type totals struct{ ran, over, skipped, failed int }

// summarize reads what go test -json prints to its end, and gives what there was in all.
func summarize(to io.Writer, from io.Reader) totals {
	s := summary{
		to: to, printed: map[string]map[string]*strings.Builder{}, over: map[string][]string{},
		ran: map[string][]string{}, skipped: map[string][]string{}, why: map[string]map[string][]string{},
	}
	for decoder := json.NewDecoder(from); ; {
		var r report
		if decoder.Decode(&r) != nil {
			s.finish()
			return s.all
		}
		s.take(r)
	}
}

func (s *summary) take(r report) {
	of := s.printed[r.Package]
	if of == nil {
		of = map[string]*strings.Builder{}
		s.printed[r.Package] = of
	}
	switch r.Action {
	case "output":
		if of[r.Test] == nil {
			of[r.Test] = new(strings.Builder)
		}
		of[r.Test].WriteString(r.Output)
		return
	case "pass", "skip", "fail":
	default:
		return
	}
	var printed string
	if of[r.Test] != nil {
		printed = of[r.Test].String()
	}
	delete(of, r.Test)
	if r.Test == "" {
		s.end(r, of)
	} else {
		s.count(r, printed)
	}
	if r.Action == "fail" {
		fmt.Fprint(s.to, printed)
	}
}

// reason finds why a test was skipped in what it printed.
var reason = regexp.MustCompile(`(?m)^ +\w+\.go:\d+: (.*)$`)

// count notes how a test ended. One that was skipped in its bubble has passed to testing/synctest.
func (s *summary) count(r report, printed string) {
	if strings.Contains(printed, testengine.OnServers) || strings.Contains(printed, natstest.Running) {
		s.over[r.Package] = append(s.over[r.Package], r.Test)
	}
	if r.Action != "skip" && !(r.Action == "pass" && strings.Contains(printed, testengine.NoServers)) {
		s.ran[r.Package] = append(s.ran[r.Package], r.Test)
		if r.Action == "fail" {
			s.all.failed++
		}
		return
	}
	s.skipped[r.Package] = append(s.skipped[r.Package], r.Test)
	why := "it does not say why"
	if said := reason.FindAllStringSubmatch(printed, -1); said != nil {
		why = said[len(said)-1][1]
	}
	if s.why[why] == nil {
		s.why[why] = map[string][]string{}
	}
	s.why[why][r.Package] = append(s.why[why][r.Package], r.Test)
}

// end tells how a package ended; one without tests is not worth a line. A test that has not ended by
// then has hung, or ended the process.
func (s *summary) end(r report, left map[string]*strings.Builder) {
	if r.Action == "skip" {
		return
	}
	if r.Action == "fail" {
		for _, test := range slices.Sorted(maps.Keys(left)) {
			fmt.Fprintf(s.to, "%s has not ended:\n%s", test, left[test])
		}
	}
	ran, skipped := len(s.ran[r.Package]), len(s.skipped[r.Package])
	over := overServers(s.ran[r.Package], s.over[r.Package])
	fmt.Fprintf(s.to, "%-4s %s %.0fs: %d tests ran, %d of them over servers, %d were skipped\n", r.Action, short(r.Package), r.Elapsed, ran, over, skipped)
	s.all.ran, s.all.over, s.all.skipped = s.all.ran+ran, s.all.over+over, s.all.skipped+skipped
	if r.Action == "fail" && len(left) > 0 {
		s.all.failed++
	}
}

// overServers counts tests that opened storage there, or have it of the test that they are part of, or
// are made of such.
func overServers(ran, opened []string) (n int) {
	within := func(part, whole string) bool { return part == whole || strings.HasPrefix(part, whole+"/") }
	for _, test := range ran {
		if slices.ContainsFunc(opened, func(o string) bool { return within(test, o) || within(o, test) }) {
			n++
		}
	}
	return n
}

// finish gives the sums, and names what was skipped.
func (s *summary) finish() {
	for _, why := range slices.Sorted(maps.Keys(s.why)) {
		sum := 0
		for _, tests := range s.why[why] {
			sum += len(tests)
		}
		fmt.Fprintf(s.to, "%d were skipped: %s\n", sum, why)
		for _, of := range slices.Sorted(maps.Keys(s.why[why])) {
			fmt.Fprintf(s.to, "    %s: %s\n", short(of), strings.Join(s.why[why][of], " "))
		}
	}
	fmt.Fprintf(s.to, "in all %d tests ran, %d of them over servers, %d were skipped, %d failed\n", s.all.ran, s.all.over, s.all.skipped, s.all.failed)
}

// short is a package's path in the module.
func short(of string) string { return strings.TrimPrefix(of, "github.com/eventyard/eventyard/") }

func TestASummaryCountsTestsAndShowsFailures(t *testing.T) {
	const from = `{"Action":"start","Package":"hubs"}
{"Action":"run","Package":"hubs","Test":"TestA"}
{"Action":"output","Package":"hubs","Test":"TestA","Output":"nobody needs to know\n"}
{"Action":"pass","Package":"hubs","Test":"TestA","Elapsed":1}
{"Action":"output","Package":"hubs","Test":"TestOver","Output":"    a_test.go:3: storage is on servers\n"}
{"Action":"pass","Package":"hubs","Test":"TestOver/part","Elapsed":1}
{"Action":"pass","Package":"hubs","Test":"TestOver","Elapsed":1}
{"Action":"pass","Package":"hubs","Test":"TestOverNothing","Elapsed":1}
{"Action":"output","Package":"hubs","Test":"TestB","Output":"    a_test.go:8: not here\n"}
{"Action":"skip","Package":"hubs","Test":"TestB","Elapsed":0}
{"Action":"output","Package":"hubs","Test":"TestBubble","Output":"    a_test.go:7: the clock of a bubble does not wait for servers\n"}
{"Action":"pass","Package":"hubs","Test":"TestBubble","Elapsed":0}
{"Action":"output","Package":"hubs","Output":"ok\n"}
{"Action":"pass","Package":"hubs","Elapsed":1.6}
{"Action":"skip","Package":"no/tests","Elapsed":0}
{"Action":"output","Package":"grid","Test":"TestC","Output":"this is wrong\n"}
{"Action":"fail","Package":"grid","Test":"TestC","Elapsed":1}
{"Action":"skip","Package":"grid","Test":"TestD","Elapsed":1}
{"Action":"output","Package":"grid","Test":"TestE","Output":"it waits here\n"}
{"Action":"output","Package":"grid","Output":"FAIL\n"}
{"Action":"fail","Package":"grid","Elapsed":2}
`
	const want = `pass hubs 2s: 4 tests ran, 2 of them over servers, 2 were skipped
this is wrong
TestE has not ended:
it waits here
fail grid 2s: 1 tests ran, 0 of them over servers, 1 were skipped
FAIL
1 were skipped: it does not say why
    grid: TestD
1 were skipped: not here
    hubs: TestB
1 were skipped: the clock of a bubble does not wait for servers
    hubs: TestBubble
in all 5 tests ran, 2 of them over servers, 3 were skipped, 2 failed
`
	var shown strings.Builder
	testkit.Equal(t, summarize(&shown, strings.NewReader(from)), totals{ran: 5, over: 2, skipped: 3, failed: 2})
	testkit.Equal(t, shown.String(), want)
}
