package blob

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Checkpoint is how far a processor of an Event Hubs library has come in a partition. Those libraries
// keep a blob for each, in a container of their user's choice:
//
//	NAMESPACE/HUB/GROUP/checkpoint/PARTITION    metadata sequencenumber, offset
//
// NAMESPACE is the host by which the program reaches the hub, with the port if its connection string
// has one. Some of them write all in lower case.
type Checkpoint struct {
	Container, Namespace, Partition string
	// Sequence is -1 where it is not known; Offset is empty then or all that is known.
	Sequence int64
	Offset   string
	Saved    time.Time
}

// Checkpoints gives those of a group that are in any container, under whatever namespace. One that was
// saved in a new folder may be found a second later, or where there are very many blobs some more.
func (s *Service) Checkpoints(ctx context.Context, hub, group string) ([]Checkpoint, error) {
	folders, err := s.folders.find(ctx, s, strings.ToLower(hub+"/"+group))
	if err != nil {
		return nil, err
	}
	// Some write the name as it is, and then another that differs by capitals is another group's.
	exact := func(f checkpointFolder) bool { return strings.HasSuffix(f.prefix, "/"+group+"/checkpoint/") }
	spelled := !strings.EqualFold(group, "$Default") && slices.ContainsFunc(folders, exact)
	var all []Checkpoint
	for _, f := range folders {
		if spelled && !exact(f) {
			continue
		}
		found, err := s.named(ctx, f.id, f.prefix)
		if err != nil {
			return nil, err
		}
		for _, b := range found {
			r, err := decode[record](b.entry)
			if err != nil {
				continue // one that cannot be read is none
			}
			if partition := b.name[len(f.prefix):]; !r.Uncommitted && !strings.Contains(partition, "/") {
				all = append(all, f.checkpoint(partition, r.Blob))
			}
		}
	}
	return all, nil
}

// checkpointFolder is where the checkpoints of one group are that a program reaches by one namespace.
type checkpointFolder struct {
	container, id string
	prefix        string // up to the partition
}

func (f checkpointFolder) checkpoint(partition string, b Blob) Checkpoint {
	namespace, _, _ := strings.Cut(f.prefix, "/")
	sequence, err := strconv.ParseInt(b.Metadata["sequencenumber"], 10, 64)
	if err != nil || sequence < 0 { // there are libraries that write the least number of all
		sequence = -1
	}
	return Checkpoint{
		Container: f.container, Namespace: namespace, Partition: partition,
		Sequence: sequence, Offset: b.Metadata["offset"], Saved: b.Modified,
	}
}

// folderOf reads a blob's name: the folder up to the partition, and HUB/GROUP in lower case. The name
// of a hub may have slashes.
func folderOf(name string) (folder, group string, ok bool) {
	parts := strings.Split(name, "/")
	n := len(parts)
	if n < 5 || parts[n-2] != "checkpoint" {
		return "", "", false
	}
	return strings.Join(parts[:n-1], "/") + "/", strings.ToLower(strings.Join(parts[1:n-2], "/")), true
}

// checkpointFolders knows where there are checkpoints. To find that out takes reading the names of all
// blobs, so it is done for at most a hundredth of the time, and by one at a time: who asks meanwhile is
// told what was found before. The zero value works.
type checkpointFolders struct {
	known atomic.Pointer[knownFolders] // nil: nobody has looked yet
	looks sync.Mutex                   // held by who looks
}

// knownFolders is what one look found.
type knownFolders struct {
	of   map[string][]checkpointFolder // by HUB/GROUP in lower case
	next time.Time                     // when to look again
}

const (
	foldersEvery = time.Second
	foldersShare = 100
)

func (k *checkpointFolders) find(ctx context.Context, s *Service, group string) ([]checkpointFolder, error) {
	known := k.known.Load()
	switch {
	case known == nil: // nobody can be told anything yet
		k.looks.Lock()
	case time.Now().Before(known.next) || !k.looks.TryLock():
		return known.of[group], nil
	}
	defer k.looks.Unlock()
	began := time.Now()
	if known = k.known.Load(); known != nil && began.Before(known.next) {
		return known.of[group], nil // somebody has looked meanwhile
	}
	of, err := s.lookForCheckpoints(ctx)
	next := time.Now().Add(max(foldersEvery, foldersShare*time.Since(began)))
	switch {
	case err == nil:
		k.known.Store(&knownFolders{of, next})
	case known != nil: // one that fails may have taken as long
		k.known.Store(&knownFolders{known.of, next})
	}
	return of[group], err
}

// lookForCheckpoints reads the names of all blobs.
func (s *Service) lookForCheckpoints(ctx context.Context) (map[string][]checkpointFolder, error) {
	containers, err := s.meta.List(ctx, containersPrefix)
	if err != nil {
		return nil, err
	}
	all := map[string][]checkpointFolder{}
	for _, e := range containers {
		c, err := decode[containerRecord](e)
		if err != nil {
			continue // one that cannot be read has none
		}
		of := blobsPrefix + c.ID + "/"
		keys, err := meta.Keys(ctx, s.meta, of)
		if err != nil {
			return nil, err
		}
		last := ""
		for _, key := range keys { // those of a folder one after another
			name, err := unescapeName(strings.TrimPrefix(key, of))
			folder, group, ok := folderOf(name)
			if err == nil && ok && folder != last {
				all[group] = append(all[group], checkpointFolder{c.Name, c.ID, folder})
				last = folder
			}
		}
	}
	return all, nil
}
