package runner

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// F1, F8: a connection has room for so many readers, and functions need no more than there are of
// them.
func TestManyReaders(t *testing.T) {
	var lines testkit.Buffer
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
			testkit.Equal(t, len(strings.Fields(y.program.got(fmt.Sprint("/f", n)))), partitions,
				"function %d", n)
			if f := y.show(k, fmt.Sprint("f", n)); f.Lag != 0 || f.State != StateRunning {
				t.Errorf("function %d is %s with a lag of %d", n, f.State, f.Lag)
			}
		}
		stop()
	})
	testkit.Equal(t, lines.String(), "", "not all went well")
}

// F1: a partition in which nothing happens costs a goroutine, and a function a few.
func TestIdleFunctionsCostLittle(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		const functions, partitions = 12, 20
		y.hub("mid", partitions)
		k := y.open()
		y.run(k)
		synctest.Wait()
		before := runtime.NumGoroutine()
		for n := range functions {
			y.create(k, Definition{Name: fmt.Sprint("f", n), Hub: "mid", Group: fmt.Sprint("g", n), Endpoint: fmt.Sprint("http://program.test/f", n), Poison: PoisonNone})
		}
		settle(time.Minute)
		if n := runtime.NumGoroutine() - before; n > functions*(partitions+perFunction) {
			t.Errorf("%d functions of %d partitions have %d goroutines", functions, partitions, n)
		}
		y.send("mid", "0", "1")
		settle(time.Second)
		for n := range functions {
			testkit.Equal(t, y.program.got(fmt.Sprint("/f", n)), "1", "function %d", n)
			testkit.Must(t, k.Delete(t.Context(), fmt.Sprint("f", n)))
		}
		settle(5 * time.Minute) // storage elsewhere is followed for a while
		if n := runtime.NumGoroutine() - before; n > 0 {
			t.Errorf("without any there are %d more goroutines than before", n)
		}
	})
}

// perFunction is how many goroutines a function may have besides those of its partitions.
const perFunction = 3
