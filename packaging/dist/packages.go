package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // a format of packages
	_ "github.com/goreleaser/nfpm/v2/rpm" // another
)

// packages writes a .deb and a .rpm for each platform with Linux, as packaging/linux/nfpm.yaml says.
func (r *release) packages(context.Context) error {
	for _, p := range r.linux() {
		for _, format := range []string{"deb", "rpm"} {
			if err := r.pack(p, format); err != nil {
				return fmt.Errorf("%s for %s: %w", format, p, err)
			}
		}
	}
	return nil
}

func (r *release) pack(p platform, format string) error {
	folder := filepath.Join(r.source, "packaging", "linux")
	values := map[string]string{
		"VERSION": r.version, "ARCH": p.arch, "LINUX": folder, "SHARE": r.staged(), "PROGRAM": r.program(p), "LICENSES": r.licenses(p),
	}
	config, err := nfpm.ParseFileWithEnvMapping(filepath.Join(folder, "nfpm.yaml"), func(name string) string { return values[name] })
	if err != nil {
		return err
	}
	info, err := config.Get(format)
	if err != nil {
		return err
	}
	info.MTime = r.time
	for _, script := range []*string{&info.Scripts.PostInstall, &info.Scripts.PreRemove, &info.Scripts.PostRemove} {
		*script = filepath.Join(folder, *script)
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	return r.create(packager.ConventionalFileName(info), func(w io.Writer) error { return packager.Package(info, w) })
}
