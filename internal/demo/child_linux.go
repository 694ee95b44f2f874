package demo

import (
	"os/exec"
	"syscall"
)

// detach keeps Ctrl-C from the process, which the parent ends in good order, and ends it with the
// parent, however that ends.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
