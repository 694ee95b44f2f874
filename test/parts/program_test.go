package parts

import (
	"os"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func isReady(printed string) bool { return strings.Contains(printed, "ready") }

func TestAProgramIsFrozenEndedAndStartedAgain(t *testing.T) {
	dir := testkit.Value(os.MkdirTemp("", "eventyard-program-"))(t)
	p := NewProgram(dir, "sh", "-c", "echo ready; exec sleep 3600")
	for _, signal := range []string{"TERM", "KILL"} {
		testkit.Must(t, p.Start(isReady))
		pid := testkit.Value(p.PID())(t)
		testkit.Must(t, p.Freeze())
		testkit.MustThat(t, testkit.Value(isFrozen(pid))(t), "it runs on")
		testkit.Must(t, p.Thaw())
		testkit.Eventually(t, "it stays frozen", func() bool { return !testkit.Value(isFrozen(pid))(t) })
		testkit.Must(t, p.Freeze())
		testkit.Must(t, p.End(signal))
		testkit.Must(t, p.End(signal), "a second time")
		_, err := isFrozen(pid)
		testkit.ErrorIs(t, err, os.ErrNotExist, "after %s", signal)
		testkit.That(t, p.Freeze() != nil, "what does not run is frozen")
	}
	testkit.Must(t, p.Start(isReady))
	testkit.Must(t, p.Remove())
	testkit.That(t, os.IsNotExist(testkit.Err(os.Stat(dir))), "its folder stays")
}

func TestAProgramThatEndsAtOnceShowsWhatItPrinted(t *testing.T) {
	p := NewProgram(t.TempDir(), "sh", "-c", "echo broken; exit 1")
	for range 2 {
		err := p.Start(isReady)
		testkit.MustThat(t, err != nil && strings.Contains(err.Error(), "broken"), "got %v", err)
	}
	testkit.Equal(t, strings.TrimSpace(p.Printed()), "broken")
}
