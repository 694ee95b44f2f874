//go:build unix && !linux

package demo

import (
	"os/exec"
	"syscall"
)

// detach keeps Ctrl-C from the process, which the parent ends in good order.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
