package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "eventyard" { // the contexts of who runs the tests are no matter here
		_ = os.Setenv("XDG_CONFIG_HOME", filepath.Join(os.TempDir(), "eventyard-tests-have-none"))
	}
	testscript.Main(m, map[string]func(){"eventyard": main})
}

// The scripts run the real program against real yards.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       os.Getenv("UPDATE") != "",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("NO_COLOR", "1")
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
			env.Setenv("GORACE", gorace)
			for _, listener := range anyPort {
				name, value, _ := strings.Cut(listener, "=")
				env.Setenv(name, value)
			}
			env.Values["yard"] = &yardProcess{}
			env.Values["hooks"] = map[string]*hookProcess{}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"yard":    yardCommand,
			"address": freePorts.command,
			"hook":    hookCommand,
			"silent":  silentCommand,
			"strict":  strictCommand,
			"until":   untilCommand,
		},
	})
}

// anyPort puts every listener of every yard on a port of its own, so that the tests share
// the machine with each other and with whatever runs on it.
var anyPort = []string{
	"EVENTYARD_AMQP=127.0.0.1:0", "EVENTYARD_AMQPS=127.0.0.1:0", "EVENTYARD_HTTP=127.0.0.1:0", "EVENTYARD_HTTPS=127.0.0.1:0",
	"EVENTYARD_KAFKA=127.0.0.1:0", "EVENTYARD_KAFKAS=127.0.0.1:0",
}

// yardProcess is the yard of one script.
type yardProcess struct {
	cmd    *exec.Cmd
	stdout *bufio.Reader
	stderr *os.File
}

// yardCommand is the script's "yard start [FLAGS]", "yard stop [TERM|INT|KILL]". Starting waits
// until the yard is ready, sets EVENTYARD_SERVER and a variable for the address of each listener
// (AMQP_ADDRESS); stopping waits for its end. Both print what the yard printed.
func yardCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: yard start [FLAGS] | yard stop [TERM|INT|KILL]")
	}
	yard := ts.Value("yard").(*yardProcess)
	switch args[0] {
	case "start":
		ts.Check(yard.start(ts, args[1:]))
	case "stop":
		signal := "TERM"
		if len(args) > 1 {
			signal = args[1]
		}
		ts.Check(yard.stop(ts, signal))
	default:
		ts.Fatalf("yard does not know %q", args[0])
	}
}

var (
	ready        = regexp.MustCompile(`^  http +(http://\S+)$`)
	openListener = regexp.MustCompile(`^  (amqps?|https?|kafkas?) +[a-z]+://(\S+)$`)
)

func (y *yardProcess) start(ts *testscript.TestScript, flags []string) error {
	args := append([]string{"serve", "--data", ts.MkAbs("data")}, flags...)
	program, err := exec.LookPath("eventyard")
	if err != nil {
		return err
	}
	y.cmd = exec.Command(program, args...)
	y.cmd.Dir = ts.MkAbs(".")
	y.cmd.Env = append([]string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "GORACE=" + gorace}, anyPort...)
	out, err := y.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if y.stderr, err = os.Create(ts.MkAbs("yard.stderr")); err != nil {
		return err
	}
	y.cmd.Stderr = y.stderr
	if err := y.cmd.Start(); err != nil {
		return err
	}
	process := y.cmd.Process
	ts.Defer(func() { _ = process.Kill() }) // where the script did not stop it
	y.stdout = bufio.NewReader(out)
	return y.awaitReady(ts)
}

// awaitReady reads what the yard prints up to its last line about itself.
func (y *yardProcess) awaitReady(ts *testscript.TestScript) error {
	var said strings.Builder
	for {
		line, err := y.stdout.ReadString('\n')
		said.WriteString(line)
		if err != nil {
			log, _ := os.ReadFile(y.stderr.Name())
			return fmt.Errorf("the yard ended: %w\n%s%s", err, said.String(), log)
		}
		line = strings.TrimSuffix(line, "\n")
		if m := ready.FindStringSubmatch(line); m != nil {
			ts.Setenv("EVENTYARD_SERVER", m[1])
		}
		if m := openListener.FindStringSubmatch(line); m != nil {
			ts.Setenv(strings.ToUpper(m[1])+"_ADDRESS", m[2])
		}
		if line == readyEnd {
			_, _ = io.WriteString(ts.Stdout(), said.String())
			return nil
		}
	}
}

func (y *yardProcess) stop(ts *testscript.TestScript, name string) error {
	signal := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL}[name]
	if err := y.cmd.Process.Signal(signal); err != nil {
		return err
	}
	said, err := io.ReadAll(y.stdout)
	if err != nil {
		return err
	}
	_, _ = ts.Stdout().Write(said)
	err = y.cmd.Wait()
	_ = y.stderr.Close()
	if signal == syscall.SIGKILL {
		return nil
	}
	return err
}

// gorace lets a process built with the race detector end without its usual pause.
const gorace = "atexit_sleep_ms=0"

// ports gives each script addresses of its own.
type ports struct{ given atomic.Int32 }

// freePorts are those of this process.
var freePorts ports

// command is the script's "address NAME": it sets a variable to an address that nobody uses.
func (p *ports) command(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: address NAME")
	}
	address, err := p.free()
	ts.Check(err)
	ts.Setenv(args[0], address)
}

// free finds an address that can be listened on again after it was closed: outside the
// range from which the system itself gives out ports.
func (p *ports) free() (string, error) {
	for {
		port := 20000 + (os.Getpid()*100+int(p.given.Add(1)))%12000
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return listener.Addr().String(), listener.Close()
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return "", err
		}
	}
}

// The scripts are many processes; none may be left behind by a path that leads nowhere.
func TestScriptsAreThere(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Errorf("scripts: %q, %v", scripts, err)
	}
}
