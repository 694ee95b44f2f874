package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values series
		want   float64
	}{
		{"one value is its own median", series{3}, 3},
		{"of three the middle one, whatever their order", series{9, 1, 2}, 2},
		{"of four the mean of the two in the middle", series{1, 2, 4, 100}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.Equal(t, tt.values.median(), tt.want)
		})
	}
}

func TestRatiosAreTakenRoundByRound(t *testing.T) {
	// Both sides are ten times slower in the second round; the ratio is not.
	got := series{100, 10, 120}.over(series{50, 5, 60})
	for i, v := range got {
		testkit.Equal(t, v, 2, "round %d", i)
	}
}

func TestNumbersHaveThreeDigitsThatCount(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0", 0.0012: "0.0012", 0.618: "0.62", 1: "1", 15: "15", 15.26: "15.3", 456.7: "457",
		9876.4: "9876", 12345: "12.3 k", 7654321: "7.65 M",
	} {
		testkit.Equal(t, number(value), want, "%v", value)
	}
}

func TestAReportShowsFiguresBesideTheirTargets(t *testing.T) {
	var r report
	r.goal("engine / raw", series{0.7, 0.5, 0.65}, "×", atLeast(0.6))
	r.goal("start", series{1.5}, "s", atMost(1))
	r.goal("out of reach", series{2}, "×", atLeast(5).unlessBeyond(series{3}))
	r.goal("within reach", series{2}, "×", atLeast(5).unlessBeyond(series{6}))
	r.goal("for information", series{3}, "×", target{})
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

func TestTheResultReplacesWhatStandsBetweenTheMarks(t *testing.T) {
	const beginMark, endMark = "<!-- bench: begin -->", "<!-- bench: end -->"
	name := filepath.Join(t.TempDir(), "page.md")
	page := "# Before\n\n" + beginMark + "\nold figures\n" + endMark + "\n\nAfter.\n"
	testkit.Must(t, os.WriteFile(name, []byte(page), 0o600))
	for range 2 { // doing it again changes nothing
		testkit.Must(t, replaceMarked(name, "bench", "new figures\n"))
		got, err := os.ReadFile(name)
		testkit.Must(t, err)
		want := "# Before\n\n" + beginMark + "\n\nnew figures\n\n" + endMark + "\n\nAfter.\n"
		if string(got) != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestAFileWithoutMarksIsLeftAlone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "page.md")
	testkit.Must(t, os.WriteFile(name, []byte("text"), 0o600))
	if err := replaceMarked(name, "bench", "figures"); err == nil {
		t.Error("got no error")
	}
	if got, _ := os.ReadFile(name); string(got) != "text" {
		t.Errorf("the file now holds %q", got)
	}
}
