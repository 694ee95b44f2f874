package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/eventyard/eventyard/internal/backup/archive"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// What a backup has in its folder.
const (
	// MarkName is that of the file by which a folder is known as a backup. It is the first thing in it,
	// and says that the backup is whole only once all of it is durable.
	MarkName = "eventyard-backup.json"
	// ArchiveName is that of the archive.
	ArchiveName = "archive.eyb"
)

// ErrOccupied: the folder holds something, so that no backup is written there.
var ErrOccupied = errors.New("the folder is not empty")

// mark is the content of the file MarkName.
type mark struct {
	Format   int       `json:"format"`
	Program  string    `json:"program"`
	Began    time.Time `json:"began"`
	Complete bool      `json:"complete"`
	// Bytes is the length of the archive, if it is complete.
	Bytes int64 `json:"bytes,omitempty"`
}

// Receive writes an archive that is read from a yard into a folder, which is empty or does not exist,
// and checks it on the way. When it returns, all of it is durable and marked as complete. After an error
// the folder is marked as unfinished, unless it was refused: then nothing was changed. Progress hears how
// many bytes came; nil means nobody. Errors: ErrOccupied, those of archive.Reader, of in or the disk.
func Receive(ctx context.Context, dir, program string, in io.Reader, progress func(read int64)) (Summary, error) {
	if err := CheckEmpty(dir); err != nil {
		return Summary{}, err
	}
	folder := vfs.OS(dir)
	if err := folder.MkdirAll("."); err != nil {
		return Summary{}, fmt.Errorf("make the folder of the backup: %w", err)
	}
	m := mark{Format: archive.Format, Program: program, Began: time.Now().UTC().Truncate(time.Second)}
	if err := m.write(folder); err != nil {
		return Summary{}, err
	}
	file, err := folder.Create(ArchiveName)
	if err != nil {
		return Summary{}, fmt.Errorf("make the archive: %w", err)
	}
	summary, err := readThrough(ctx, io.TeeReader(in, io.NewOffsetWriter(file, 0)), progress)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return Summary{}, err
	}
	if err := folder.SyncDir("."); err != nil {
		return Summary{}, fmt.Errorf("sync the folder of the backup: %w", err)
	}
	m.Complete, m.Bytes = true, summary.Bytes
	return summary, m.write(folder)
}

func (m mark) write(folder vfs.FS) error {
	text, err := json.Marshal(m)
	if err == nil {
		err = vfs.ReplaceFile(folder, MarkName, string(text)+"\n")
	}
	if err != nil {
		return fmt.Errorf("mark the folder of the backup: %w", err)
	}
	return nil
}

// readThrough reads and checks an archive to its end.
func readThrough(ctx context.Context, in io.Reader, progress func(read int64)) (Summary, error) {
	r, err := archive.NewReader(in)
	if err != nil {
		return Summary{}, err
	}
	for {
		_, err := r.Next()
		if errors.Is(err, io.EOF) {
			return Summarize(r.Head, r.Items(), r.Offset()), nil
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return Summary{}, err
		}
		if progress != nil {
			progress(r.Offset())
		}
	}
}

// CheckEmpty says by ErrOccupied why a backup cannot be written to a folder; nil if it is empty or not
// there.
func CheckEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == "lost+found" {
			continue
		}
		m, err := readMark(dir)
		switch {
		case err == nil && m.Complete:
			return fmt.Errorf("%w: %s holds the backup of %s", ErrOccupied, dir, m.Began.Format(time.RFC3339))
		case err == nil:
			return fmt.Errorf("%w: %s holds a backup of %s that was not finished, and is of no use", ErrOccupied, dir, m.Began.Format(time.RFC3339))
		}
		return fmt.Errorf("%w: %s holds %s", ErrOccupied, dir, entry.Name())
	}
	return nil
}

// readMark reads the mark of a folder. One that is still being written is that of a backup that was
// killed as it began. The error is fs.ErrNotExist where there is none.
func readMark(dir string) (mark, error) {
	text, err := os.ReadFile(filepath.Join(dir, MarkName))
	if errors.Is(err, fs.ErrNotExist) {
		begun, err := os.Stat(filepath.Join(dir, MarkName+vfs.UnfinishedSuffix))
		if err != nil {
			return mark{}, err
		}
		return mark{Format: archive.Format, Began: begun.ModTime().UTC()}, nil
	}
	if err != nil {
		return mark{}, err
	}
	var m mark
	if err := json.Unmarshal(text, &m); err != nil || m.Format < 1 {
		return mark{}, fmt.Errorf("%w: %s cannot be read", archive.ErrDamaged, MarkName)
	}
	return m, nil
}

// Folder is a backup that was opened.
type Folder struct {
	Head  archive.Head
	Items []archive.Item
	// Summary is of what its list says.
	Summary Summary
	file    *os.File
}

// Open opens a backup that is complete. What the archive holds is not looked at but for its list. Errors:
// archive.ErrForeign, ErrNewer, ErrUnfinished, ErrDamaged, or that of the disk.
func Open(dir string) (*Folder, error) {
	m, err := readMark(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: there is no %s in %s", archive.ErrForeign, MarkName, dir)
	case err != nil:
		return nil, err
	case m.Format > archive.Format:
		return nil, fmt.Errorf("%w: it has format %d, written by %s; this program knows formats up to %d", archive.ErrNewer, m.Format, m.Program, archive.Format)
	case !m.Complete:
		return nil, fmt.Errorf("%w: it was begun at %s and interrupted", archive.ErrUnfinished, m.Began.Format(time.RFC3339))
	}
	file, err := os.Open(filepath.Join(dir, ArchiveName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is missing", archive.ErrDamaged, ArchiveName)
	}
	if err != nil {
		return nil, err
	}
	f := &Folder{file: file}
	if err := f.read(m); err != nil {
		_ = file.Close()
		return nil, err
	}
	return f, nil
}

func (f *Folder) read(m mark) error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() != m.Bytes {
		return fmt.Errorf("%w: %s has %d bytes, and %d were written", archive.ErrDamaged, ArchiveName, info.Size(), m.Bytes)
	}
	if f.Head, f.Items, err = archive.ReadList(f.file, info.Size()); err != nil {
		return err
	}
	f.Summary = Summarize(f.Head, f.Items, m.Bytes)
	return nil
}

// Verify reads all of it, and checks each byte.
func (f *Folder) Verify(ctx context.Context, progress func(read int64)) error {
	_, err := readThrough(ctx, io.NewSectionReader(f.file, 0, f.Summary.Bytes), progress)
	return err
}

// Restore copies it into a target; see Restore.
func (f *Folder) Restore(ctx context.Context, to Target) error {
	return Restore(ctx, io.NewSectionReader(f.file, 0, f.Summary.Bytes), f.Items, to)
}

// Close frees it.
func (f *Folder) Close() error { return f.file.Close() }
