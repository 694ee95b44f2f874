package parts

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

const canFindOwners = true

// socketOf gives the name of the socket at one end of a connection on this machine, as /proc has it.
func socketOf(local, remote *net.TCPAddr) (string, error) {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return "", err
	}
	end := inTable(local) + " " + inTable(remote)
	for line := range strings.Lines(string(table)) {
		if columns := strings.Fields(line); len(columns) > 9 && columns[1]+" "+columns[2] == end {
			return "socket:[" + columns[9] + "]", nil
		}
	}
	return "", fmt.Errorf("no socket from %v to %v: %w", local, remote, os.ErrNotExist)
}

// inTable is how /proc/net/tcp writes an address: in the order of bytes of this kind of processor, and
// those of the tests begin with the last.
func inTable(a *net.TCPAddr) string {
	ip := a.IP.To4()
	return fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], a.Port)
}

// hasSocket tells whether the program in a folder runs and has a socket.
func hasSocket(dir, socket string) bool {
	pid, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		return false // it does not run
	}
	descriptors := filepath.Join("/proc", strings.TrimSpace(string(pid)), "fd")
	entries, _ := os.ReadDir(descriptors) // none of one that has ended
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join(descriptors, e.Name())); err == nil && target == socket {
			return true
		}
	}
	return false
}
