package natstest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/eventyard/eventyard/test/parts"
)

// source is the program that is built.
//
//go:embed natsserver/main.go
var source string

// program is the path of natsserver, which is built once for each version of the module's
// dependencies and kept in the user's cache. Without a Go toolchain the test is skipped; with CI=true
// it fails.
func program(t testing.TB) string {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	requirements, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	built := parts.Component{
		Name:   "natsserver",
		Recipe: fmt.Sprint(runtime.Version(), runtime.GOOS, runtime.GOARCH, "\n", source, "\n", string(requirements)),
		Install: func(ctx context.Context, dir string) error {
			// The flags undo what GOFLAGS may say: the race detector must not watch the server.
			return parts.Step(ctx, root, "env", "CGO_ENABLED=0", "go", "build", "-race=false", "-cover=false",
				"-o", filepath.Join(dir, "natsserver"), "./internal/storage/jetstream/natstest/natsserver")
		},
	}
	return filepath.Join(built.Folder(t), "natsserver")
}

// Prepare has the server built now, for a test that is about to do without a network.
func Prepare(t testing.TB) {
	t.Helper()
	program(t)
}

// moduleRoot is the folder of go.mod, above the one that a test runs in.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", errors.New("no go.mod above the folder of the test")
		}
		dir = above
	}
}
