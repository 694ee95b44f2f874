package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const nobody = "65534:65534" // who uses the yard

// V7: on a bare root the package of this release is installed, started by its unit's own command line, and takes a
// first event, within a minute; installed again, which systemd is told as of an upgrade; removed with its unit, but
// without the data, also when it is purged.
func TestDebianPackageOnABareMachine(t *testing.T) {
	r, m := theRelease(t), newMachine(t, t.TempDir())
	d := newDpkg(t, m.root)
	furnish(t, m.root, scripted...)
	systemctl := newSystemctl(t, m.root)

	began := time.Now()
	d.run("--install", deb(t, r))
	systemctl.wantCalled("when it was installed", "daemon-reload", "try-restart eventyard.service")
	y := m.startUnit()
	m.wantVersion(y, r.version)
	m.takeFirstEvent(began)
	y.stop()

	d.run("--install", deb(t, r))
	systemctl.wantCalled("when it was installed again", "daemon-reload", "try-restart eventyard.service")
	y = m.startUnit()
	m.wantEvents("the first")
	y.stop()

	d.run("--remove", "eventyard")
	systemctl.wantCalled("when it was removed", "disable --now eventyard.service", "daemon-reload")
	there(t, m.root, map[string]bool{
		"usr/bin/eventyard": false, "usr/lib/systemd/system/eventyard.service": false, "usr/lib/sysusers.d/eventyard.conf": false,
		"var/lib/eventyard/meta.db": true, "etc/eventyard/eventyard.yaml": true,
	})
	d.run("--purge", "eventyard")
	systemctl.wantCalled("when it was purged", "daemon-reload")
	there(t, m.root, map[string]bool{"var/lib/eventyard/meta.db": true, "etc/eventyard": false})
}

// V7: on a bare root the package of an older version is installed, and takes a first event; upgraded to this one with
// its data; reloaded; removed, without the data, also when it is purged.
func TestDebianPackage(t *testing.T) {
	r, m := theRelease(t), newMachine(t, t.TempDir())
	before, beforeVersion := packageOfBefore(t)
	if beforeVersion == r.version && inCI() {
		t.Errorf("version %s is upgraded to itself: the clone has no older commit that builds; if it is shallow, git fetch --unshallow", r.version)
	}
	d := newDpkg(t, m.root, "--force-script-chrootless") // scripts of before were tried so

	began := time.Now()
	d.run("--install", before)
	y := m.startUnit()
	m.takeFirstEvent(began)
	m.wantVersion(y, beforeVersion)
	y.stop()
	formatBefore := dataFormat(t, m)

	settings := filepath.Join(m.root, "etc/eventyard/eventyard.yaml")
	mode(t, settings, "-rw-r-----")
	change(t, settings, "\nlog: {format: json}\n")
	d.run("--install", deb(t, r))
	y = m.startUnit()
	m.wantVersion(y, r.version)
	m.wantEvents("the first")
	m.do(nobody, nil, "/usr/bin/eventyard", "send", "orders", "the second")
	m.wantEvents("the first", "the second")
	t.Logf("version %s wrote data in format %d, and %s in %d", beforeVersion, formatBefore, r.version, dataFormat(t, m))
	if *previous == "" && inCI() && len(beforeFormat(t, r)) > 0 && formatBefore == dataFormat(t, m) {
		t.Error("no data was upgraded: name a commit with -previous, and in lastOfFormatBefore")
	}
	y.reload()
	eventually(t, "the yard reloads", func() bool { return strings.Contains(y.log.String(), `"msg":"reloaded`) })
	y.stop()

	d.run("--remove", "eventyard")
	there(t, m.root, map[string]bool{"usr/bin/eventyard": false, "var/lib/eventyard/meta.db": true, "etc/eventyard/eventyard.yaml": true})
	d.run("--purge", "eventyard")
	there(t, m.root, map[string]bool{"var/lib/eventyard/meta.db": true, "etc/eventyard": false})
}

