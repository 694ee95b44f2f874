package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/bench/measure"
)

func TestTheReportSaysWhatIsWonAndWhatIsLost(t *testing.T) {
	var r report
	r.ratio(
		ratio{what: "produce", values: measure.Series{1.8, 1.2, 1.5}},
		ratio{what: "consume", values: measure.Series{0.9, 0.8, 0.85}},
		ratio{what: "latency", values: measure.Series{0.1}, lowWins: true},
		ratio{what: "memory", values: measure.Series{3}, lowWins: true},
		ratio{what: "even", values: measure.Series{1.001}},
		ratio{what: "beside the ceiling", values: measure.Series{0.7}, ceiling: true},
		ratio{what: "nobody was there"})
	text := r.markdown()
	for _, want := range []string{
		"| produce | 1.50 × | 1.20 – 1.80 | more | won | – |  |",
		"| consume | 0.85 × | 0.80 – 0.90 | more | lost | – |  |",
		"| latency | 0.10 × | – | less | won | – |  |",
		"| memory | 3 × | – | less | lost | – |  |",
		"| even | 1.00 × | – | more | even | – |  |",
		"| beside the ceiling | 0.70 × | – | – |  | – |  |",
		"### What the yard loses\n\n- consume: 0.85 × (0.80 – 0.90)\n- memory: 3 × (–)\n",
		"### Targets that are missed\n\nNone, by medians of this run.\n",
	} {
		testkit.That(t, strings.Contains(text, want), "no %q in\n%s", want, text)
	}
	testkit.That(t, !strings.Contains(text, "nobody was there"), "a ratio of nothing is shown:\n%s", text)
}

// What wins by little may miss its target, and what loses by little reach it. Where a server that throws away does not
// come to the target either, the yard is measured by that server. // K1
func TestTheReportSaysWhichTargetsAreReached(t *testing.T) {
	half := bar{bound: 1.5, orCeiling: true}
	var r report
	r.ratio(
		ratio{what: "wins by little", values: measure.Series{1.4}, goal: goal{bar: half}},
		ratio{what: "wins by far", values: measure.Series{1.5}, goal: goal{bar: half}},
		ratio{what: "loses by little", values: measure.Series{0.96}, goal: goal{bar: bar{bound: 0.95}}},
		ratio{what: "memory", values: measure.Series{0.2}, lowWins: true, goal: goal{bar: bar{bound: 0.1}}},
		ratio{what: "start", values: measure.Series{0.1}, lowWins: true, goal: goal{bar: bar{bound: 0.1}}},
		ratio{what: "room enough", values: measure.Series{1.4}, goal: goal{bar: half, room: measure.Series{1.6}, used: measure.Series{0.95}}},
		ratio{what: "no room", values: measure.Series{1.1}, goal: goal{bar: half, room: measure.Series{1.2, 1.1}, used: measure.Series{0.93, 0.91}}},
		ratio{what: "no room was needed", values: measure.Series{1.6}, goal: goal{bar: half, room: measure.Series{1.3}, used: measure.Series{0.8}}},
		ratio{what: "no room, and slow", values: measure.Series{1.01}, goal: goal{bar: half, room: measure.Series{1.3}, used: measure.Series{0.8}}})
	text := r.markdown()
	for _, want := range []string{
		"| wins by little | 1.40 × | – | more | won | ≥ 1.50 × | missed |",
		"| wins by far | 1.50 × | – | more | won | ≥ 1.50 × | reached |",
		"| loses by little | 0.96 × | – | more | lost | ≥ 0.95 × | reached |",
		"| memory | 0.20 × | – | less | won | ≤ 0.10 × | missed |",
		"| start | 0.10 × | – | less | won | ≤ 0.10 × | reached |",
		"| room enough | 1.40 × | – | more | won | ≥ 1.50 × | missed |",
		"| no room | 1.10 × | – | more | won | ≥ 0.90 × of the ceiling, which is 1.15 × | 0.92 × of it: reached |",
		"| no room was needed | 1.60 × | – | more | won | ≥ 1.50 × | reached |",
		"| no room, and slow | 1.01 × | – | more | won | ≥ 0.90 × of the ceiling, which is 1.30 × | 0.80 × of it: missed |",
		"### Targets that are missed\n\n- wins by little: 1.40 × (target ≥ 1.50 ×)\n- memory: 0.20 × (target ≤ 0.10 ×)\n" +
			"- room enough: 1.40 × (target ≥ 1.50 ×)\n- no room, and slow: 1.01 × (target ≥ 0.90 × of the ceiling, which is 1.30 ×)\n",
	} {
		testkit.That(t, strings.Contains(text, want), "no %q in\n%s", want, text)
	}
}

func TestWhoIsMissingIsSaidOnce(t *testing.T) {
	var r report
	for range 2 {
		r.leaveOut("Redis", errors.New("there is no redis-server: apt-get install redis-server\nand more"))
	}
	testkit.Equal(t, strings.Count(r.markdown(), "- Left out: Redis: there is no redis-server: apt-get install redis-server\n"), 1)
	testkit.That(t, !strings.Contains(r.markdown(), "and more"), "the rest of a long error is shown")
}
