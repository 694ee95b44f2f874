package backup_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/backup"
	"github.com/eventyard/eventyard/internal/backup/archive"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// archived is a small backup.
func archived(t *testing.T) []byte {
	t.Helper()
	y := newYard(t)
	y.set("hubs/orders", "{}")
	fill(t, y.provide("orders", eventlog.KindHub), 100)
	var out bytes.Buffer
	testkit.Must(t, testkit.Err(backup.Take(t.Context(), y.source(y.log), &out)))
	return out.Bytes()
}

// C7: a backup that was cut off anywhere, by the yard's end or the network's, is marked as unfinished.
func TestAnUnfinishedBackupIsNoBackup(t *testing.T) {
	whole := archived(t)
	lost := errors.New("the connection was lost")
	for _, n := range []int{0, 1, 8, 100, len(whole) / 2, len(whole) - 1} {
		for name, in := range map[string]io.Reader{
			"cut":  bytes.NewReader(whole[:n]),
			"lost": io.MultiReader(bytes.NewReader(whole[:n]), errorReader{lost}),
		} {
			dir := filepath.Join(t.TempDir(), "backup")
			_, err := backup.Receive(t.Context(), dir, "test", in, nil)
			testkit.That(t, errors.Is(err, archive.ErrUnfinished) || errors.Is(err, lost), "%s at %d: %v", name, n, err)
			testkit.ErrorIs(t, testkit.Err(backup.Open(dir)), archive.ErrUnfinished, "%s at %d", name, n)
			err = testkit.Err(backup.Receive(t.Context(), dir, "test", bytes.NewReader(whole), nil))
			testkit.ErrorIs(t, err, backup.ErrOccupied, "written over")
			testkit.That(t, strings.Contains(err.Error(), "was not finished, and is of no use"), "it says %v", err)
		}
	}
}

// C7: the same if it was killed while it wrote its first mark.
func TestABackupKilledAsItBeginsIsUnfinished(t *testing.T) {
	for _, text := range []string{"", `{"format":1,`} {
		dir := t.TempDir()
		testkit.Must(t, os.WriteFile(filepath.Join(dir, backup.MarkName+vfs.UnfinishedSuffix), []byte(text), 0o600))
		testkit.ErrorIs(t, testkit.Err(backup.Open(dir)), archive.ErrUnfinished)
		err := backup.CheckEmpty(dir)
		testkit.ErrorIs(t, err, backup.ErrOccupied)
		testkit.That(t, strings.Contains(err.Error(), "was not finished, and is of no use"), "it says %v", err)
	}
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

// R6: nothing is written where something is.
func TestOnlyAnEmptyFolderIsWrittenTo(t *testing.T) {
	whole := archived(t)
	for name, tt := range map[string]struct {
		prepare func(dir string) error
		says    string // empty: it is taken
	}{
		"no folder":    {func(string) error { return nil }, ""},
		"an empty one": {func(dir string) error { return os.MkdirAll(dir, 0o700) }, ""},
		"a new disk":   {func(dir string) error { return os.MkdirAll(filepath.Join(dir, "lost+found"), 0o700) }, ""},
		"of others": {func(dir string) error {
			return errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "photo.jpg"), nil, 0o600))
		}, "holds photo.jpg"},
		"another backup": {func(dir string) error {
			return testkit.Err(backup.Receive(t.Context(), dir, "test", bytes.NewReader(whole), nil))
		}, "holds the backup of "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a", "backup")
			testkit.Must(t, tt.prepare(dir))
			before := map[string]string{}
			if tt.says != "" {
				before = testkit.Tree(t, dir)
			}
			_, err := backup.Receive(t.Context(), dir, "test", bytes.NewReader(whole), nil)
			if tt.says == "" {
				testkit.Must(t, err)
				return
			}
			testkit.ErrorIs(t, err, backup.ErrOccupied)
			testkit.That(t, err != nil && strings.Contains(err.Error(), tt.says), "it says %v", err)
			testkit.Holds(t, before, dir)
		})
	}
}

// C7, R6: what happened to a backup since it was written is found before anything is restored from it,
// or while it is.
func TestWhatIsWrongWithABackupIsSaid(t *testing.T) {
	whole := archived(t)
	rewrite := func(name string, change func([]byte) []byte) func(dir string) error {
		return func(dir string) error {
			text, err := os.ReadFile(filepath.Join(dir, name))
			return errors.Join(err, os.WriteFile(filepath.Join(dir, name), change(text), 0o600))
		}
	}
	for name, tt := range map[string]struct {
		change func(dir string) error
		want   error
	}{
		"nothing":             {func(string) error { return nil }, nil},
		"no mark":             {func(dir string) error { return os.Remove(filepath.Join(dir, backup.MarkName)) }, archive.ErrForeign},
		"no archive":          {func(dir string) error { return os.Remove(filepath.Join(dir, backup.ArchiveName)) }, archive.ErrDamaged},
		"a newer mark":        {rewrite(backup.MarkName, func(b []byte) []byte { return bytes.Replace(b, []byte(`"format":1`), []byte(`"format":2`), 1) }), archive.ErrNewer},
		"a mark of nothing":   {rewrite(backup.MarkName, func([]byte) []byte { return []byte("\x00\x00") }), archive.ErrDamaged},
		"an archive cut off":  {rewrite(backup.ArchiveName, func(b []byte) []byte { return b[:len(b)-9] }), archive.ErrDamaged},
		"a flipped bit":       {rewrite(backup.ArchiveName, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }), archive.ErrDamaged},
		"a flip in its list":  {rewrite(backup.ArchiveName, func(b []byte) []byte { b[len(b)-60] ^= 1; return b }), archive.ErrDamaged},
		"a flip at its front": {rewrite(backup.ArchiveName, func(b []byte) []byte { b[3] ^= 1; return b }), archive.ErrForeign},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "backup")
			testkit.Must(t, testkit.Err(backup.Receive(t.Context(), dir, "test", bytes.NewReader(whole), nil)))
			testkit.Must(t, tt.change(dir))
			folder, err := backup.Open(dir)
			if err == nil {
				defer folder.Close()
				err = folder.Verify(t.Context(), nil)
				restored := folder.Restore(t.Context(), newYard(t).target())
				testkit.Equal(t, errors.Is(restored, tt.want), true, "restored: %v", restored)
			}
			testkit.ErrorIs(t, err, tt.want)
		})
	}
}
