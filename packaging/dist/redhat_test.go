package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	rpmutils "github.com/sassoftware/go-rpmutils"
)

// V7: rpm finds the package whole, and installs it on a root that has nothing but what its scripts run; a yard starts
// by its unit's own command line and takes an event. Upgraded, it has its data and the settings that were changed;
// erased, the data stay, and so do those settings, under the name that rpm gives them. systemd is told of each.
func TestRedHatPackage(t *testing.T) {
	r, m := theRelease(t), newMachine(t, t.TempDir())
	rpm := newRPM(t, m.root)
	systemctl := newSystemctl(t, m.root)
	newer := rpmOf(t, r)
	if said := rpm.run("--checksig", "--nosignature", newer); !strings.HasSuffix(said, ": digests OK\n") {
		t.Errorf("the package is not whole: %s", said)
	}

	// Debian's own rpm, without force, advises to make a .deb of it.
	rpm.run("--install", "--force-debian", "--nodeps", rpmOfBefore(t, r))
	systemctl.wantCalled("when it was installed", "daemon-reload", "try-restart eventyard.service")
	settings := filepath.Join(m.root, "etc/eventyard/eventyard.yaml")
	for name, want := range map[string]string{
		settings: "-rw-r-----", filepath.Join(m.root, "etc/eventyard/environment"): "-rw-------",
		filepath.Join(m.root, "usr/bin/eventyard"): "-rwxr-xr-x", filepath.Join(m.root, "usr/lib/systemd/system/eventyard.service"): "-rw-r--r--",
	} {
		mode(t, name, want)
	}
	// Of all files one is otherwise than packed: the yard's group, which the script adds, can read the settings.
	rpm.wantVerified("......G..  c /etc/eventyard/eventyard.yaml\n")
	info, err := os.Stat(settings)
	must(t, err)
	if owner := info.Sys().(*syscall.Stat_t); int(owner.Gid) != m.userID("eventyard") || owner.Uid != 0 {
		t.Errorf("the settings are those of user %d and group %d", owner.Uid, owner.Gid)
	}
	y := m.startUnit()
	m.do(nobody, nil, "/usr/bin/eventyard", "hub", "create", "orders", "--partitions", "2")
	m.do(nobody, nil, "/usr/bin/eventyard", "send", "orders", "the first")
	y.stop()

	change(t, settings, "\nlog: {format: json}\n")
	rpm.run("--upgrade", "--force-debian", "--nodeps", newer)
	systemctl.wantCalled("when it was upgraded", "daemon-reload", "try-restart eventyard.service")
	if has := rpm.run("--query", "--queryformat", "%{version}", "eventyard"); has != rpmVersion(r.version) {
		t.Errorf("version %s is installed, want %s", has, rpmVersion(r.version))
	}
	rpm.wantVerified("S.5...GT.  c /etc/eventyard/eventyard.yaml\n")
	y = m.startUnit()
	m.wantEvents("the first")
	y.stop()

	rpm.run("--erase", "--force-debian", "eventyard")
	systemctl.wantCalled("when it was erased", "disable --now eventyard.service", "daemon-reload")
	there(t, m.root, map[string]bool{
		"usr/bin/eventyard": false, "usr/lib/systemd/system/eventyard.service": false, "var/lib/eventyard/meta.db": true,
		"etc/eventyard/eventyard.yaml": false, "etc/eventyard/eventyard.yaml.rpmsave": true, "etc/eventyard/environment": false,
	})
}

// rpmCommand installs into a root of its own, in which it runs the scripts of packages, too.
type rpmCommand struct {
	t    *testing.T
	root string
}

func newRPM(t *testing.T, root string) rpmCommand {
	t.Helper()
	need(t, "rpm", "rpm")
	need(t, "systemd-sysusers", "systemd")
	must(t, os.Chmod(root, 0o755)) // which the yard's user passes
	furnish(t, root, scripted...)
	return rpmCommand{t, root}
}

func (c rpmCommand) run(args ...string) string {
	c.t.Helper()
	said, err := c.command(args)
	c.t.Logf("rpm %s\n%s", strings.Join(args, " "), said)
	must(c.t, err)
	return said
}

