package connect

import (
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C5: a clock that is wrong is held to the servers', to a second, and beyond doubt only.
func TestSkew(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name         string
		ahead, took  time.Duration
		held         time.Duration
		warns, fails bool
	}{
		{name: "right"},
		{name: "a little behind", ahead: 999 * time.Millisecond},
		{name: "within what the answer took", ahead: 4 * time.Second, took: 6 * time.Second},
		{name: "behind", ahead: 3 * time.Second, held: 2 * time.Second, warns: true},
		{name: "ahead", ahead: -3 * time.Second, took: time.Second, held: -1500 * time.Millisecond, warns: true},
		{name: "at the bound", ahead: time.Minute, held: 59 * time.Second, warns: true},
		{name: "far behind", ahead: 61 * time.Second, held: time.Minute, fails: true},
		{name: "far ahead", ahead: -time.Hour, held: -time.Hour + time.Second, fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := skewOf(now, now.Add(tt.took), now.Add(tt.took/2+tt.ahead))
			var c Clock
			testkit.Equal(t, c.Ahead(), 0, "at first it is corrected")
			c.Hold(s)
			testkit.Equal(t, c.Ahead(), tt.held, "it is corrected")
			testkit.Equal(t, c.Skew().Held(), tt.held != 0, "it is said to be held")
			problems, warnings := Report{Skew: s}.judge(Settings{Replicas: 3})
			testkit.Equal(t, len(problems) > 0, tt.fails, "refused: %v", problems)
			testkit.Equal(t, strings.Contains(strings.Join(warnings, ""), "clock"), tt.warns, "warned: %v", warnings)
			c.Hold(Skew{})
			testkit.Equal(t, c.Ahead(), 0, "when it is right again")
		})
	}
	testkit.Equal(t, Skew{Ahead: 2 * time.Second}.String(), "the clock of this node is 2s behind that of the NATS servers")
	testkit.Equal(t, Skew{Ahead: -time.Minute}.String(), "the clock of this node is 1m0s ahead of that of the NATS servers")
}

// C5: servers say what time it is, at the start and later.
func TestServersHaveTheTime(t *testing.T) {
	servers := natstest.Shared(t, 1)
	cfg := config(t, servers.URL()+"?replicas=1&yard="+natstest.Yard())
	cfg.Unsafe = true
	c := testkit.Value(Dial(t.Context(), cfg))(t)
	defer c.Close()
	report := testkit.Value(c.Check(t.Context(), cfg))(t)
	testkit.That(t, report.Skew.Within > 0 && report.Skew.beyond(0) == 0, "at the start: %+v", report.Skew)
	_, err := c.Skew(t.Context(), "none")
	testkit.ErrorIs(t, err, ErrUnavailable)
}
