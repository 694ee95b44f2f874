//go:build !linux

package parts

import (
	"errors"
	"net"
)

const canFindOwners = false

func socketOf(_, _ *net.TCPAddr) (string, error) { return "", errors.ErrUnsupported }
func hasSocket(string, string) bool              { return false }