func (c rpmCommand) command(args []string) (said string, err error) {
	cmd := exec.Command("rpm", append([]string{"--root", c.root, "--dbpath", "/var/lib/rpm"}, args...)...)
	cmd.Env = append(os.Environ(), "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// wantVerified has rpm compare all files with the package, and say no more than that.
func (c rpmCommand) wantVerified(want string) {
	c.t.Helper()
	if said, _ := c.command([]string{"--verify", "--nodeps", "eventyard"}); said != want {
		c.t.Errorf("of what is installed rpm says %q, want %q", said, want)
	}
}

// scripted are the programs that the scripts of the packages run, but for systemctl.
var scripted = []string{"/bin/sh", "/bin/sed", "/bin/chgrp", "/bin/systemd-sysusers"}

var library = regexp.MustCompile(`(?m)(/\S+) \(0x`)

// furnish copies programs of this machine into a root, with the libraries that they need.
func furnish(t *testing.T, root string, programs ...string) {
	t.Helper()
	for _, program := range programs {
		out, err := output(exec.Command("ldd", program))
		must(t, err)
		files := []string{program}
		for _, found := range library.FindAllSubmatch(out, -1) {
			files = append(files, string(found[1]))
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			must(t, err)
			must(t, write(filepath.Join(root, file), data))
			must(t, os.Chmod(filepath.Join(root, file), 0o755))
		}
	}
}

// rpmOf is the package of a release for this machine.
func rpmOf(t *testing.T, r *release) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(r.out, "*.x86_64.rpm"))
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("packages: %q", found)
	}
	return found[0]
}

// rpmOfBefore packs what is in a release as an older version. Programs that are older indeed are upgraded by the test
// of the package for Debian.
func rpmOfBefore(t *testing.T, r *release) string {
	t.Helper()
	older := *r
	older.version, older.out = "0.0.0-before", t.TempDir()
	must(t, older.pack(platforms[0], "rpm"))
	return rpmOf(t, &older)
}

// rpmVersion writes a version as rpm sorts them.
func rpmVersion(version string) string { return strings.Replace(version, "-", "~", 1) }

// V7: the package for Red Hat has the same files, and says the same version.
func TestRPM(t *testing.T) {
	need(t, "dpkg-deb", "dpkg")
	r := theRelease(t)
	f, err := os.Open(rpmOf(t, r))
	must(t, err)
	defer f.Close()
	rpm, err := rpmutils.ReadRpm(f)
	must(t, err)
	nevra, err := rpm.Header.GetNEVRA()
	must(t, err)
	if nevra.Name != "eventyard" || nevra.Version != rpmVersion(r.version) || nevra.Arch != "x86_64" {
		t.Errorf("it is %+v", nevra)
	}
	files, err := rpm.Header.GetFiles()
	must(t, err)
	var names []string
	for _, file := range files {
		if !strings.HasPrefix(file.Name(), "/usr/share/zsh") { // which is elsewhere on Debian
			names = append(names, file.Name())
		}
	}
	listed, err := output(exec.Command("dpkg-deb", "--fsys-tarfile", deb(t, r)))
	must(t, err)
	inDeb, err := untar(strings.NewReader(string(listed)), t.TempDir())
	must(t, err)
	for name, header := range inDeb {
		name = strings.TrimPrefix(name, ".")
		if !header.FileInfo().IsDir() && !strings.HasPrefix(name, "/usr/share/zsh") && !slices.Contains(names, name) {
			t.Errorf("the package for Debian has %s, and that for Red Hat has not", name)
		}
	}
	for _, want := range []string{"/usr/bin/eventyard", "/usr/lib/systemd/system/eventyard.service", "/etc/eventyard/eventyard.yaml", "/usr/share/man/man1/eventyard.1",
		"/usr/share/doc/eventyard/compose.yaml", "/usr/share/doc/eventyard/compose-cluster.yaml", "/usr/share/doc/eventyard/alerts.yaml", "/usr/share/doc/eventyard/grafana.json"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing", want)
		}
	}
}
