package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"go.yaml.in/yaml/v3"
)

// V7: the image is a right one; a yard starts out of it as its own user, with a root that cannot be
// written to, and takes an event.
func TestImage(t *testing.T) {
	image := openImage(t, theRelease(t))
	config, err := image.ConfigFile()
	must(t, err)
	root := t.TempDir()
	m := newMachine(t, root)
	must(t, os.Chmod(root, 0o755))
	content := mutate.Extract(image)
	defer content.Close()
	_, err = untar(content, root)
	must(t, err)
	mountReadOnly(t, root, "data")

	c := config.Config
	y := m.start(c.User, c.Env, slices.Concat(c.Entrypoint, c.Cmd))
	if !strings.Contains(y.said, "amqps://") || !strings.Contains(y.said, "kafkas://") || !strings.Contains(y.said, "/data/connection-string") {
		t.Errorf("it says:\n%s", y.said)
	}
	do := func(args ...string) string { return m.do(c.User, c.Env, slices.Concat(c.Entrypoint, args)...) }
	do("hub", "create", "orders")
	do("send", "orders", "hello")
	if read := do("read", "orders", "--from", "earliest"); !strings.Contains(read, "hello") {
		t.Errorf("it reads %s", read)
	}
	do("status") // by which compose sees whether it is well
	if shown := do("connection-string", "--hub", "orders"); !strings.Contains(shown, "EntityPath=orders") {
		t.Errorf("programs connect with %s", shown)
	}
	if authority := do("cert", "export"); !strings.Contains(authority, "BEGIN CERTIFICATE") {
		t.Errorf("programs trust %s", authority)
	}
	if err := os.WriteFile(filepath.Join(root, "etc", "x"), nil, 0o644); err == nil {
		t.Error("the root can be written to")
	}
	y.stop()
}

// openImage opens that for this machine.
func openImage(t *testing.T, r *release) v1.Image {
	t.Helper()
	folder := t.TempDir()
	_, err := unpack(filepath.Join(r.out, "eventyard_"+r.version+"_image.tar"), folder)
	must(t, err)
	top, err := layout.ImageIndexFromPath(folder)
	must(t, err)
	must(t, validate.Index(top))
	manifest, err := top.IndexManifest()
	must(t, err)
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	must(t, err)
	manifest, err = index.IndexManifest()
	must(t, err)
	if len(manifest.Manifests) != len(r.linux()) {
		t.Errorf("there are %d images", len(manifest.Manifests))
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	must(t, err)
	return image
}

// mountReadOnly makes a folder one that can only be read, but for one in it.
func mountReadOnly(t *testing.T, root, but string) {
	t.Helper()
	data := t.TempDir()
	must(t, os.Chown(data, imageUser, imageUser))
	for _, mount := range []struct {
		from, to string
		flags    uintptr
	}{
		{root, root, syscall.MS_BIND},
		{"", root, syscall.MS_BIND | syscall.MS_REMOUNT | syscall.MS_RDONLY},
		{data, filepath.Join(root, but), syscall.MS_BIND},
	} {
		if err := syscall.Mount(mount.from, mount.to, "", mount.flags, ""); err != nil {
			t.Fatalf("mount %s: %v", mount.to, err)
		}
		if mount.from != "" {
			t.Cleanup(func() { _ = syscall.Unmount(mount.to, syscall.MNT_DETACH) })
		}
	}
}

// V7: the Dockerfile makes the same image: how it runs stands in both, line by line, and so does what is in it.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("../container/Dockerfile")
	must(t, err)
	_, last, _ := strings.Cut(string(text), "\nFROM scratch\n")
	quoted := func(args []string) string { return `["` + strings.Join(args, `", "`) + `"]` }
	want := []string{"USER " + imageConfig.User, "WORKDIR " + imageConfig.WorkingDir, "ENTRYPOINT " + quoted(imageConfig.Entrypoint), "CMD " + quoted(imageConfig.Cmd)}
	for _, env := range imageConfig.Env {
		want = append(want, "ENV "+env)
	}
	for port := range imageConfig.ExposedPorts {
		want = append(want, "EXPOSE "+port)
	}
	for volume := range imageConfig.Volumes {
		want = append(want, "VOLUME "+volume)
	}
	var got []string
	for line := range strings.Lines(last) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "COPY ") {
			got = append(got, line)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the Dockerfile says\n%s\nand the image\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	sameFiles(t, string(text), last)
}