// takeFirstEvent has a yard take its first event, and give it again, within a minute of when its package began to be
// installed.
func (m *machine) takeFirstEvent(began time.Time) {
	m.t.Helper()
	m.do(nobody, nil, "/usr/bin/eventyard", "hub", "create", "orders", "--partitions", "2")
	m.do(nobody, nil, "/usr/bin/eventyard", "send", "orders", "the first")
	m.wantEvents("the first")
	took := time.Since(began)
	m.t.Logf("from installing to a first event that was read: %s", took)
	if took > time.Minute {
		m.t.Errorf("a first event took %s, and a minute is promised", took)
	}
}

func (m *machine) wantEvents(bodies ...string) {
	m.t.Helper()
	read := m.do(nobody, nil, "/usr/bin/eventyard", "read", "orders", "--from", "earliest")
	for _, body := range bodies {
		if !strings.Contains(read, body) {
			m.t.Errorf("%q was not read:\n%s", body, read)
		}
	}
}

func (m *machine) wantVersion(y *yard, version string) {
	m.t.Helper()
	if !strings.HasPrefix(y.said, "eventyard "+version+" is ready\n") {
		m.t.Errorf("it is not version %s:\n%s", version, y.said)
	}
}

func there(t *testing.T, root string, files map[string]bool) {
	t.Helper()
	for name, want := range files {
		if _, err := os.Lstat(filepath.Join(root, name)); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %t", name, err, want)
		}
	}
}

func mode(t *testing.T, file, want string) {
	t.Helper()
	info, err := os.Stat(file)
	must(t, err)
	if got := info.Mode().String(); got != want {
		t.Errorf("%s has mode %s, want %s", file, got, want)
	}
}

// change adds a line to a file, as somebody would who has the machine.
func change(t *testing.T, file, line string) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, append(text, line...), 0o640))
}

// dpkg installs into a root of its own. The scripts of packages run in that root, which has to have what they need, or,
// by --force-script-chrootless, on this machine, and are told of the root.
type dpkg struct {
	t      *testing.T
	root   string
	forced []string
}

func newDpkg(t *testing.T, root string, forced ...string) dpkg {
	t.Helper()
	need(t, "dpkg", "dpkg") // which is Debian's and its kin's
	need(t, "systemd-sysusers", "systemd")
	must(t, os.Chmod(root, 0o755)) // which the yard's user passes
	for _, folder := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "var/log", "etc"} {
		must(t, os.MkdirAll(filepath.Join(root, folder), 0o755))
	}
	must(t, write(filepath.Join(root, "var/lib/dpkg/status"), nil))
	return dpkg{t, root, append(forced, "--force-depends", "--force-confdef")}
}

func (d dpkg) run(args ...string) {
	d.t.Helper()
	cmd := exec.Command("dpkg", append(append([]string{"--root=" + d.root}, d.forced...), args...)...)
	cmd.Env = append(os.Environ(), "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	d.t.Logf("dpkg %s\n%s", strings.Join(args, " "), out)
	must(d.t, err)
}

// deb is the package of a release for this machine.
func deb(t *testing.T, r *release) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(r.out, "*_amd64.deb"))
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("packages: %q", found)
	}
	return found[0]
}

// packageOfBefore makes a package of an older version, and says which: of its own program, unit, scripts and
// settings or, of one from before there were packages, of its program as this version packs it.
func packageOfBefore(t *testing.T) (file, version string) {
	t.Helper()
	r, err := newRelease(t.Context(), repository, filepath.Join(t.TempDir(), "out"), "", platforms[:1])
	must(t, err)
	defer os.RemoveAll(r.stage)
	source := r.source
	tree := programOfBefore(t, r)
	if _, err := os.Stat(filepath.Join(tree, "packaging", "linux", "nfpm.yaml")); err != nil {
		t.Logf("%s has no packages yet: its program is packed as that of this version", r.version)
		r.source = source
	}
	// What that version did not have yet is packed as it is today.
	for _, file := range documents {
		if _, err := os.Stat(filepath.Join(r.source, file)); err != nil {
			text, err := os.ReadFile(filepath.Join(source, file))
			must(t, err)
			must(t, write(filepath.Join(r.source, file), text))
		}
	}
	must(t, r.manuals(t.Context()))
	must(t, write(r.licenses(platforms[0]), []byte("none\n")))
	must(t, r.pack(platforms[0], "deb"))
	return deb(t, r), r.version
}

