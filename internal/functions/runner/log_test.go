package runner

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/functions"

	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// A line says once whose it is.
func TestLogLinesHaveEachAttributeOnce(t *testing.T) {
	testengine.NeedsBubble(t)
	var lines testkit.Buffer
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k := y.open(func(c *Config) {
			c.Log = slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		stop := y.run(k)
		y.program.set(func(p *program) { p.answer = func(string, []string) int { return http.StatusTeapot } })
		y.create(k, small(func(d *Definition) { d.Retries = new(1) }))
		y.send("small", "0", "1")
		settle(15 * time.Second)
		y.trip(small().group("yard"), "resize")
		settle(15 * time.Second)
		testkit.Must(t, y.broker.DeleteGroup(t.Context(), "small", "resizer"))
		settle(10 * time.Second)
		stop()
	})
	seen := 0
	for line := range strings.Lines(lines.String()) {
		for _, name := range []string{" function=", " hub=", " group=", " partition="} {
			if n := strings.Count(line, name); n > 1 {
				t.Errorf("%d times%s: %s", n, name, line)
			} else if n == 1 {
				seen++
			}
		}
	}
	testkit.That(t, seen >= 10, "there are next to no lines: %s", lines.String())
}

// A store that fails is worth a line, and not one for each time it was asked.
func TestAnErrorThatLastsIsLoggedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines testkit.Buffer
		e := &ear{log: slog.New(slog.NewTextHandler(&lines, nil))}
		for range 600 {
			for _, doing := range []string{"renew leases", "renew presence"} {
				e.heard(&functions.Error{Function: "resize", Doing: doing, Err: errBroken})
			}
			e.heard(&functions.Error{Function: "resize", Step: functions.StepCall, Doing: "call the function, attempt 1", Err: errBroken})
			time.Sleep(time.Second)
		}
		for range maxReported + 1 {
			e.heard(&functions.Error{Function: "resize", Doing: "put event " + rand.Text(), Err: errBroken})
		}
		if n := strings.Count(lines.String(), "doing=\"renew"); n != 20 || strings.Contains(lines.String(), "call") || len(e.reported) > maxReported {
			t.Errorf("in ten minutes there are %d lines, and %d are remembered", n, len(e.reported))
		}
	})
}

// An operator's move is not trouble.
func TestAMovedCheckpointIsNoWarning(t *testing.T) {
	var lines testkit.Buffer
	e := &ear{log: slog.New(slog.NewTextHandler(&lines, nil))}
	e.heard(&functions.Error{Function: "resize", Partition: "3", Doing: "start again", Err: processor.ErrMoved})
	testkit.That(t, strings.Contains(lines.String(), `level=INFO msg="a function continues from the moved checkpoint"`), "the line is %s", lines.String())
}

// A definition that cannot be read is logged once, not by each who looks at the list.
func TestABrokenDefinitionIsLoggedOnce(t *testing.T) {
	var lines testkit.Buffer
	y := newYard(t)
	_, err := y.meta.CompareAndSet(t.Context(), "functions/broken", 0, []byte("{"))
	testkit.Must(t, err)
	k := y.open(func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&lines, nil)) })
	for range 5 {
		_, err := k.List(t.Context())
		testkit.Must(t, err)
	}
	if n := strings.Count(lines.String(), "cannot be read"); n != 1 {
		t.Errorf("it was told %d times:\n%s", n, lines.String())
	}
}
