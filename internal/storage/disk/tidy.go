package disk

import (
	"errors"
	"io/fs"
	"log/slog"
	"path"
	"strings"
	"syscall"

	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// tidy removes what earlier processes left in the engine's folders, but for the reserve, which it
// gives, makes the folders, all of them, since on a full disk there is no room for another later,
// and does the journal again. It frees room before it takes some. Older versions made no trash: on a
// full disk the yard starts without, too.
func tidy(cfg Config) (reserve string, err error) {
	fs, log := cfg.FS, cfg.Log
	if err := clearTrash(fs, log); err != nil {
		return "", err
	}
	if reserve, err = clearSpares(fs, log); err != nil {
		return "", err
	}
	for _, dir := range []string{logDir, journalDir, spareDir, trashDir} {
		if err := fs.MkdirAll(dir); err != nil && !(dir == trashDir && vfs.IsNoSpace(err)) {
			return "", err
		}
	}
	return reserve, redo(fs, cfg.OpenSegments)
}

func clearTrash(fs vfs.FS, log *slog.Logger) error {
	entries, err := fs.List(trashDir)
	if vfs.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := path.Join(trashDir, entry.Name)
		if !entry.Dir || !isLogName(entry.Name) {
			reportForeign(log, name)
		} else if err := erase(fs, name, log); err != nil {
			return err
		}
	}
	return nil
}

func clearSpares(fs vfs.FS, log *slog.Logger) (reserve string, err error) {
	entries, err := fs.List(spareDir)
	if vfs.IsNotExist(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, entry := range entries {
		name := path.Join(spareDir, entry.Name)
		switch {
		case !entry.IsFile() || !isSpare(entry.Name):
			reportForeign(log, name)
		case reserve == "" && entry.Bytes == reserveBytes && isGone(fs, entry.Name):
			reserve = name
		default:
			if err := fs.Remove(name); err != nil {
				return "", err
			}
		}
	}
	return reserve, fs.SyncDir(spareDir) // so that the room is there at once
}

// isGone sees to it that a spare's old name, if it had one, does not come back.
func isGone(fs vfs.FS, spare string) bool {
	if strings.HasPrefix(spare, newPrefix) {
		return true
	}
	log, rest, _ := strings.Cut(spare, ".")
	number, _, ok := strings.Cut(rest, ".")
	if !ok {
		return false // an older version's name, which does not say whose it was
	}
	err := fs.SyncDir(path.Join(logDir, log, number))
	return err == nil || vfs.IsNotExist(err)
}

// throwAway removes a log's folder. It is first moved aside in one step, so that a crash leaves
// either the whole log or none of it. Where that cannot be, since there are files of others in it
// or no room for the new name, the segments are removed where they are.
func (e *Engine) throwAway(log string) error {
	dir, trash := path.Join(logDir, log), path.Join(trashDir, log)
	_, foreign, err := contents(e.fs, dir)
	switch {
	case vfs.IsNotExist(err):
		dir = trash // moved by an earlier try
	case err != nil:
		return err
	case len(foreign) == 0:
		err := e.moveAside(dir, trash)
		if err == nil {
			dir = trash
		} else if !vfs.IsNoSpace(err) && !isTaken(err) {
			return err
		}
	}
	if err := e.fs.SyncDir(logDir); err != nil {
		return err
	}
	if err := e.fs.SyncDir(trashDir); err != nil && !vfs.IsNotExist(err) { // there was no room to make it
		return err
	}
	return erase(e.fs, dir, e.log)
}

func (e *Engine) moveAside(dir, trash string) error {
	if err := e.fs.MkdirAll(trashDir); err != nil {
		return err
	}
	return e.fs.Rename(dir, trash)
}

// isTaken: something has the name already.
func isTaken(err error) bool {
	return errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.ENOTDIR)
}

// erase removes the engine's files from a log's folder, and the folders if nothing else is in them.
func erase(fs vfs.FS, dir string, log *slog.Logger) error {
	own, foreign, err := contents(fs, dir)
	if vfs.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range own {
		if err := fs.Remove(name); err != nil && !vfs.IsNotExist(err) {
			return err
		}
	}
	for _, name := range foreign {
		reportForeign(log, name)
	}
	return fs.SyncDir(path.Dir(dir))
}

func reportForeign(log *slog.Logger, name string) {
	log.Warn("foreign file in the data folder is left alone", "file", name)
}
