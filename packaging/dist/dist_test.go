package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// repository is this clone.
const repository = "../.."

var (
	everything = flag.Bool("all", false, "make releases for all platforms, not for Linux on this machine alone")
	cold       = flag.Bool("cold", false, "with -all: compile for all platforms anew the second time, not for the first and the last alone")
	previous   = flag.String("previous", "", "the commit whose package is upgraded from (default: the last tag, or else the last commit before the data format rose)")
	work       string // what the tests make, until all have ended
)

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if work, err = os.MkdirTemp("", "eventyard-dist-test-"); err != nil {
		panic(err)
	}
	_ = os.Setenv("TMPDIR", work)
	code := m.Run()
	_ = os.RemoveAll(work)
	os.Exit(code)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made is a release of this tree, which the tests share.
var made = sync.OnceValues(func() (*release, error) { return makeRelease("made", repository, "") })

// makeRelease makes a release of this clone's commit out of a tree.
func makeRelease(name, tree, version string, anew ...platform) (*release, error) {
	chosen := platforms
	if !*everything {
		chosen = platforms[:1]
	}
	r, err := newRelease(context.Background(), repository, filepath.Join(work, name), version, chosen)
	if err != nil {
		return nil, err
	}
	if r.source, err = filepath.Abs(tree); err != nil {
		return nil, err
	}
	if len(anew) > 0 {
		r.anew, r.cache = anew, filepath.Join(work, "another cache")
	}
	return r, r.make(context.Background())
}

func theRelease(t *testing.T) *release {
	t.Helper()
	r, err := made()
	must(t, err)
	return r
}

func TestVersions(t *testing.T) {
	for described, want := range map[string]string{
		"v1.2.3-0-gabcdef123456":           "1.2.3",
		"v1.2.3-5-gabcdef123456":           "1.2.3+5.gabcdef123456",
		"v1.2.3-rc.1-0-gabcdef123456":      "1.2.3-rc.1",
		"v1.2.3-rc.1-12-gabcdef123456":     "1.2.3-rc.1+12.gabcdef123456",
		"v1.2.3-0-gabcdef123456-dirty":     "1.2.3+0.gabcdef123456.dirty",
		"abcdef123456":                     "0.0.0+77.gabcdef123456",
		"abcdef123456-dirty":               "0.0.0+77.gabcdef123456.dirty",
		"latest":                           "",
		"v1.2-3-gabcdef123456":             "",
		"v1.2.3-5-gabcdef123456 and so on": "",
	} {
		got, err := versionOf(described, "77")
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v; want %q", described, got, err, want)
		}
		if want != "" && checkVersion(got) != nil {
			t.Errorf("%s is not taken as a version", got)
		}
	}
	if checkVersion("1.2") == nil || checkVersion("v1.2.3") == nil {
		t.Error("what is no version is taken")
	}
}

// V7: the archive for each platform, and all else, builds twice to the same bytes, in whichever folder.
func TestTheSameCommitGivesTheSameBytes(t *testing.T) {
	first := theRelease(t)
	elsewhere := filepath.Join(work, "another folder", "tree")
	must(t, copyTree(elsewhere))
	second, err := makeRelease("made again", elsewhere, first.version, anew(first.platforms)...)
	must(t, err)
	sums := [2]string{}
	for i, r := range []*release{first, second} {
		text, err := os.ReadFile(filepath.Join(r.out, "SHA256SUMS"))
		must(t, err)
		sums[i] = string(text)
	}
	if sums[0] != sums[1] {
		t.Errorf("the second time it is otherwise:\n%s\n%s", sums[0], sums[1])
	}
	want := 2*len(first.platforms) + 2*len(first.linux()) + 2 // archives and materials; packages; image and chart
	if *everything {
		want++ // the formula
	}
	if got := strings.Count(sums[0], "\n"); got != want {
		t.Errorf("a release has %d files, want %d:\n%s", got, want, sums[0])
	}
	t.Logf("\n%s", sums[0])
}

// anew are the platforms that are compiled for the second time with nothing of what was compiled for the first.
// Compiling is what takes the time, and one compiler does it for all of them: to see that it gives the same bytes
// again, those two do of which the code differs most. All are linked again, in another folder, and packed.
func anew(all []platform) []platform {
	switch {
	case !*everything:
		return nil
	case *cold:
		return all
	}
	return []platform{all[0], all[len(all)-1]}
}

