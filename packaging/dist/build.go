package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// programs builds the program for each platform.
func (r *release) programs(ctx context.Context) error {
	for _, p := range r.platforms {
		began := time.Now()
		if err := r.compile(ctx, p, r.program(p)); err != nil {
			return err
		}
		fmt.Printf("    %-30s %6.1fs\n", p, time.Since(began).Seconds())
	}
	return nil
}

// compile builds the program. Version and commit are given to the linker, and not left to Go to find
// out, because Go finds nothing in some kinds of clones; and there is no path of this machine in it.
func (r *release) compile(ctx context.Context, p platform, file string) error {
	stamp := fmt.Sprintf("-s -w -buildid= -X main.version=%s -X main.commit=%s", r.version, r.commit)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", stamp, "-o", file, "./cmd/eventyard")
	cmd.Dir, cmd.Env = r.source, environment("GOOS="+p.os, "GOARCH="+p.arch)
	if slices.Contains(r.anew, p) {
		cmd.Env = append(cmd.Env, "GOCACHE="+r.cache)
	}
	_, err := output(cmd)
	return err
}

// documents are what all archives and packages have as it is in the tree: what to read first, and the compose
// files, the alerts and the dashboard, which who runs a yard would have to look for in a clone otherwise.
var documents = []string{
	"LICENSE", "README.md", "CHANGELOG.md",
	"packaging/container/compose.yaml", "packaging/container/compose-cluster.yaml", "packaging/monitoring/alerts.yaml", "packaging/monitoring/grafana.json",
}

// manuals has the program itself write completions and manual pages, and puts beside them what all
// archives and packages have.
func (r *release) manuals(ctx context.Context) error {
	program, err := r.runnable(ctx)
	if err != nil {
		return err
	}
	for shell, file := range map[string]string{"bash": "eventyard.bash", "zsh": "_eventyard", "fish": "eventyard.fish", "powershell": "eventyard.ps1"} {
		script, err := r.ask(ctx, program, "completion", shell)
		if err != nil {
			return err
		}
		if err := write(r.staged("completions", file), script); err != nil {
			return err
		}
	}
	for _, file := range documents {
		text, err := os.ReadFile(filepath.Join(r.source, filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		if filepath.Ext(file) == ".md" {
			text = r.leadHome(text)
		}
		if err := write(r.staged(filepath.Base(file)), text); err != nil {
			return err
		}
	}
	_, err = r.ask(ctx, program, "manual", r.staged("man"))
	return err
}

// home is where the source of the project is.
const home = "https://github.com/eventyard/eventyard"

// link is one in a page, to another page or file of the source.
var link = regexp.MustCompile(`\]\(([^)#:\s][^):\s]*)\)`)

// leadHome has the links of a page lead to the source that the release is made of: docs are not packed.
func (r *release) leadHome(page []byte) []byte {
	at := "v" + r.version
	if strings.Contains(at, "+") {
		at = r.commit // no tag
	}
	return link.ReplaceAll(page, []byte("]("+home+"/blob/"+at+"/$1)"))
}

// runnable is a program of this release that this machine can run.
func (r *release) runnable(ctx context.Context) (string, error) {
	here := platform{runtime.GOOS, runtime.GOARCH}
	program := r.program(here)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	return program, r.compile(ctx, here, program)
}

func (r *release) ask(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = environment() // its own variables would stand as defaults in the help
	return output(cmd)
}

// write writes a file, with the folders on its way.
func write(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}
