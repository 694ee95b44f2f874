package demo

import (
	"os"
	"strconv"
	"strings"
)

// machine measures how busy this machine is, on systems that tell it in /proc. One goroutine uses it.
type machine struct{ busy, all float64 }

// load is the share of the processors that was in use since the last call; negative: not known.
func (m *machine) load() float64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return -1
	}
	busy, all := processorTimes(string(text))
	was := *m
	m.busy, m.all = busy, all
	if was.all == 0 || all <= was.all {
		return -1
	}
	return (busy - was.busy) / (all - was.all)
}

// processorTimes reads the first line of /proc/stat: user, nice, system, idle, waiting for disks, …
func processorTimes(text string) (busy, all float64) {
	first, _, _ := strings.Cut(text, "\n")
	for i, field := range strings.Fields(first) {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil || i > 8 { // guests' are counted with the user's
			continue
		}
		all += ticks
		if i != 4 && i != 5 {
			busy += ticks
		}
	}
	return busy, all
}
