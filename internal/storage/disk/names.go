package disk

import (
	"crypto/rand"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// Where things are in the data folder.
const (
	lockName   = "LOCK"
	logDir     = "log"
	journalDir = "journal"
	spareDir   = "spare"
	trashDir   = "trash"
)

// The names of the engine's files:
//
//	log/LOG/NUMBER/BASE.seg      a segment, by the number of its first event
//	trash/LOG/NUMBER/BASE.seg    a segment of a log that is being removed
//	spare/LOG.NUMBER.BASE.seg    a removed segment, for use again
//	spare/new-RANDOM             a segment that is being made, or may be one day
//	journal/RANDOM.jnl           a file of the journal
//
// What has another name, or is no file, is not the engine's: it is never opened, removed or
// replaced.
const (
	suffix        = ".seg"
	journalSuffix = ".jnl"
	newPrefix     = "new-"
)

func partitionDir(id eventlog.PartitionID) string {
	return path.Join(logDir, id.Log, strconv.Itoa(id.Number))
}

func fileName(base eventlog.Sequence) string { return fmt.Sprintf("%020d%s", base, suffix) }

// parseName reads the base from a file's name.
func parseName(name string) (eventlog.Sequence, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	base, err := strconv.ParseInt(digits, 10, 64)
	return eventlog.Sequence(base), err == nil && base >= 0
}

// spareName is that of a removed segment. No other has it: names of logs are not used again.
func spareName(id eventlog.PartitionID, base eventlog.Sequence) string {
	return path.Join(spareDir, fmt.Sprintf("%s.%d.%s", id.Log, id.Number, fileName(base)))
}

// isSpare knows what may be in the folder of spares.
func isSpare(name string) bool {
	if random, ok := strings.CutPrefix(name, newPrefix); ok && isRandom(random) {
		return true
	}
	if digits, ok := strings.CutSuffix(name, suffix); ok && len(digits) == 6 && isNumber(digits) {
		return true // of an older version
	}
	parts := strings.SplitN(name, ".", 3)
	if len(parts) != 3 || !isLogName(parts[0]) || !isPartitionName(parts[1]) {
		return false
	}
	_, ok := parseName(parts[2])
	return ok
}

func newSpareName() string { return path.Join(spareDir, newPrefix+rand.Text()) }

func newJournalName() string { return path.Join(journalDir, rand.Text()+journalSuffix) }

func isJournal(name string) bool {
	random, ok := strings.CutSuffix(name, journalSuffix)
	return ok && isRandom(random)
}

// isRandom knows what rand.Text makes.
func isRandom(text string) bool {
	return len(text) == len(rand.Text()) && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

func isLogName(name string) bool {
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '_') {
			return false
		}
	}
	return len(name) >= 1 && len(name) <= 120
}

func isPartitionName(name string) bool {
	number, err := strconv.ParseUint(name, 10, 31)
	return err == nil && strconv.FormatUint(number, 10) == name
}

func isNumber(digits string) bool { return strings.Trim(digits, "0123456789") == "" }

// contents lists a log's folder. Own are the engine's files and those of its folders that hold
// nothing else, in an order in which they can be removed: in each partition the oldest file first.
func contents(fs vfs.FS, dir string) (own, foreign []string, err error) {
	partitions, err := fs.List(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range partitions {
		name := path.Join(dir, p.Name)
		if !p.Dir || !isPartitionName(p.Name) {
			foreign = append(foreign, name)
			continue
		}
		files, err := fs.List(name)
		if err != nil {
			return nil, nil, err
		}
		before := len(foreign)
		for _, f := range files {
			if _, ok := parseName(f.Name); ok && f.IsFile() {
				own = append(own, path.Join(name, f.Name))
			} else {
				foreign = append(foreign, path.Join(name, f.Name))
			}
		}
		if len(foreign) == before {
			own = append(own, name)
		}
	}
	if len(foreign) == 0 {
		own = append(own, dir)
	}
	return own, foreign, nil
}
