package runner

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// F1, F8: a connection has room for so many readers, and functions need no more than there are of them.
func TestManyReaders(t *testing.T) {
	var lines locked
	inBubble(t, func(t *testing.T, y *yard) {
		const functions, partitions = 5, 64
		y.hub("wide", partitions)
		y.log = slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelWarn}))
		k := y.open()
		stop := y.run(k)
		for n := range functions {
			y.create(k, Definition{Name: fmt.Sprint("f", n), Hub: "wide", Group: fmt.Sprint("g", n), Endpoint: fmt.Sprint("http://program.test/f", n)})
		}
		for p := range partitions {
			y.send("wide", fmt.Sprint(p), fmt.Sprint(p))
		}
		settle(time.Minute)
		for n := range functions {
			if got := strings.Fields(y.program.got(fmt.Sprint("/f", n))); len(got) != partitions {
				t.Errorf("function %d got %d events", n, len(got))
			}
			if f := y.show(k, fmt.Sprint("f", n)); f.Lag != 0 || f.State != StateRunning {
				t.Errorf("function %d is %s with a lag of %d", n, f.State, f.Lag)
			}
		}
		if n := y.dials.Load(); n != functions { // two of 64 partitions have no room on one connection
			t.Errorf("it dialled %d times", n)
		}
		stop()
		if len(k.links.open) != 0 {
			t.Errorf("%d clients are left", len(k.links.open))
		}
	})
	if text := lines.String(); text != "" {
		t.Errorf("not all went well: %.1000s", text)
	}
}

// F1: functions that need little share a connection.
func TestManyFunctionsShareAClient(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		const functions = 12
		y.hub("mid", 20) // five have room on a connection
		k := y.open()
		y.run(k)
		for n := range functions {
			y.create(k, Definition{Name: fmt.Sprint("f", n), Hub: "mid", Group: fmt.Sprint("g", n), Endpoint: fmt.Sprint("http://program.test/f", n), Poison: PoisonNone})
		}
		y.send("mid", "0", "1")
		settle(30 * time.Second)
		for n := range functions {
			if got := y.program.got(fmt.Sprint("/f", n)); got != "1" {
				t.Errorf("function %d got %q", n, got)
			}
		}
		if n := y.dials.Load(); n != 3 {
			t.Errorf("they dialled %d times", n)
		}
		for n := range functions {
			must(t, k.Delete(t.Context(), fmt.Sprint("f", n)))
		}
		if n := len(k.links.open); n != 0 {
			t.Errorf("without any there are %d clients", n)
		}
	})
}
