package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// V7: nothing of a yard that ran in a clone, and nothing of git, goes into a build of the Dockerfile; all that is
// built does.
func TestDockerIgnore(t *testing.T) {
	f, err := os.Open(filepath.Join(repository, ".dockerignore"))
	must(t, err)
	defer f.Close()
	patterns, err := ignorefile.ReadAll(f)
	must(t, err)
	matcher, err := patternmatcher.New(patterns)
	must(t, err)
	isIgnored := func(name string) bool {
		ignored, err := matcher.MatchesOrParentMatches(name)
		must(t, err)
		return ignored
	}
	for _, name := range []string{
		"eventyard-data/meta.db", "eventyard-data/connection-string", "data/meta.db", "cmd/eventyard/eventyard-data/meta.db",
		"eventyard.yaml", "environment", "bundles/node-1.bundle", "node-1.bundle", "orders-dead/1.json", "yard.backup", "eventyard-ca.pem", "eventyard.key", ".env",
		"bin/eventyard", "eventyard", "dist/eventyard_1.2.3_linux_amd64.tar.gz", "_artifacts/page.png", "cpu.prof", "server/server.test",
		".git/config", ".tools/x", "test/interop/x.go", "examples/worker/main.go",
	} {
		if !isIgnored(name) {
			t.Errorf("%s goes into a build", name)
		}
	}
	for _, name := range built(t) {
		if isIgnored(name) {
			t.Errorf("%s is built, and does not go into a build", name)
		}
	}
}

// built are the files that the Dockerfile's commands need, as paths in the clone.
func built(t *testing.T) []string {
	t.Helper()
	top, err := filepath.Abs(repository)
	must(t, err)
	names := []string{"LICENSE", "go.mod", "go.sum", "packaging/go.mod", "packaging/go.sum"}
	for folder, program := range map[string]string{top: "./cmd/eventyard", filepath.Join(top, "packaging"): "./dist"} {
		list := exec.Command("go", "list", "-deps", "-json=Dir,Standard,GoFiles,OtherFiles,EmbedFiles", program)
		list.Dir = folder
		out, err := output(list)
		must(t, err)
		for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
			var p struct {
				Dir                             string
				Standard                        bool
				GoFiles, OtherFiles, EmbedFiles []string
			}
			must(t, decoder.Decode(&p))
			in, err := filepath.Rel(top, p.Dir)
			if err != nil || p.Standard || !fs.ValidPath(filepath.ToSlash(in)) {
				continue // of another module
			}
			for _, name := range slices.Concat(p.GoFiles, p.OtherFiles, p.EmbedFiles) {
				names = append(names, path.Join(filepath.ToSlash(in), name))
			}
		}
	}
	if len(names) < 500 {
		t.Errorf("only %d files are built", len(names))
	}
	return names
}
