package parts

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// credential is another user to run a program as.
type credential struct{ uid, gid int }

// unprivileged is a user for programs that refuse to be run by root; nil if we are not.
func unprivileged() (*credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(found.Uid)
		gid, _ := strconv.Atoi(found.Gid)
		return &credential{uid, gid}, nil
	}
	return nil, fmt.Errorf("there is no user but root")
}

// own makes a folder the user's.
func (c *credential) own(dir string) error {
	if c == nil {
		return nil
	}
	return os.Chown(dir, c.uid, c.gid)
}

// detach lets a program run as another user, beyond the reach of what is done to
// the test's process group: it ends in its own order.
func detach(cmd *exec.Cmd, as *credential) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if as != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
	}
}

// freeze stops a process as it is, and thaw lets it go on.
func freeze(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }
func thaw(pid int) error   { return syscall.Kill(pid, syscall.SIGCONT) }

// isFrozen tells whether all threads of a process are stopped.
func isFrozen(pid int) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		return false, fmt.Errorf("no process %d: %w", pid, os.ErrNotExist)
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if err != nil {
			return false, nil // a thread that has just ended
		}
		// The state follows the name, which is in parentheses and may hold any character.
		if _, state, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " "); !strings.HasPrefix(state, "T") {
			return false, nil
		}
	}
	return true, nil
}

// lockFile waits for the lock, which ends when the file is closed.
func lockFile(file *os.File) error { return unix.Flock(int(file.Fd()), unix.LOCK_EX) }
