package suites

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// report is a line that go test -json prints.
type report struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// summary gathers what tests report: a package that passes is a line with how many of its tests ran and
// how many were skipped; what a test or package that fails printed is shown.
type summary struct {
	to      io.Writer
	printed map[string]*strings.Builder // by package and test
	ran     map[string]int              // by package
	skipped map[string]int              // by package
	passed  int
}

// summarize reads what go test -json prints to its end, and gives how many tests passed.
func summarize(to io.Writer, from io.Reader) int {
	s := summary{to: to, printed: make(map[string]*strings.Builder), ran: make(map[string]int), skipped: make(map[string]int)}
	for decoder := json.NewDecoder(from); ; {
		var r report
		if decoder.Decode(&r) != nil {
			return s.passed
		}
		s.take(r)
	}
}

func (s *summary) take(r report) {
	about := r.Package + " " + r.Test
	switch r.Action {
	case "output":
		if s.printed[about] == nil {
			s.printed[about] = new(strings.Builder)
		}
		s.printed[about].WriteString(r.Output)
		return
	case "pass", "skip", "fail":
	default:
		return
	}
	var printed string
	if p := s.printed[about]; p != nil {
		printed = p.String()
	}
	delete(s.printed, about)
	if r.Test == "" {
		s.end(r)
	} else {
		s.count(r, printed)
	}
	if r.Action == "fail" {
		fmt.Fprint(s.to, printed)
	}
}

// count notes how a test ended. One that was skipped in its bubble has passed to testing/synctest.
func (s *summary) count(r report, printed string) {
	switch {
	case r.Action == "skip", r.Action == "pass" && strings.Contains(printed, storagetest.NoServers):
		s.skipped[r.Package]++
	case r.Action == "pass":
		s.passed++
		s.ran[r.Package]++
	default:
		s.ran[r.Package]++
	}
}

// end tells how a package ended; one without tests is not worth a line.
func (s *summary) end(r report) {
	if r.Action == "skip" {
		return
	}
	fmt.Fprintf(s.to, "%-4s %s %.0fs: %d tests ran, %d were skipped\n", r.Action, r.Package, r.Elapsed, s.ran[r.Package], s.skipped[r.Package])
}

func TestASummaryCountsTestsAndShowsFailures(t *testing.T) {
	const from = `{"Action":"start","Package":"hubs"}
{"Action":"run","Package":"hubs","Test":"TestA"}
{"Action":"output","Package":"hubs","Test":"TestA","Output":"nobody needs to know\n"}
{"Action":"pass","Package":"hubs","Test":"TestA","Elapsed":1}
{"Action":"output","Package":"hubs","Test":"TestB","Output":"not here\n"}
{"Action":"skip","Package":"hubs","Test":"TestB","Elapsed":0}
{"Action":"output","Package":"hubs","Test":"TestBubble","Output":"    a_test.go:7: the clock of a bubble does not wait for servers: …\n"}
{"Action":"pass","Package":"hubs","Test":"TestBubble","Elapsed":0}
{"Action":"output","Package":"hubs","Output":"ok\n"}
{"Action":"pass","Package":"hubs","Elapsed":1.6}
{"Action":"skip","Package":"no/tests","Elapsed":0}
{"Action":"output","Package":"grid","Test":"TestC","Output":"this is wrong\n"}
{"Action":"fail","Package":"grid","Test":"TestC","Elapsed":1}
{"Action":"output","Package":"grid","Output":"FAIL\n"}
{"Action":"fail","Package":"grid","Elapsed":2}
`
	const want = `pass hubs 2s: 1 tests ran, 2 were skipped
this is wrong
fail grid 2s: 1 tests ran, 0 were skipped
FAIL
`
	var shown strings.Builder
	testkit.Equal(t, summarize(&shown, strings.NewReader(from)), 1, "tests that passed")
	testkit.Equal(t, shown.String(), want)
}
