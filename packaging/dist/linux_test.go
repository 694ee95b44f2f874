package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// machine is a folder that a yard takes for a whole machine: it sees no other files, and no network but
// its own loopback, so that it can have its usual ports.
type machine struct {
	t       *testing.T
	root    string
	network string // of a process that has nothing else to do
}

func newMachine(t *testing.T, root string) *machine {
	t.Helper()
	needRoot(t, "a root folder and a network of its own are made")
	need(t, "unshare", "util-linux")
	need(t, "nsenter", "util-linux")
	need(t, "ip", "iproute2")
	holder := exec.Command("unshare", "--net", "sh", "-c", "ip link set lo up && echo && exec sleep 3600")
	out, err := holder.StdoutPipe()
	must(t, err)
	must(t, holder.Start())
	t.Cleanup(func() { _ = holder.Process.Kill(); _ = holder.Wait() })
	_, err = bufio.NewReader(out).ReadString('\n')
	must(t, err)
	return &machine{t, root, fmt.Sprintf("--net=/proc/%d/ns/net", holder.Process.Pid)}
}

// command is one that runs in it, as a user and with an environment. Its process is that of the program.
func (m *machine) command(user string, env, args []string) *exec.Cmd {
	cmd := exec.Command("nsenter", append([]string{m.network, "--", "/usr/sbin/chroot", "--userspec=" + user, m.root}, args...)...)
	cmd.Env = append([]string{"LC_ALL=C"}, env...) // and nothing of this process's
	return cmd
}

// do runs a command and gives what it prints.
func (m *machine) do(user string, env []string, args ...string) string {
	m.t.Helper()
	out, err := output(m.command(user, env, args))
	must(m.t, err)
	return string(out)
}

// yard is one that runs in a machine.
type yard struct {
	*machine
	cmd  *exec.Cmd
	log  lockedBuffer
	said string // until it was ready
}

// start starts a yard, and waits until it is ready.
func (m *machine) start(user string, env, args []string) *yard {
	m.t.Helper()
	y := &yard{machine: m, cmd: m.command(user, env, args)}
	y.cmd.Stderr = &y.log
	out, err := y.cmd.StdoutPipe()
	must(m.t, err)
	must(m.t, y.cmd.Start())
	m.t.Cleanup(func() { _ = y.cmd.Process.Kill(); _ = y.cmd.Wait() })
	lines := bufio.NewReader(out)
	for !strings.Contains(y.said, "Ctrl-C stops it.") {
		line, err := lines.ReadString('\n')
		y.said += line
		if err != nil {
			m.t.Fatalf("the yard did not start: %v\n%s%s", err, y.said, y.log.String())
		}
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // until it ends
	return y
}

func (y *yard) stop() {
	y.t.Helper()
	must(y.t, y.cmd.Process.Signal(syscall.SIGTERM))
	if err := y.cmd.Wait(); err != nil {
		y.t.Fatalf("the yard did not stop well: %v\n%s", err, y.log.String())
	}
}

// lockedBuffer takes a log while somebody reads it.
type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("in vain for a minute: " + what)
		}
	}
}

// unit is what a unit of systemd says, by its keys.
type unit map[string][]string

func readUnit(t *testing.T, file string) unit {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	u := unit{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			u[key] = append(u[key], value)
		}
	}
	return u
}

func (u unit) one(t *testing.T, key string) string {
	t.Helper()
	if len(u[key]) != 1 {
		t.Fatalf("the unit has %s=%q", key, u[key])
	}
	return u[key][0]
}

// startUnit does what systemd does: it makes the state directory, and runs the unit's own command line
// as the unit's user with the unit's environment.
func (m *machine) startUnit() *yard {
	m.t.Helper()
	u := readUnit(m.t, filepath.Join(m.root, "usr/lib/systemd/system/eventyard.service"))
	user := m.userID(u.one(m.t, "User"))
	state := filepath.Join(m.root, "var/lib", u.one(m.t, "StateDirectory"))
	mode, err := strconv.ParseUint(u.one(m.t, "StateDirectoryMode"), 8, 32)
	must(m.t, err)
	must(m.t, os.MkdirAll(state, os.FileMode(mode)))
	must(m.t, os.Chown(state, user, user))
	var env []string
	file := strings.TrimPrefix(u.one(m.t, "EnvironmentFile"), "-")
	text, err := os.ReadFile(filepath.Join(m.root, file))
	must(m.t, err)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			env = append(env, line)
		}
	}
	return m.start(fmt.Sprintf("%d:%d", user, user), env, strings.Fields(u.one(m.t, "ExecStart")))
}

// reload does what the unit says for systemctl reload.
func (y *yard) reload() {
	y.t.Helper()
	u := readUnit(y.t, filepath.Join(y.root, "usr/lib/systemd/system/eventyard.service"))
	args := strings.Fields(strings.ReplaceAll(u.one(y.t, "ExecReload"), "$MAINPID", strconv.Itoa(y.cmd.Process.Pid)))
	_, err := output(exec.Command(args[0], args[1:]...))
	must(y.t, err)
}

// userID finds a user of the machine, whose group has the same number.
func (m *machine) userID(name string) int {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.root, "etc/passwd"))
	must(m.t, err)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Split(line, ":"); fields[0] == name && fields[2] == fields[3] {
			id, err := strconv.Atoi(fields[2])
			must(m.t, err)
			return id
		}
	}
	m.t.Fatalf("there is no user %s with a group of the same number in\n%s", name, text)
	return 0
}

// systemctl stands in for systemd on a machine, which scripts of packages take for one that systemd runs: it notes
// what it is called with.
type systemctl struct {
	t     *testing.T
	notes string
}

func newSystemctl(t *testing.T, root string) systemctl {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(root, "run/systemd/system"), 0o755))
	program := filepath.Join(root, "bin/systemctl")
	must(t, write(program, []byte("#!/bin/sh\necho \"$*\" >> /systemctl-was-called\n")))
	must(t, os.Chmod(program, 0o755))
	return systemctl{t, filepath.Join(root, "systemctl-was-called")}
}

// wantCalled says with what it was called since it was last asked.
func (s systemctl) wantCalled(when string, want ...string) {
	s.t.Helper()
	text, err := os.ReadFile(s.notes)
	must(s.t, err)
	if got := strings.Split(strings.TrimSpace(string(text)), "\n"); !slices.Equal(got, want) {
		s.t.Errorf("%s systemctl was called with %q, want %q", when, got, want)
	}
	must(s.t, os.Remove(s.notes))
}
