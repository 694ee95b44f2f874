package measure

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// CPUTime asks Linux how long a process has run on processors, all its threads together, in hundredths of a second.
// Elsewhere, and of a process that is gone, nobody knows.
func CPUTime(pid int) (took time.Duration, ok bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	return cpuTime(string(stat))
}

// cpuTime reads /proc/PID/stat (proc_pid_stat(5)): the name, which is in parentheses, may hold any character, so fields
// are counted from behind the last of these.
func cpuTime(stat string) (took time.Duration, ok bool) {
	const user, system, tick = 11, 12, 10 * time.Millisecond
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= system {
		return 0, false
	}
	for _, i := range []int{user, system} {
		ticks, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, false
		}
		took += time.Duration(ticks) * tick
	}
	return took, true
}

// ResidentKiB asks Linux how much memory a process holds; elsewhere nobody knows.
func ResidentKiB(pid int) (kib float64, ok bool) { return statusKiB(pid, "VmRSS") }

// PeakKiB is the most that a process has held since it was started.
func PeakKiB(pid int) (kib float64, ok bool) { return statusKiB(pid, "VmHWM") }

func statusKiB(pid int, field string) (kib float64, ok bool) {
	_, err := fmt.Sscan(fieldOf(fmt.Sprintf("/proc/%d/status", pid), field), &kib)
	return kib, err == nil
}