// sameFiles compares what the Dockerfile copies into the image with what the image has. Folders on the way to
// something are made by the way.
func sameFiles(t *testing.T, text, last string) {
	t.Helper()
	files := (&release{stage: "stage"}).imageFiles(platforms[0])
	copied, there := map[string]bool{}, map[string]bool{} // whether it is the user's, by path
	for line := range strings.Lines(last) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "COPY" {
			copied[words[len(words)-1]] = slices.Contains(words, "--chown="+imageConfig.User)
		}
	}
	for _, e := range files {
		onTheWay := func(other entry) bool { return other.name != e.name && strings.HasPrefix(other.name, e.name) }
		if !e.isFolder() || !slices.ContainsFunc(files, onTheWay) {
			there["/"+strings.TrimSuffix(e.name, "/")] = e.owner == imageUser
		}
		if e.isFolder() && e.owner == imageUser && e.mode != 0o700 {
			t.Errorf("%s has mode %o, and that of the Dockerfile is 700", e.name, e.mode)
		}
		if e.name == "etc/passwd" && !strings.Contains(text, "echo '"+strings.TrimSpace(string(e.data))+"' >") {
			t.Errorf("the Dockerfile has another user than %s", e.data)
		}
	}
	if !reflect.DeepEqual(copied, there) {
		t.Errorf("the Dockerfile copies\n%v\nand the image has\n%v", copied, there)
	}
}

// V7: the licenses that the Dockerfile has written are those of the release.
func TestLicensesOfAProgram(t *testing.T) {
	r := theRelease(t)
	file := filepath.Join(t.TempDir(), licensesFile)
	folder := t.TempDir()
	_, err := unpack(filepath.Join(r.out, r.name(platforms[0], ".tar.gz")), folder)
	must(t, err)
	must(t, run(t.Context(), []string{"-source", repository, "-licenses", filepath.Join(folder, r.name(platforms[0], ""), "eventyard"), "-out", file}))
	want, err := os.ReadFile(filepath.Join(folder, r.name(platforms[0], ""), licensesFile))
	must(t, err)
	got, err := os.ReadFile(file)
	must(t, err)
	if string(got) != string(want) {
		t.Errorf("they are %d bytes, and others than the %d of the archive", len(got), len(want))
	}
}

// composed is a compose file, by the keys and types of the Compose specification that are used.
type composed struct {
	Name     string
	Node     service `yaml:"x-node"` // what services have in common
	Services map[string]service
	Volumes  map[string]struct{}
}

type service struct {
	Image, Restart        string
	StopGracePeriod       time.Duration `yaml:"stop_grace_period"`
	ReadOnly              bool          `yaml:"read_only"`
	CapDrop               []string      `yaml:"cap_drop"`
	SecurityOpt           []string      `yaml:"security_opt"`
	Ports, Volumes, Tmpfs []string
	Profiles, Command     []string
	Environment           map[string]string
	Healthcheck           struct {
		Test        []string
		Interval    time.Duration
		StartPeriod time.Duration `yaml:"start_period"`
	}
}

func readCompose(t *testing.T, name string) (c composed) {
	t.Helper()
	text, err := os.ReadFile("../container/" + name)
	must(t, err)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	must(t, decoder.Decode(&c))
	return c
}

