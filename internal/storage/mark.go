package storage

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/cluster/bundle"
	"github.com/eventyard/eventyard/internal/storage/bolt"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// Format is the newest form of a data folder that this program knows, and the one it writes. It
// rises when an older program could not read, or would damage, what a newer one writes anywhere in
// the folder. docs/internals/format/folder.md says what each of them has.
const Format = 6

// markName is that of the file by which a folder is known as a yard's. It is the first thing in it.
const markName = "eventyard-data.json"

// lostFound is a folder of the file system's, where one begins.
const lostFound = "lost+found"

// mark is its content.
type mark struct {
	// Format is the form of all that is in the folder.
	Format int `json:"format"`
	// Program wrote the folder in this form first. Who cannot read it names this one.
	Program string `json:"program,omitempty"`
	// Restoring is the id of a restore that is under way, or was interrupted: nothing is to open the
	// folder. Format is restoringFormat then, for programs that do not know this member.
	Restoring string `json:"restoring,omitempty"`
	// Adapting: what was restored is being changed or removed, so that the restore can only be begun anew.
	Adapting bool `json:"adapting,omitempty"`
	// Peer: the folder holds what the server inside a node keeps, and no yard. Format is restoringFormat
	// then, likewise.
	Peer *peerMark `json:"peer,omitempty"`
}

// peerMark says whose the folder of a peer is.
type peerMark struct {
	// Format is the form of what is beside the server's own files.
	Format int `json:"format"`
	// Yard and Cluster are those of the bundle that was given, Node is the peer.
	Yard    string `json:"yard"`
	Cluster string `json:"cluster"`
	Node    string `json:"node"`
}

// peerFormat is the newest form of a peer's folder that this program knows.
const peerFormat = 1

// kind is what a folder is.
type kind int

const (
	// empty: nothing is in it, or it is not there, or a first start was cut short.
	empty kind = iota
	// marked: it is a yard's.
	marked
	// unmarked: it is a yard's from before there was a mark.
	unmarked
	// foreign: it is somebody else's.
	foreign
)

// examined is what was found in a folder.
type examined struct {
	kind kind
	mark mark // if it is marked
	// names are what is in it, but for what a start cut short leaves.
	names []string
}

// examine finds out what a folder is, changing nothing. Own are the names of what a yard has beside
// its storage.
func examine(folder string, own []string) (examined, error) {
	var found examined
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return found, fmt.Errorf("look into the data folder: %w", err)
	}
	there := map[string]fs.DirEntry{}
	for _, entry := range entries {
		there[entry.Name()] = entry
		if !isRemnant(folder, entry) {
			found.names = append(found.names, entry.Name())
		}
	}
	switch {
	case there[markName] != nil && there[markName].Type().IsRegular():
		found.kind = marked
		if found.mark, err = readMark(filepath.Join(folder, markName)); err != nil {
			return found, err
		}
	case len(found.names) == 0:
	case there[metaName] != nil && bolt.IsStore(filepath.Join(folder, metaName)):
		found.kind = unmarked
	default:
		found.kind = foreign
		return found, nil
	}
	return found, noLinks(folder, append(storageNames(), own...))
}

// noLinks refuses links where a yard has its files: they would lead it to those of others. A folder
// comes before what is in it.
func noLinks(folder string, own []string) error {
	for _, name := range own {
		info, err := os.Lstat(filepath.Join(folder, name))
		if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is a link or a device: the yard follows no links in its data folder: put the file or folder itself there, or move it away",
				filepath.Join(folder, name))
		}
	}
	return nil
}

// isRemnant tells whether something may be what a first start leaves that was cut short, or belongs
// to the file system.
func isRemnant(folder string, entry fs.DirEntry) bool {
	name := entry.Name()
	switch {
	case name == lostFound && entry.IsDir():
		return true
	case name == lockName && entry.Type().IsRegular():
		text, err := os.ReadFile(filepath.Join(folder, name)) // a process id
		return err == nil && len(text) <= 20 && strings.Trim(string(text), "0123456789\r\n") == ""
	case slices.Contains([]string{logDir, journalDir, spareDir, trashDir}, name) && entry.IsDir():
		inside, err := os.ReadDir(filepath.Join(folder, name))
		return err == nil && (len(inside) == 0 || len(inside) == 1 && inside[0].Name() == lostFound)
	}
	return entry.Type().IsRegular() && (name == markName+vfs.UnfinishedSuffix || bolt.IsUnfinished(name, metaName))
}

