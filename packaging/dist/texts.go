package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"
)

// chart packs the Helm chart, as helm package does, with the version in it.
func (r *release) chart(context.Context) error {
	const unset = "0.0.0-unset"
	folder := filepath.Join(r.source, "packaging", "helm", "eventyard")
	entries, err := tree(folder, "eventyard")
	if err != nil {
		return err
	}
	for i, e := range entries {
		if path.Base(e.name) != "Chart.yaml" {
			continue
		}
		text, err := os.ReadFile(e.file)
		if err != nil {
			return err
		}
		if strings.Count(string(text), unset) != 2 {
			return fmt.Errorf("%s has to have version and appVersion %s, in whose stead the release's goes", e.file, unset)
		}
		entries[i] = entry{name: e.name, mode: e.mode, data: []byte(strings.ReplaceAll(string(text), unset, r.version))}
	}
	return r.tarGzip("eventyard-chart-"+r.version+".tgz", entries)
}

// formula fills in the Homebrew formula. It needs the archives for macOS and Linux.
func (r *release) formula(context.Context) error {
	if len(r.platforms) < len(platforms) {
		return nil
	}
	source := filepath.Join(r.source, "packaging", "homebrew", "eventyard.rb.tmpl")
	text, err := template.New(filepath.Base(source)).Funcs(template.FuncMap{
		"source": func(os, arch string) map[string]string {
			return map[string]string{"Version": r.version, "Archive": r.name(platform{os, arch}, ".tar.gz")}
		},
		"sum": func(name string) (string, error) { return checksum(filepath.Join(r.out, name)) },
	}).ParseFiles(source)
	if err != nil {
		return err
	}
	return r.create("eventyard.rb", func(w io.Writer) error { return text.Execute(w, map[string]string{"Version": r.version}) })
}

// checksums writes SHA256SUMS, for sha256sum -c.
func (r *release) checksums(context.Context) error {
	files, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, f := range files {
		sum, err := checksum(filepath.Join(r.out, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, f.Name())
	}
	return write(filepath.Join(r.out, "SHA256SUMS"), []byte(sums.String()))
}

func checksum(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}
