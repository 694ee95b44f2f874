//go:build !linux

package parts

import (
	"errors"
	"os"
	"os/exec"
)

var errLinux = errors.New("the components of the tests are started on Linux only")

type credential struct{}

func unprivileged() (*credential, error) { return nil, errLinux }
func (*credential) own(string) error     { return errLinux }
func detach(*exec.Cmd, *credential)      {}
func freeze(int) error                   { return errLinux }
func thaw(int) error                     { return errLinux }
func isFrozen(int) (bool, error)         { return false, errLinux }
func lockFile(*os.File) error            { return errLinux }