// copyTree copies what git knows of this tree, as it is now.
func copyTree(to string) error {
	out, err := output(exec.Command("git", "-C", repository, "ls-files", "-z", "--cached", "--others", "--exclude-standard"))
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(repository, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // it was removed, and that is not committed yet
		}
		if err == nil {
			err = write(filepath.Join(to, name), data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// V7: the checksums are right by the command that the guide to installing gives, and there is one of each file.
func TestChecksums(t *testing.T) {
	need(t, "sha256sum", "coreutils")
	r := theRelease(t)
	check := exec.Command("sha256sum", "-c", "SHA256SUMS")
	check.Dir, check.Env = r.out, append(os.Environ(), "LC_ALL=C")
	said, err := output(check)
	must(t, err)
	files, err := os.ReadDir(r.out)
	must(t, err)
	for _, file := range files {
		if line := file.Name() + ": OK\n"; file.Name() != "SHA256SUMS" && !strings.Contains("\n"+string(said), "\n"+line) {
			t.Errorf("%s was not checked:\n%s", file.Name(), said)
		}
	}
}

// V7: what is in an archive, and that the program in it says its version.
func TestArchive(t *testing.T) {
	r := theRelease(t)
	p := platforms[0]
	folder := t.TempDir()
	files, err := unpack(filepath.Join(r.out, r.name(p, ".tar.gz")), folder)
	must(t, err)
	for _, want := range []string{
		"eventyard", "LICENSE", "README.md", "compose.yaml", "compose-cluster.yaml", "alerts.yaml", "grafana.json", licensesFile, "completions/eventyard.bash", "completions/_eventyard",
		"completions/eventyard.fish", "completions/eventyard.ps1", "man/eventyard.1", "man/eventyard-hub-create.1", "man/eventyard.yaml.5",
	} {
		if header := files[r.name(p, "")+"/"+want]; header == nil {
			t.Errorf("%s is missing", want)
		} else if !header.ModTime.Equal(r.time) || header.Uid != 0 {
			t.Errorf("%s is of %s and user %d", want, header.ModTime, header.Uid)
		}
	}
	for _, page := range []string{"README.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join(folder, r.name(p, ""), page))
		must(t, err)
		if found := regexp.MustCompile(`\]\((docs/|[A-Z]+\.md|LICENSE)[^)]*\)`).Find(text); found != nil || !strings.Contains(string(text), "]("+home+"/blob/") {
			t.Errorf("%s leads to what is not in the archive: %s", page, found)
		}
	}
	out, err := output(exec.Command(filepath.Join(folder, r.name(p, ""), "eventyard"), "version"))
	must(t, err)
	if !strings.Contains(string(out), "eventyard "+r.version+"\n") || !strings.Contains(string(out), r.commit) {
		t.Errorf("it says of itself:\n%s", out)
	}
}

// V7: archives for other machines have the program, which was built for them, and what all have.
func TestArchivesOfOthers(t *testing.T) {
	r := theRelease(t)
	opened := 0
	for _, p := range r.platforms {
		if p.os == "linux" {
			continue
		}
		opened++
		folder, program := t.TempDir(), filepath.Base(r.program(p))
		if p.os == "windows" {
			must(t, unzip(filepath.Join(r.out, r.name(p, ".zip")), folder))
		} else {
			files, err := unpack(filepath.Join(r.out, r.name(p, ".tar.gz")), folder)
			must(t, err)
			if header := files[r.name(p, "")+"/"+program]; header == nil || header.Mode&0o111 != 0o111 {
				t.Errorf("%s: the program cannot be run: %+v", p, header)
			}
		}
		for _, want := range []string{program, "LICENSE", "README.md", licensesFile, "completions/eventyard.ps1", "completions/_eventyard", "compose.yaml"} {
			if info, err := os.Stat(filepath.Join(folder, r.name(p, ""), want)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %s is missing: %v", p, want, err)
			}
		}
		info, err := buildinfo.ReadFile(filepath.Join(folder, r.name(p, ""), program))
		must(t, err)
		built := map[string]string{}
		for _, s := range info.Settings {
			built[s.Key] = s.Value
		}
		if built["GOOS"] != p.os || built["GOARCH"] != p.arch {
			t.Errorf("%s: the program is built for %s/%s", p, built["GOOS"], built["GOARCH"])
		}
	}
	if opened == 0 {
		t.Skip("only Linux was built: -all builds the others")
	}
}

// unzip unpacks a .zip.
func unzip(file, folder string) error {
	z, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, f := range z.File {
		from, err := f.Open()
		if err != nil {
			return err
		}
		data, err := io.ReadAll(from) // which checks the sum
		if err = errors.Join(err, from.Close()); err == nil {
			err = write(filepath.Join(folder, filepath.FromSlash(f.Name)), data)
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", f.Name, err)
		}
	}
	return nil
}

// unpack unpacks a .tar.gz, or a .tar, and gives what was in it by name.
func unpack(file, folder string) (map[string]*tar.Header, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var from io.Reader = f
	if strings.HasSuffix(file, "gz") {
		if from, err = gzip.NewReader(f); err != nil {
			return nil, err
		}
	}
	return untar(from, folder)
}

// untar unpacks files with their modes and owners.
func untar(from io.Reader, folder string) (map[string]*tar.Header, error) {
	files := map[string]*tar.Header{}
	for t := tar.NewReader(from); ; {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		files[header.Name] = header
		name := filepath.Join(folder, header.Name)
		if header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(name, 0o755)
		} else {
			var data []byte
			if data, err = io.ReadAll(t); err == nil {
				err = write(name, data)
			}
		}
		if err == nil && os.Geteuid() == 0 {
			err = os.Chown(name, header.Uid, header.Gid)
		}
		if err == nil {
			err = os.Chmod(name, header.FileInfo().Mode())
		}
		if err != nil {
			return nil, fmt.Errorf("unpack %s: %w", header.Name, err)
		}
	}
}

// V7: the list of materials has what is in the program, and says which version of it.
func TestMaterials(t *testing.T) {
	r := theRelease(t)
	text, err := os.ReadFile(filepath.Join(r.out, r.name(platforms[0], ".cdx.json")))
	must(t, err)
	var b bill
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	must(t, decoder.Decode(&b))
	refs := map[string]bool{}
	for _, c := range b.Components {
		if c.Version == "" || refs[c.Ref] {
			t.Errorf("%s has no version, or is there twice", c.Name)
		}
		refs[c.Ref] = true
	}
	if len(refs) < 30 || b.Metadata.Component.Version != "v"+r.version {
		t.Errorf("%s has %d components", b.Metadata.Component.Version, len(refs))
	}
}
