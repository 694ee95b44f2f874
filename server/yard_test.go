package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestTwoYardsOnOneFolder(t *testing.T) {
	testengine.NeedsFiles(t)
	cfg := quick(t)
	first := start(t, cfg)
	second, err := New(cfg)
	testkit.Must(t, err)
	testkit.ErrorIs(t, second.Run(t.Context()), ErrLocked)
	first.want(200, "GET", "/readyz", "") // and is none the worse for it
	testkit.Equal(t, testkit.Value(Running(cfg.DataDir))(t), true, "running")
	first.shutdown()
	testkit.Equal(t, testkit.Value(Running(cfg.DataDir))(t), false, "running after the stop")
}

func TestTheFolderIsForItsOwnerOnly(t *testing.T) {
	testengine.NeedsFiles(t)
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
	testengine.NeedsFiles(t)
	cfg := quick(t)
	// The log folder may be a disk of its own, with what file systems have in theirs.
	testkit.Must(t, os.MkdirAll(filepath.Join(cfg.DataDir, "log", "lost+found"), 0o700))
	start(t, cfg).shutdown()
	start(t, cfg).shutdown()
}

func TestAFileWhereTheDataFolderBelongs(t *testing.T) {
	testengine.NeedsFiles(t)
	cfg := quick(t)
	testkit.Must(t, os.WriteFile(cfg.DataDir, nil, 0o600))
	s, err := New(cfg)
	testkit.Must(t, err)
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "look into the data folder") {
		t.Errorf("error is %v", err)
	}
}

func TestReservedNamesAreRefused(t *testing.T) {
	for _, name := range ReservedNames() {
		if _, err := New(Config{Hubs: []Hub{{Name: name + "/orders"}}}); err == nil || !strings.Contains(err.Error(), "path of the yard itself") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
