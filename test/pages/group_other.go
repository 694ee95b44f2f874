//go:build !unix

package pages

import (
	"os"
	"os/exec"
)

func inGroup(*exec.Cmd) {}

func interrupt(cmd *exec.Cmd) error { return cmd.Process.Signal(os.Interrupt) }
