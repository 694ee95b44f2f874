//go:build !unix

package demo

import "os/exec"

// detach does nothing here: Ctrl-C reaches all processes at once.
func detach(*exec.Cmd) {}
