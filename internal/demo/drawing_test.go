package demo

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/testkit"
)

// V4: the screen fits every width, and says the same in all.
func TestTheScreenFits(t *testing.T) {
	for _, width := range []int{40, 79, 80, 103, 104, 120, 200} {
		text := drawBoard(fullBoard(), width, false)
		for _, line := range text {
			testkit.That(t, utf8.RuneCountInString(strings.TrimRight(line, " ")) <= width, "at %d columns a line has %d: %q", width, utf8.RuneCountInString(line), line)
			testkit.That(t, !strings.Contains(line, "\x1b"), "there is colour though none is wanted: %q", line)
		}
		all := strings.Join(text, "\n")
		for _, want := range []string{"consumer-2", "killed 12:06:32", "4,812,330", "lost 0", "kill the yard"} {
			testkit.That(t, strings.Contains(all, want), "at %d columns there is no %q:\n%s", width, want, all)
		}
	}
}

func TestTheScreenShowsWhoHasWhat(t *testing.T) {
	b := fullBoard()
	b.Owners[1].Next = "consumer-1"
	text := drawBoard(b, 120, false)
	testkit.That(t, strings.HasPrefix(text[5], "  consumer-1  process 4121          █  ←  █    1,402    1.4 s"), "the row of consumer-1 is %q", text[5])
	testkit.That(t, strings.HasPrefix(text[6], "  consumer-2  process 4122          ·  →  ·    1,220    1.9 s"), "the row of consumer-2 is %q", text[6])
	testkit.That(t, strings.HasPrefix(text[7], "  consumer-3  killed 12:06:32       ·  ·  ·"), "the row of consumer-3 is %q", text[7])
	coloured := strings.Join(drawBoard(b, 120, true), "\n")
	testkit.That(t, strings.Contains(coloured, "\x1b[32m  █\x1b[0m"), "what is owned is not green")
}

func TestALineForLogs(t *testing.T) {
	line := logLine(fullBoard())
	testkit.That(t, strings.Contains(line, "sent 6,664/s (100 % of what was promised)") && strings.Contains(line, "lost 0"), "the line is %q", line)
}

func TestLinesForLogsAreInOrder(t *testing.T) {
	var out strings.Builder
	d := &demo{cfg: Config{Out: &out}}
	b := boardAt(10)
	d.journal.note(b.At.Add(-time.Second), "one")
	d.journal.note(b.At.Add(time.Second), "two")
	v := &lines{d: d}
	v.write(b)
	d.journal.note(b.At.Add(2*time.Second), "three")
	v.write(nil)
	v.write(b)
	for i, want := range []string{"one", "homes", "two", "three", "homes"} {
		line := strings.Split(out.String(), "\n")[i]
		testkit.That(t, strings.Contains(line, want), "line %d is %q", i, line)
	}
}
