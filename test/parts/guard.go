package parts

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// startTime is how long a component may take until it is ready, on a busy machine.
const startTime = time.Minute

// guardScript keeps a program while its own standard input is open. The other end of that is in the
// test process; so however that ends, the program is stopped and its folder removed, in several
// tries if need be: a browser's helpers outlive it by a moment, and write there. A line read is a
// signal to stop the program by, with its folder kept.
const guardScript = `dir=$1 stop=$2; shift 2
end() { [ -e "$dir/ended" ] || kill -s "$1" "$(cat "$dir/pid")" 2>/dev/null; wait; }
( "$@" >"$dir/log" 2>&1 & echo $! >"$dir/pid"; wait; : >"$dir/ended" ) &
if read -r signal; then end "$signal"
else
  end "$stop"; tries=0
  until rm -rf "$dir"; do tries=$((tries+1)); [ $tries -lt 50 ] || exit 1; sleep 0.1; done
fi`

// guarded is a program that dies with the test process.
type guarded struct {
	dir   string
	stdin io.WriteCloser
	guard *exec.Cmd
}

// guard starts a program that writes to dir/log and ends on the signal stop. It runs
// as user, where that is not nil.
func guard(dir, stop string, user *credential, args ...string) (*guarded, error) {
	for _, name := range []string{"ended", "pid", "log"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	cmd := exec.Command("sh", append([]string{"-c", guardScript, "guard", dir, stop}, args...)...)
	cmd.Dir = dir
	detach(cmd, user)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	return &guarded{dir: dir, stdin: stdin, guard: cmd}, nil
}

// signal stops the program, waits for its end and keeps its folder.
func (g *guarded) signal(name string) error {
	if err := g.awaitStart(); err != nil {
		return err
	}
	if _, err := io.WriteString(g.stdin, name+"\n"); err != nil {
		return err
	}
	return g.guard.Wait()
}

// remove stops the program, waits for its end and removes its folder.
func (g *guarded) remove() error {
	if err := g.awaitStart(); err != nil {
		return err
	}
	g.stdin.Close()
	return g.guard.Wait()
}

// awaitStart waits until the guard knows whom to stop.
func (g *guarded) awaitStart() error {
	return poll(func() (bool, error) {
		pid, err := os.ReadFile(filepath.Join(g.dir, "pid"))
		return err == nil && strings.HasSuffix(string(pid), "\n"), nil
	})
}

// await waits until the program is ready.
func (g *guarded) await(ready func() bool) error {
	err := poll(func() (bool, error) {
		if ready() {
			return true, nil
		}
		if g.hasEnded() {
			return false, errors.New("it has ended")
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, Tail(g.log(), 4000))
	}
	return nil
}

// hasEnded tells whether the program has ended, by itself or not.
func (g *guarded) hasEnded() bool {
	_, err := os.Stat(filepath.Join(g.dir, "ended"))
	return err == nil
}

// log is what the program has written.
func (g *guarded) log() string {
	text, _ := os.ReadFile(filepath.Join(g.dir, "log"))
	return string(text)
}

// poll asks until it is so: of another process there is no other way to know.
func poll(done func() (bool, error)) error {
	deadline := time.Now().Add(startTime)
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not ready after %s", startTime)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
