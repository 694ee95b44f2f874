//go:build linux

package interop

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// Inside the namespace a yard has Azure's ports on an address of its own. It is not
// 127.0.0.1, because the Go library's tests dial that one and want to be refused.
const (
	namespaceHost    = "ns.example.test"
	namespaceAddress = "127.0.0.2"
)

// inNamespace runs body in a private network and mount namespace, where all ports are free,
// namespaceHost has an address, and nothing outside this machine can be reached. It does so in a
// copy of the test binary that runs this test alone. What the test needs from the network it must
// have before.
func inNamespace(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	if inside() {
		body(t)
		return
	}
	checkedBuild.binary(t) // compiling may need the network
	if wantsNodes() {
		natstest.Prepare(t)
	}
	p, err := enterNamespace(t)
	if err != nil {
		parts.Missing(t, "a private namespace cannot be had here (neither as root nor as a user of our own): %v", err)
	}
	err = p.finish(t, timeLeft(t))
	t.Logf("in a private namespace:\n%s", p.out)
	testkit.Must(t, err)
	if !strings.Contains(p.out.String(), "--- PASS: "+t.Name()) {
		t.Skip("skipped in the namespace")
	}
}

// enterNamespace starts the copy: as root where we are, else as root of a user
// namespace of our own.
func enterNamespace(t *testing.T) (*process, error) {
	var problems []error
	for _, asUser := range []bool{false, true} {
		attributes := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
		if asUser {
			attributes.Cloneflags |= unix.CLONE_NEWUSER
			attributes.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
			attributes.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
		}
		trial := exec.Command("true")
		trial.SysProcAttr = attributes
		if err := trial.Run(); err != nil {
			problems = append(problems, err)
			continue
		}
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.parallel=4",
			"-test.timeout="+timeLeft(t).String())
		cmd.Env = environment(map[string]string{insideVariable: "1"})
		cmd.SysProcAttr = attributes
		return launch(t, cmd), nil
	}
	return nil, errors.Join(problems...)
}

// timeLeft is how long the test may still take; the copy ends a little before the
// original, so that its output is seen.
func timeLeft(t *testing.T) time.Duration {
	deadline, set := t.Deadline()
	if !set {
		return time.Hour
	}
	return max(time.Until(deadline)-5*time.Second, time.Second)
}

// furnishNamespace gives the new namespace its loopback and its own names.
func furnishNamespace() error {
	if err := linkUp("lo"); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	hosts, err := os.CreateTemp("", "hosts-")
	if err != nil {
		return err
	}
	defer os.Remove(hosts.Name())
	defer hosts.Close()
	if err := hosts.Chmod(0o644); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(hosts, "127.0.0.1 localhost\n::1 localhost\n%s %s %s\n%s %s %s\n",
		namespaceAddress, namespaceHost, suiteHost, azureAddress, azureManager, azureBlobs); err != nil {
		return err
	}
	if err := unix.Mount(hosts.Name(), "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount /etc/hosts: %w", err)
	}
	return nil
}

func linkUp(name string) error {
	return setLink(name, func(flags uint16) uint16 { return flags | unix.IFF_UP })
}

func linkDown(name string) error {
	return setLink(name, func(flags uint16) uint16 { return flags &^ unix.IFF_UP })
}

func setLink(name string, change func(flags uint16) uint16) error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(socket, unix.SIOCGIFFLAGS, request); err != nil {
		return fmt.Errorf("flags of %s: %w", name, err)
	}
	request.SetUint16(change(request.Uint16()))
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("set flags of %s: %w", name, err)
	}
	return nil
}
