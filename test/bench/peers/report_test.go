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
		"| produce | 1.50 × | 1.20 – 1.80 | more | won |",
		"| consume | 0.85 × | 0.80 – 0.90 | more | lost |",
		"| latency | 0.10 × | – | less | won |",
		"| memory | 3 × | – | less | lost |",
		"| even | 1.00 × | – | more | even |",
		"| beside the ceiling | 0.70 × | – | – |  |",
		"### What the yard loses\n\n- consume: 0.85 × (0.80 – 0.90)\n- memory: 3 × (–)\n",
	} {
		testkit.That(t, strings.Contains(text, want), "no %q in\n%s", want, text)
	}
	testkit.That(t, !strings.Contains(text, "nobody was there"), "a ratio of nothing is shown:\n%s", text)
}

func TestWhoIsMissingIsSaidOnce(t *testing.T) {
	var r report
	for range 2 {
		r.leaveOut("Redis", errors.New("there is no redis-server: apt-get install redis-server\nand more"))
	}
	testkit.Equal(t, strings.Count(r.markdown(), "- Left out: Redis: there is no redis-server: apt-get install redis-server\n"), 1)
	testkit.That(t, !strings.Contains(r.markdown(), "and more"), "the rest of a long error is shown")
}
