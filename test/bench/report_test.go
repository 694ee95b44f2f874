package main

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/test/bench/measure"
)

func TestAReportShowsFiguresBesideTheirTargets(t *testing.T) {
	var r report
	r.goal("engine / raw", measure.Series{0.7, 0.5, 0.65}, "×", atLeast(0.6))
	r.goal("start", measure.Series{1.5}, "s", atMost(1))
	r.goal("out of reach", measure.Series{2}, "×", atLeast(5).unlessBeyond(measure.Series{3}))
	r.goal("within reach", measure.Series{2}, "×", atLeast(5).unlessBeyond(measure.Series{6}))
	r.goal("for information", measure.Series{3}, "×", target{})
	text := r.markdown()
	for _, want := range []string{
		"| engine / raw | 0.65 × | 0.50 – 0.70 | ≥ 0.60 × | reached |",
		"| start | 1.50 s | – | ≤ 1 s | missed |",
		"| out of reach | 2 × | – | ≥ 5 × | missed; the floor misses it, too |",
		"| within reach | 2 × | – | ≥ 5 × | missed |",
		"| for information | 3 × | – | – |  |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
}
