package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTwoYardsOnOneFolder(t *testing.T) {
	cfg := quick(t)
	first := start(t, cfg)
	second, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context()); !errors.Is(err, ErrLocked) {
		t.Errorf("error is %v", err)
	}
	first.want(200, "GET", "/readyz", "") // and is none the worse for it
	first.shutdown()
}

func TestTheFolderIsForItsOwnerOnly(t *testing.T) {
	cfg := quick(t)
	parent := cfg.DataDir
	cfg.DataDir = filepath.Join(parent, "below")
	r := start(t, cfg)
	for _, dir := range []string{parent, cfg.DataDir} { // who makes parents makes them so, too
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("mode of %s is %v, %v", dir, info, err)
		}
	}
	r.shutdown()
}

func TestAFolderWithoutLogsMayBeginAnew(t *testing.T) {
	cfg := quick(t)
	// The log folder may be a disk of its own, with what file systems have in theirs.
	if err := os.MkdirAll(filepath.Join(cfg.DataDir, "log", "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	start(t, cfg).shutdown()
	start(t, cfg).shutdown()
}

func TestAFileInPositionOfTheFolder(t *testing.T) {
	cfg := quick(t)
	if err := os.WriteFile(cfg.DataDir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "make data folder") {
		t.Errorf("error is %v", err)
	}
}
