package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"golang.org/x/sys/unix"
)

// V7: the program writes in colours where a terminal is, and nowhere else: not where NO_COLOR says so, not to
// a terminal that knows none, and not into files.
func TestColoursAreForTerminalsThatHaveThem(t *testing.T) {
	program := testkit.Value(exec.LookPath("eventyard"))(t)
	file := filepath.Join(t.TempDir(), "Config.json") // with a key that is warned of
	testkit.Must(t, os.WriteFile(file, []byte(`{"Colour":"blue","UserConfig":{"NamespaceConfig":[{"Type":"EventHub","Name":"e","Entities":[]}]}}`), 0o600))
	const warned = "\x1b[33mwarning:\x1b[0m"
	for name, env := range map[string][]string{"a terminal": {"TERM=xterm"}, "NO_COLOR": {"TERM=xterm", "NO_COLOR=1"}, "no colours": {"TERM=dumb"}} {
		cmd := exec.Command(program, "config", "check", file)
		cmd.Env = append([]string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GORACE=" + gorace}, env...)
		said := atTerminal(t, cmd)
		testkit.That(t, strings.Contains(said, "warning:"), "%s: it does not warn: %q", name, said)
		testkit.Equal(t, strings.Contains(said, warned), name == "a terminal", "%s: %q", name, said)
		testkit.Equal(t, strings.Contains(said, "\x1b"), name == "a terminal", "%s: %q", name, said)
	}
	cmd := exec.Command(program, "config", "check", file)
	cmd.Env = []string{"TERM=xterm", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GORACE=" + gorace}
	piped := string(testkit.Value(cmd.CombinedOutput())(t))
	testkit.That(t, strings.Contains(piped, "warning:") && !strings.Contains(piped, "\x1b"), "into a pipe: %q", piped)
}

// atTerminal runs a command whose output is a pseudo-terminal, and gives what came to its screen.
func atTerminal(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	screen, line := terminalPair(t)
	defer screen.Close()
	cmd.Stdout, cmd.Stderr = line, line
	err := cmd.Start()
	_ = line.Close()
	testkit.Must(t, err)
	said, _ := io.ReadAll(screen) // which ends in an error when the other end is closed
	testkit.Must(t, cmd.Wait(), "%s", said)
	return string(said)
}

// terminalPair opens a pseudo-terminal: the end that stands for keys and screen, and the one that programs have.
func terminalPair(t *testing.T) (screen, line *os.File) {
	t.Helper()
	screen = testkit.Value(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))(t)
	number := testkit.Value(unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN))(t)
	testkit.Must(t, unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)) // else nobody may open the other end
	line = testkit.Value(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	return screen, line
}
