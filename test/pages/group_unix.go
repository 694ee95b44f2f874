//go:build unix

package pages

import (
	"os/exec"
	"syscall"
)

// inGroup has a command, and whatever it starts, in a group of their own, as a terminal does.
func inGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// interrupt signals all of them.
func interrupt(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
