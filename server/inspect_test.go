package server

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/storage"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// filled is a folder in which a yard has stored ten events.
func filled(t *testing.T) Config {
	t.Helper()
	cfg := quick(t)
	cfg.Sync = "always" // else damage looks like the end of what reached the disk
	r := start(t, cfg)
	r.want(201, "POST", "/api/v1/hubs", `{"name":"h","partitions":1}`)
	for range 10 {
		r.want(201, "POST", "/api/v1/hubs/h/events", `[{"body":"some event or other"}]`)
	}
	r.shutdown()
	return cfg
}

func TestInspectASoundFolder(t *testing.T) {
	testengine.NeedsFiles(t)
	cfg := filled(t)
	var progress int64
	found, err := Inspect(t.Context(), Inspection{DataDir: cfg.DataDir, Progress: func(done, _ int64) { progress = done }})
	testkit.Must(t, err)
	if found.InUse || found.Meta != nil || !found.LogRead || found.Events <= 10 ||
		found.Partitions != 3 || // of the hub, of the journal, and of the topic that it publishes to
		len(found.Problems)+len(found.Foreign) != 0 || found.LogBytes == 0 || progress == 0 {
		t.Errorf("found %+v, progress %d", found, progress)
	}
	start(t, cfg).shutdown() // and it is as it was
}

func TestInspectFindsDamage(t *testing.T) {
	testengine.NeedsFiles(t)
	cfg := filled(t)
	segments, err := filepath.Glob(filepath.Join(cfg.DataDir, "log", "h-*", "0", "*"))
	if err != nil || len(segments) == 0 {
		t.Fatal("no segments", err)
	}
	data, err := os.ReadFile(segments[0])
	testkit.Must(t, err)
	at := bytes.Index(data, []byte("some event"))
	if at < 0 {
		t.Fatal("the first body is not where it should be")
	}
	data[at] ^= 1
	testkit.Must(t, os.WriteFile(segments[0], data, 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(cfg.DataDir, "notes.txt"), nil, 0o600))
	found, err := Inspect(t.Context(), Inspection{DataDir: cfg.DataDir})
	if err != nil || len(found.Problems) == 0 || !slices.Equal(found.Foreign, []string{"notes.txt"}) {
		t.Errorf("found %+v, %v", found, err)
	}
	testkit.Must(t, os.WriteFile(filepath.Join(cfg.DataDir, "meta.db"), []byte("no database"), 0o600))
	if found, err := Inspect(t.Context(), Inspection{DataDir: cfg.DataDir}); err != nil || found.Meta == nil {
		t.Errorf("found %+v, %v", found, err)
	}
}

func TestInspectAYardAtWork(t *testing.T) {
	testengine.NeedsFiles(t)
	cfg := quick(t)
	r := start(t, cfg)
	found, err := Inspect(t.Context(), Inspection{DataDir: cfg.DataDir})
	if err != nil || !found.InUse {
		t.Errorf("found %+v, %v", found, err)
	}
	r.want(200, "GET", "/readyz", "")
	r.shutdown()
}

func TestInspectWhereNoYardWas(t *testing.T) {
	testengine.NeedsFiles(t)
	for name, dir := range map[string]string{"no folder": filepath.Join(t.TempDir(), "none"), "an empty folder": t.TempDir()} {
		testkit.ErrorIs(t, testkit.Err(Inspect(t.Context(), Inspection{DataDir: dir})), fs.ErrNotExist,
			"%s", name)
		if entries, _ := os.ReadDir(dir); len(entries) != 0 {
			t.Errorf("%s: something was made in it", name)
		}
	}
}

// What a yard has in its data folder is refused as a folder for dead letters.
func TestDeadLettersKeepOffTheYardsOwn(t *testing.T) {
	testengine.NeedsFiles(t)
	cfg := everyListener(t)
	r := start(t, cfg)
	defer r.shutdown()
	entries, err := os.ReadDir(cfg.DataDir)
	testkit.Must(t, err)
	names := append(ownNames(), storage.SecretKeyFile, storage.SecretKeyFile+vfs.UnfinishedSuffix)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	for _, name := range names {
		err := deadletter.Config{DataDir: cfg.DataDir}.CheckTarget(topics.Target{Kind: topics.TargetFolder, Where: name})
		if err == nil || !strings.Contains(err.Error(), "is the yard's own") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
