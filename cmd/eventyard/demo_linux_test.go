package main

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"golang.org/x/sys/unix"
)

// S, V4: at a terminal the demo is one screen with keys: k kills a consumer, q ends it, and then the terminal is as it
// was, with the books below what stood there before.
func TestTheDemoAtATerminal(t *testing.T) {
	t.Parallel()
	screen, line := terminalPair(t)
	defer screen.Close()
	testkit.Must(t, unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120}))
	before := *testkit.Value(unix.IoctlGetTermios(int(line.Fd()), unix.TCGETS))(t)

	cmd := exec.Command(testkit.Value(exec.LookPath("eventyard"))(t), "demo", "--homes", "120", "--every", "4s", "--lease", "3s", "--consumers", "2",
		"--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--amqp", "127.0.0.1:0")
	cmd.Env = []string{"TERM=xterm", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GORACE=" + gorace}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = line, line, line
	testkit.Must(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }() // where the test ends before it

	var shown testkit.Buffer
	read := make(chan struct{})
	go func() { // until the other end is closed
		defer close(read)
		_, _ = io.Copy(&shown, screen)
	}()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the terminal got %q", shown.String())
		}
	})
	says := func(what string) {
		t.Helper()
		testkit.Eventually(t, what, func() bool { return strings.Contains(shown.String(), what) })
	}
	says("\x1b[?1049h\x1b[?25l") // another screen, without a cursor
	says("group aggregator")
	owns := regexp.MustCompile("consumer-1[^\r]*\x1b\\[32m  █")
	testkit.Eventually(t, "partitions of consumer-1", func() bool { return owns.MatchString(shown.String()) })
	raw := testkit.Value(unix.IoctlGetTermios(int(line.Fd()), unix.TCGETS))(t)
	testkit.That(t, raw.Lflag&(unix.ECHO|unix.ICANON) == 0, "keys are shown, or wait for the end of a line")

	press := func(key string) { testkit.Must(t, testkit.Err(io.WriteString(screen, key))) }
	press("k")
	says("killed consumer-1")
	says("kill: ") // what became of its partitions
	press("q")
	testkit.Must(t, cmd.Wait())

	after := *testkit.Value(unix.IoctlGetTermios(int(line.Fd()), unix.TCGETS))(t)
	testkit.Equal(t, after, before, "the terminal's settings")
	testkit.Must(t, line.Close())
	<-read
	_, last, left := strings.Cut(shown.String(), "\x1b[?25h\x1b[?1049l")
	testkit.MustThat(t, left, "the screen is not left")
	testkit.That(t, !strings.Contains(last, "\x1b"), "what is left below has escapes: %q", last)
	for _, want := range []string{"had new owners. 0 lost", "lost 0;", "counted twice 0", "The books balance."} {
		testkit.That(t, strings.Contains(last, want), "the last words have no %q", want)
	}
}