// V7: the compose file of three nodes has a bundle and a volume of its own for each of the peers that its first
// command makes bundles for, and each name stands for what there is.
func TestComposeOfACluster(t *testing.T) {
	compose := readCompose(t, "compose-cluster.yaml")
	init, peers, taken := compose.Services["init"], []string{}, map[string]bool{}
	if fmt.Sprint(init.Profiles) != "[init]" || init.Restart != "no" || len(compose.Services) != 4 {
		t.Errorf("bundles are made by %+v, of %d services", init, len(compose.Services))
	}
	for name, one := range compose.Services {
		if !strings.HasPrefix(one.Image, "docker.io/eventyard/eventyard:") || !one.ReadOnly || fmt.Sprint(one.CapDrop) != "[ALL]" {
			t.Errorf("%s runs so: %+v", name, one)
		}
		for _, volume := range one.Volumes {
			parts := strings.Split(volume, ":")
			if _, known := compose.Volumes[parts[0]]; !known || parts[1] != "/data" && volume != "bundles:/bundles:ro" {
				t.Errorf("%s mounts %s", name, volume)
			}
		}
		if name == "init" {
			continue
		}
		peers = append(peers, name)
		number := strings.TrimPrefix(name, "node-")
		if one.Restart != "unless-stopped" || one.Environment["EVENTYARD_CLUSTER_BUNDLE"] != "/bundles/bundles/"+name+".bundle" || !slices.Contains(one.Volumes, "data-"+number+":/data") {
			t.Errorf("%s has %v and %v", name, one.Environment, one.Volumes)
		}
		for _, published := range one.Ports {
			port := published[strings.LastIndex(published, ":")+1:]
			if _, ok := imageConfig.ExposedPorts[port+"/tcp"]; !ok || !strings.HasPrefix(published, "127.0.0.1:") {
				t.Errorf("%s publishes %s", name, published)
			}
			if taken[published[:strings.LastIndex(published, ":")]] {
				t.Errorf("%s publishes %s, which another node does too", name, published)
			}
			taken[published[:strings.LastIndex(published, ":")]] = true
		}
		// Kafka clients are led to this very node.
		kafka := one.Environment["EVENTYARD_KAFKAS_ADVERTISE"]
		if at := strings.LastIndex(kafka, ":"); at < 0 || kafka[:at] != one.Environment["EVENTYARD_HOST"] || !slices.Contains(one.Ports, "127.0.0.1"+kafka[at:]+":9093") {
			t.Errorf("%s leads Kafka clients to %q, and publishes %v", name, kafka, one.Ports)
		}
	}
	slices.Sort(peers)
	// The program itself takes the command, and makes the files that the nodes are given.
	folder := filepath.Join(t.TempDir(), "bundles")
	args := slices.Clone(init.Command)
	args[len(args)-1] = folder
	command := exec.CommandContext(t.Context(), "go", append([]string{"run", "./cmd/eventyard"}, args...)...)
	command.Dir = repository
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range peers {
		if _, err := os.Stat(filepath.Join(folder, name+".bundle")); err != nil {
			t.Error(err)
		}
	}
}

// V7: the compose file has no key that Compose does not know, and names what there is: the image's ports and
// folder, and its program.
func TestCompose(t *testing.T) {
	compose := readCompose(t, "compose.yaml")
	if len(compose.Services) != 1 {
		t.Errorf("there are %d services", len(compose.Services))
	}
	yard := compose.Services["yard"]
	if !strings.HasPrefix(yard.Image, "docker.io/eventyard/eventyard:") || yard.Restart != "unless-stopped" || yard.Healthcheck.Test[0] != "CMD" {
		t.Errorf("it is %s, %s and asked by %q", yard.Image, yard.Restart, yard.Healthcheck.Test)
	}
	for name := range yard.Environment {
		if !strings.HasPrefix(name, "EVENTYARD_") {
			t.Errorf("%s is no setting of a yard", name)
		}
	}
	for _, published := range yard.Ports {
		port := published[strings.LastIndex(published, ":")+1:]
		if _, ok := imageConfig.ExposedPorts[port+"/tcp"]; !ok || !strings.HasPrefix(published, "127.0.0.1:") {
			t.Errorf("%s is published", published)
		}
	}
	for _, volume := range yard.Volumes {
		name, folder, _ := strings.Cut(volume, ":")
		_, known := compose.Volumes[name]
		if _, ok := imageConfig.Volumes[folder]; !ok || !known {
			t.Errorf("%s is mounted", volume)
		}
	}
	if !yard.ReadOnly || fmt.Sprint(yard.CapDrop) != "[ALL]" || yard.Healthcheck.Test[1] != imageConfig.Entrypoint[0] {
		t.Errorf("it runs so: %+v", yard)
	}
}
