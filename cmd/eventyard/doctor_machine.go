package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/overview"
)

// examineFolder sees whether the data folder is there and ours, and says whether
// there is a folder to measure.
func (d *doctor) examineFolder() bool {
	info, err := os.Stat(d.cfg.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d.examineParent()
	case err != nil:
		d.note("folder", problem, "check the permissions of the folders above it", "%v", err)
		return false
	case !info.IsDir():
		d.note("folder", problem, "choose a folder with --data", "%s is not a folder", d.cfg.Data)
		return false
	}
	if err := canWrite(d.cfg.Data); err != nil {
		d.note("folder", problem, "give it to the user that runs the yard", "%s cannot be written to: %v", d.cfg.Data, err)
		return false
	}
	if open := info.Mode().Perm() & 0o077; open != 0 {
		d.note("folder", warning, "chmod 700 "+d.cfg.Data, "%s can be read by other users (mode %04o)", d.cfg.Data, info.Mode().Perm())
		return true
	}
	d.note("folder", fine, "", "%s can be written to, by its owner only", d.cfg.Data)
	return true
}

// examineParent judges a folder that serve would have to make.
func (d *doctor) examineParent() bool {
	parent := existingParent(d.cfg.Data)
	if err := canWrite(parent); err != nil {
		d.note("folder", problem, "choose another folder with --data, or make this one", "%s is not there, and cannot be made in %s: %v", d.cfg.Data, parent, err)
		return false
	}
	d.note("folder", fine, "", "%s is not there yet; serve will make it", d.cfg.Data)
	return true
}

// existingParent is the nearest folder above, or the folder itself.
func existingParent(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "."
	}
	for {
		if info, err := os.Stat(abs); err == nil && info.IsDir() {
			return abs
		}
		if abs == filepath.Dir(abs) {
			return abs
		}
		abs = filepath.Dir(abs)
	}
}

func (d *doctor) examineSpace() {
	free, total, err := space(existingParent(d.cfg.Data))
	if err != nil {
		d.note("space", warning, "", "free space is not known: %v", err)
		return
	}
	d.judgeSpace(free, total)
}

// judgeSpace says the same as status does of a yard that runs.
func (d *doctor) judgeSpace(free, total int64) {
	text := fmt.Sprintf("%s of %s are free", roughBytes(free), roughBytes(total))
	switch overview.JudgeRoom(free, total) {
	case overview.Full:
		d.note("space", problem, "free some: a yard refuses events when the disk is full", "the disk is full: %s", text)
	case overview.Low:
		d.note("space", warning, "shorten the retention of hubs, or free some", "the disk is nearly full: %s", text)
	default:
		d.note("space", fine, "", "%s", text)
	}
}

// How syncs are measured, and what is slow.
const (
	syncTrials = 20
	syncBytes  = 4 << 10
	slowSync   = 20 * time.Millisecond
)

// examineSync measures what every acknowledgement waits for.
func (d *doctor) examineSync() {
	times, err := measureSyncs(existingParent(d.cfg.Data))
	if err != nil {
		d.note("sync", problem, "see whether the disk is full or read-only", "%v", err)
		return
	}
	slices.Sort(times)
	median, worst := times[len(times)/2], times[len(times)-1]
	text := fmt.Sprintf("a sync takes %s, at worst %s (%d tried)", showSpan(median), showSpan(worst), len(times))
	if median > slowSync {
		d.note("sync", warning, "events sent one by one wait that long each; send batches, or use a faster disk", "%s", text)
		return
	}
	d.note("sync", fine, "", "%s", text)
}

// measureSyncs times writes that are synced, in a file that is gone afterwards.
func measureSyncs(dir string) (times []time.Duration, err error) {
	f, err := os.CreateTemp(dir, "eventyard-doctor-*")
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}()
	block := make([]byte, syncBytes)
	for range syncTrials {
		began := time.Now()
		if _, err := f.Write(block); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		times = append(times, time.Since(began))
	}
	return times, nil
}
