package measure

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestCPUTimeIsReadFromBehindTheName(t *testing.T) {
	const rest = " S 1 1 1 0 -1 4194560 1 2 3 4 150 25 7 8 20 0 33 0 1 1 1"
	for _, tt := range []struct {
		name, stat string
		want       time.Duration
		ok         bool
	}{
		{"user and system time in ticks of 10 ms", "42 (java)" + rest, 1750 * time.Millisecond, true},
		{"a name with parentheses and blanks", "42 (a ) S 9 (b) 9)" + rest, 1750 * time.Millisecond, true},
		{"a line that is cut off", "42 (java) S 1 1", 0, false},
		{"no number where the time should be", "42 (java) S 1 1 1 0 -1 4194560 1 2 3 4 x 25 7 8", 0, false},
		{"nothing", "", 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := cpuTime(tt.stat)
			testkit.Equal(t, got, tt.want)
			testkit.Equal(t, ok, tt.ok)
		})
	}
}

func TestLinuxKnowsWhatAProcessUses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	_, ok := CPUTime(os.Getpid())
	testkit.That(t, ok, "no CPU time of this process")
	now, ok := ResidentKiB(os.Getpid())
	testkit.That(t, ok && now > 0, "it holds %v KiB", now)
	peak, ok := PeakKiB(os.Getpid())
	testkit.That(t, ok && peak >= now/2, "it held %v KiB at most, and holds %v", peak, now)
	_, ok = CPUTime(1 << 30)
	testkit.That(t, !ok, "a process that is not there has CPU time")
}
