package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser is the id of the user and group that the yard is in a container: nobody's, by custom.
const imageUser = 65532

// imageConfig is how a container runs. packaging/container/Dockerfile says the same, line by line.
var imageConfig = v1.Config{
	User:       "65532:65532",
	WorkingDir: "/etc/eventyard", // where serve looks for eventyard.yaml
	Entrypoint: []string{"/usr/bin/eventyard"},
	Cmd:        []string{"serve"},
	Env: []string{
		"PATH=/usr/bin",
		"EVENTYARD_DATA=/data",
		"EVENTYARD_AMQPS=:5671",
		"EVENTYARD_HTTPS=:8443",
		"EVENTYARD_KAFKAS=:9093",
		"EVENTYARD_SERVER=http://127.0.0.1:8080", // this and the next for commands that are run in the container
		"EVENTYARD_CONNECTION_STRING=@/data/connection-string",
	},
	ExposedPorts: map[string]struct{}{"5671/tcp": {}, "8443/tcp": {}, "9093/tcp": {}},
	Volumes:      map[string]struct{}{"/data": {}},
}

// image writes an archive with an OCI image layout: one image for each platform with Linux, from scratch.
func (r *release) image(context.Context) error {
	if len(r.linux()) == 0 {
		return nil
	}
	var index v1.ImageIndex = empty.Index
	for _, p := range r.linux() {
		image, err := r.imageFor(p)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
	}
	tag := strings.ReplaceAll(r.version, "+", "-") // which tags cannot have
	top := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{Annotations: map[string]string{
		"org.opencontainers.image.ref.name": tag,
		"io.containerd.image.name":          "docker.io/eventyard/eventyard:" + tag,
	}}})
	folder := filepath.Join(r.stage, "image")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	if _, err := layout.Write(folder, top); err != nil {
		return err
	}
	files, err := tree(folder, "")
	if err != nil {
		return err
	}
	return r.create("eventyard_"+r.version+"_image.tar", func(w io.Writer) error { return writeTar(w, r.time, files) })
}

func (r *release) imageFor(p platform) (v1.Image, error) {
	var packed bytes.Buffer
	if err := writeTar(&packed, r.time, r.imageFiles(p)); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	config := imageConfig
	config.Labels = map[string]string{
		"org.opencontainers.image.title": "eventyard", "org.opencontainers.image.version": r.version,
		"org.opencontainers.image.revision": r.commit, "org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.source": "https://github.com/eventyard/eventyard",
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS: p.os, Architecture: p.arch, Created: v1.Time{Time: r.time}, Config: config, RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "eventyard dist"}})
}

// imageFiles are all that there is in a container. Only /data and /tmp can be written to, where they
// are not read-only, too.
func (r *release) imageFiles(p platform) []entry {
	return []entry{
		{name: "data/", mode: 0o700, owner: imageUser},
		{name: "etc/", mode: 0o755},
		{name: "etc/eventyard/", mode: 0o755},
		{name: "etc/passwd", mode: 0o644, data: []byte("eventyard:x:65532:65532:Eventyard:/data:/sbin/nologin\n")},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: authorities()},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/", mode: 0o755},
		{name: "usr/bin/", mode: 0o755},
		{name: "usr/bin/eventyard", mode: 0o755, file: r.program(p)},
		{name: "usr/share/", mode: 0o755},
		{name: "usr/share/doc/", mode: 0o755},
		{name: "usr/share/doc/eventyard/", mode: 0o755},
		{name: "usr/share/doc/eventyard/LICENSE", mode: 0o644, file: r.staged("LICENSE")},
		{name: "usr/share/doc/eventyard/" + licensesFile, mode: 0o644, file: r.licenses(p)},
	}
}

// authorities are those that Mozilla trusts, as PEM: webhooks with https need them. Those that it trusts
// with conditions are left out, because a file cannot say conditions.
func authorities() []byte {
	var all []byte
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			all = append(all, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
		}
	}
	return all
}