// programOfBefore makes r a release of an older version, builds its program, and says where its tree is. Without a
// tag it is any commit: where that does not build, one before it.
func programOfBefore(t *testing.T, r *release) (tree string) {
	t.Helper()
	all := []string{*previous}
	if *previous == "" {
		if tag, err := r.git(t.Context(), "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^"); err == nil {
			all = []string{tag}
		} else {
			all = append(beforeFormat(t, r), "HEAD~50", "HEAD~55", "HEAD~60", "HEAD~65", "HEAD") // the last for a clone without a past
		}
	}
	repository := r.source
	var failed error
	for _, from := range all {
		r.source = repository
		commit, err := r.git(t.Context(), "rev-parse", "--verify", from+"^{commit}")
		if err != nil {
			failed = fmt.Errorf("%w\n  name a commit to upgrade from with -previous", err)
			t.Logf("%s is not here: %v", from, err)
			continue
		}
		tree := checkOut(t, r, commit)
		described, err := r.git(t.Context(), "describe", "--tags", "--long", "--always", "--abbrev=12", "--match", "v[0-9]*", commit)
		must(t, err)
		commits, err := r.git(t.Context(), "rev-list", "--count", commit)
		must(t, err)
		r.version, err = versionOf(described, commits)
		must(t, err)
		r.source, r.commit = tree, commit
		if failed = r.programs(t.Context()); failed == nil {
			return tree
		}
		t.Logf("%s does not build: %v", from, failed)
	}
	t.Fatal(failed)
	return ""
}

// lastOfFormatBefore is a commit whose program wrote data folders in the format before today's, so that an upgrade from
// it is one of data. When the format rises, name the last commit before that whose program is known to run.
const lastOfFormatBefore = "d431985d24bfa7ce8562738ee45e9d7933dd9eaf"

// beforeFormat is that commit; none where the clone does not go back so far.
func beforeFormat(t *testing.T, r *release) []string {
	t.Helper()
	if _, err := r.git(t.Context(), "rev-parse", "--verify", lastOfFormatBefore+"^{commit}"); err != nil {
		return nil
	}
	return []string{lastOfFormatBefore}
}

// dataFormat is that of a data folder, as it says itself.
func dataFormat(t *testing.T, m *machine) (format int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(m.root, "var/lib/eventyard/eventyard-data.json"))
	must(t, err)
	var mark struct{ Format int }
	must(t, json.Unmarshal(text, &mark))
	return mark.Format
}

func checkOut(t *testing.T, r *release, commit string) (tree string) {
	t.Helper()
	tree = t.TempDir()
	archive := filepath.Join(t.TempDir(), "tree.tar")
	_, err := r.git(t.Context(), "archive", "--output", archive, commit)
	must(t, err)
	_, err = output(exec.Command("tar", "-xf", archive, "-C", tree))
	must(t, err)
	return tree
}

// V7: what systemd itself says of the unit, and of what the yard could still do to the machine.
func TestUnit(t *testing.T) {
	need(t, "systemd-analyze", "systemd")
	text, err := os.ReadFile("../linux/eventyard.service")
	must(t, err)
	file := filepath.Join(t.TempDir(), "eventyard.service")
	must(t, write(file, []byte(strings.ReplaceAll(string(text), "/usr/bin/eventyard", "/bin/true")))) // which is here
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", file).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	out, err = exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", file).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: the exposure is over 2.0: %v\n%s", err, out)
	}
}