func readMark(file string) (mark, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return mark{}, fmt.Errorf("read the mark of the data folder: %w", err)
	}
	var m mark
	if err := json.Unmarshal(text, &m); err != nil || m.Format < 1 {
		return mark{}, fmt.Errorf("%s is damaged: restore it from a backup, or remove it: the next start writes it anew if %s is there", file, metaName)
	}
	return m, nil
}

// refusal says why a folder cannot be used; nil if it can.
func (e examined) refusal(folder string) error {
	switch {
	case e.kind == marked && e.mark.Restoring != "":
		return fmt.Errorf("%w: %s holds a part of a backup", ErrRestoring, folder)
	case e.kind == marked && e.mark.Peer != nil:
		return fmt.Errorf("%w: %s is that of %s of yard %s", ErrPeerFolder, folder, e.mark.Peer.Node, e.mark.Peer.Yard)
	case e.kind == foreign:
		lacks, hint := "no "+markName, ""
		switch {
		case slices.Contains(e.names, markName):
			lacks, hint = markName+" in it is a link or a folder, not a file", "; if it is that of a yard, put the file itself there"
		case slices.Contains(e.names, logDir):
			hint = "; if it is that of an older yard, restore its " + metaName
		}
		return fmt.Errorf("%w: %s holds %s, and %s: use an empty folder, or one that does not exist yet%s",
			ErrForeign, folder, someOf(e.names), lacks, hint)
	case e.kind == marked && e.mark.Format > Format:
		by := cmp.Or(e.mark.Program, "a newer eventyard")
		return fmt.Errorf("%w: %s has data format %d, written by %s; this program knows formats up to %d: run %s, or a newer one",
			ErrNewerData, folder, e.mark.Format, by, Format, by)
	}
	return nil
}

// peerRefusal says why a folder that is not empty cannot be used by a peer; nil if it can.
func (e examined) peerRefusal(folder string, b bundle.Bundle) error {
	own := e.mark.Peer
	switch {
	case e.kind != marked || own == nil:
		if err := e.refusal(folder); err != nil {
			return err
		}
		return fmt.Errorf("%w: %s holds a whole yard, which runs without --cluster-bundle", ErrOtherPeer, folder)
	case own.Format > peerFormat:
		return fmt.Errorf("%w: %s was written by %s: run that, or a newer one", ErrNewerData, folder, cmp.Or(e.mark.Program, "a newer eventyard"))
	case own.Cluster != b.Cluster:
		return fmt.Errorf("%w: %s has data of yard %s (cluster %.6s), and the bundle is of yard %s (cluster %.6s)", ErrOtherPeer, folder, own.Yard, own.Cluster, b.Yard, b.Cluster)
	case own.Node != b.Node:
		return fmt.Errorf("%w: %s has the data of %s, and the bundle is that of %s", ErrOtherPeer, folder, own.Node, b.Node)
	}
	return nil
}

// someOf names a few of many.
func someOf(names []string) string {
	const most = 3
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// admit finds out whether the folder can be used, changing nothing.
func admit(folder string, own []string) (examined, error) {
	found, err := examine(folder, own)
	if err == nil {
		err = found.refusal(folder)
	}
	return found, err
}

// putMark marks an empty folder, before anything else is written there. The caller has its lock.
func putMark(folder string, cfg Config) error {
	found, err := admit(folder, cfg.Own) // again: another process may have been here before the lock
	if err != nil || found.kind != empty {
		return err
	}
	return writeMark(folder, cfg)
}

// renewMark marks a folder that is of an older format, or from before the mark, with the present
// one. Nothing in it has to be converted: what only the present format has stands beside what was
// there, and is written from then on. The caller has the folder's lock.
func renewMark(folder string, cfg Config) error {
	found, err := admit(folder, cfg.Own)
	if err != nil {
		return err
	}
	if found.kind == marked && found.mark.Format == Format {
		// Who replaced it may have been killed before its name was durable.
		if err := cfg.markFolder(folder).SyncDir("."); err != nil {
			return fmt.Errorf("sync the data folder: %w", err)
		}
		return nil
	}
	return writeMark(folder, cfg)
}

func writeMark(folder string, cfg Config) error {
	return cfg.put(folder, mark{Format: Format, Program: cfg.Program})
}

func (c Config) put(folder string, m mark) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := vfs.ReplaceFile(c.markFolder(folder), markName, string(text)+"\n"); err != nil {
		return fmt.Errorf("mark the data folder: %w", err)
	}
	return nil
}

// markFolder is where the mark is written.
func (c Config) markFolder(folder string) vfs.FS {
	if c.markIn != nil {
		return c.markIn
	}
	return vfs.OS(folder)
}
