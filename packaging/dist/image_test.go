package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
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
