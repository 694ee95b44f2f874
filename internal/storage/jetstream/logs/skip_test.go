package logs

import (
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/testkit"
)

// importNumbers imports events, each with its number for a text.
func importNumbers(t *testing.T, p eventlog.Partition, from, to eventlog.Sequence) {
	t.Helper()
	for at := from; at < to; at++ {
		run := eventlog.Run{First: at, Time: time.Now(), Events: text(fmt.Sprint(at)).Events}
		receipt := testkit.Value(p.(eventlog.Importer).Import(t.Context(), run))(t)
		testkit.Must(t, testkit.Err(receipt.Wait(t.Context())))
		time.Sleep(time.Millisecond)
	}
}

// readFrom is what can be read of a partition with events 0 to 99 and 150 to 249, and one that was
// appended behind another gap.
func readFrom(at eventlog.Sequence) (all []string) {
	for n := at; n <= 300; n++ {
		switch {
		case n < 100 || n >= 150 && n < 250:
			all = append(all, fmt.Sprintf("%d %d", n, n))
		case n == 300:
			all = append(all, "300 next")
		case n == at || n == 100 || n == 250:
			last := 149
			if n >= 250 {
				last = 299
			}
			all = append(all, fmt.Sprintf("no %d to %d", n, last))
		}
	}
	return all
}

// C7, C2: numbers that were left out are missing at every node: at the one that has left them out, at one
// that was there, and at one that comes later; wherever they begin to read, and whether it is in the index
// or not. All else has its number, and is removed when it is old, also across what is missing.
func TestSkippedNumbersAreMissingAtEveryNode(t *testing.T) {
	for name, faults := range map[string]model.Faults{
		"announced":     {},
		"not announced": {AnnouncementLost: 1, Lag: 20 * time.Millisecond, Delay: time.Millisecond},
	} {
		for size, change := range map[string]func(*Config){"as it is": asItIs, "small": small} {
			t.Run(name+", "+size, func(t *testing.T) {
				inYard(t, faults, change, func(t *testing.T, y *yard) {
					a, b := y.open(t, "a"), y.open(t, "b")
					here, there, beside := handle(t, a, orders, 0), handle(t, b, orders, 0), handle(t, a, orders, 1)
					testkit.Must(t, testkit.Err(there.Bounds(t.Context())))
					importNumbers(t, here, 0, 100)
					mustAppend(t, beside, "x")
					testkit.Must(t, here.(eventlog.Skipper).SkipTo(t.Context(), 150))
					mustAppend(t, beside, "y")
					importNumbers(t, here, 150, 250)
					testkit.Run(t, a.Run)
					time.Sleep(2 * time.Minute) // there are marks of another kind
					testkit.Must(t, here.(eventlog.Skipper).SkipTo(t.Context(), 300))
					time.Sleep(time.Minute)
					testkit.Equal(t, testkit.Value(there.Bounds(t.Context()))(t).Next, 300, "the next number")
					testkit.Run(t, b.Run)
					testkit.Equal(t, mustAppend(t, there, "next").First, 300)
					for node, p := range map[string]eventlog.Partition{"here": here, "there": there, "late": handle(t, y.open(t, "c"), orders, 0)} {
						testkit.Must(t, testkit.Err(p.Bounds(t.Context())))
						for _, at := range []eventlog.Sequence{0, 99, 100, 120, 149, 150, 200, 249, 250, 299, 300} {
							testkit.Slices(t, logtest.Readable(t, p, eventlog.At(at)), readFrom(at), "%s from %d", node, at)
						}
						testkit.Slices(t, readAll(t, handle(t, y.open(t, node+"2"), orders, 1), eventlog.Earliest()), []string{"x", "y"}, node)
					}
					for _, trim := range []struct{ below, first eventlog.Sequence }{{50, 50}, {120, 100}, {200, 200}} {
						testkit.Must(t, there.Trim(t.Context(), trim.below))
						time.Sleep(3 * time.Minute)
						testkit.Equal(t, testkit.Value(there.Bounds(t.Context()))(t).First, trim.first, "the first event where %d is trimmed", trim.below)
						testkit.Slices(t, logtest.Readable(t, there, eventlog.Earliest()), readFrom(trim.first), "where %d is trimmed", trim.below)
					}
				})
			})
		}
	}
}
