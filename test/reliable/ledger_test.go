//go:build linux

package reliable

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
	"golang.org/x/sys/unix"
)

// ledger is a file of notes, written by one process. A kill leaves each note whole or out.
type ledger struct{ file *os.File }

func openLedger(path string) (*ledger, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	return &ledger{file}, nil
}

func (l *ledger) close() { _ = l.file.Close() }

// note writes a line with one call of the system.
func (l *ledger) note(what, function, partition string, attempt int, rest string) {
	line := fmt.Sprintf("%d %s %s %s %d %s\n", now(), what, or(function), or(partition), attempt, rest)
	if _, err := l.file.WriteString(line); err != nil {
		panic(err)
	}
}

func or(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// now is on a clock that all processes of the machine share.
func now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

// ranges writes the sequence numbers of events, which are in order, as 3-5,9-9.
func ranges(events []event.Event) string {
	var b strings.Builder
	for i := 0; i < len(events); {
		first, last := events[i].Sequence, events[i].Sequence
		for i++; i < len(events) && events[i].Sequence == last+1; i++ {
			last++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d-%d", first, last)
	}
	return b.String()
}

// entry is a note that was read.
type entry struct {
	at        int64
	worker    string
	what      string // call, ok, fail, panic, circuit, error, die
	function  string
	partition string
	attempt   int
	events    []int64 // of call, ok, fail and panic
	rest      string
}

func (e entry) String() string {
	return fmt.Sprintf("%s of %s by %s, attempt %d", e.what, e.partition+"/"+e.rest, e.worker, e.attempt)
}

// readLedger gives a worker's notes, in order. One that was killed at once has none.
func readLedger(t *testing.T, worker, path string) (all []entry) {
	t.Helper()
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		e, err := parseEntry(lines.Text())
		testkit.Must(t, err, "%s: %q", worker, lines.Text())
		e.worker = worker
		all = append(all, e)
	}
	return all
}

func parseEntry(line string) (entry, error) {
	fields := strings.SplitN(line, " ", 6)
	if len(fields) != 6 {
		return entry{}, fmt.Errorf("a note has six parts")
	}
	e := entry{what: fields[1], function: fields[2], partition: fields[3], rest: fields[5]}
	var err error
	if e.at, err = strconv.ParseInt(fields[0], 10, 64); err != nil {
		return e, err
	}
	if e.attempt, err = strconv.Atoi(fields[4]); err != nil {
		return e, err
	}
	switch e.what {
	case "call", "ok", "fail", "panic":
		e.events, err = parseRanges(e.rest)
	}
	return e, err
}

func parseRanges(text string) (all []int64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		var first, last int64
		if _, err := fmt.Sscanf(part, "%d-%d", &first, &last); err != nil {
			return nil, err
		}
		for n := first; n <= last; n++ {
			all = append(all, n)
		}
	}
	return all, nil
}
