package blob

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Run clears away what crashes, failures and deletions have left, at once and then now and
// then, until ctx ends, and returns nil then.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		s.tend(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// tend sweeps, if that is for this node to do.
func (s *Service) tend(ctx context.Context) {
	if !s.tends() {
		s.bodies.nameless = nil // what has a name again meanwhile, and loses it, is looked at from then on
		return
	}
	if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
		s.log.Warn("bodies of blobs that nobody names may be left, looking again later", "error", err)
	}
}

// Sweep removes the entries of deleted containers, blocks that nobody can commit any more,
// and the bodies that no entry names. No two may run at once, nor with Run.
//
// The order of looking is what makes it safe. A body is there before the entry that names
// it, a block's entry after that of its blob, a blob's after that of its container: so what
// was found, and is not named by what is read later, has lost its name for good. A body
// moves from a block's entry to its blob's: hence these are read in that order, and not before
// they are fresh. Who writes has its body pinned until it is named, and on another node as long
// as the grace lasts.
func (s *Service) Sweep(ctx context.Context) error {
	names, err := s.bodies.beginSweep(ctx)
	if err != nil {
		return err
	}
	asked := time.Now()
	err = s.meta.Fresh(ctx, allPrefix)
	var named map[string]bool
	if err == nil {
		named, err = s.sweepEntries(ctx)
	}
	held := false
	if err == nil && s.holds != nil { // after the names were read: what has one now may be in a backup
		held, err = s.holds.Held(ctx)
	}
	if err != nil || held {
		s.bodies.stopNoting()
		return err
	}
	if removed := s.bodies.endSweep(ctx, asked, names, named); removed > 0 {
		s.log.Info("bodies of blobs that nobody names were removed", "bodies", removed)
	}
	return nil
}

// sweepEntries gives the files that entries name.
func (s *Service) sweepEntries(ctx context.Context) (map[string]bool, error) {
	entries := map[string][]meta.Entry{} // read in this order; see Sweep
	for _, prefix := range []string{blocksPrefix, blobsPrefix, longPrefix, containersPrefix} {
		var err error
		if entries[prefix], err = s.meta.List(ctx, prefix); err != nil {
			return nil, err
		}
	}
	containers := map[string]bool{}
	for _, e := range entries[containersPrefix] {
		c, err := decode[containerRecord](e)
		if err != nil {
			return nil, err
		}
		containers[c.ID] = true
	}
	named := map[string]bool{}
	states := map[string]bool{} // those that blocks may belong to
	for _, e := range slices.Concat(entries[blobsPrefix], entries[longPrefix]) {
		r, err := decode[record](e)
		if err != nil {
			return nil, err // its files would count as nobody's
		}
		if !containers[containerOf(e.Key)] || r.Uncommitted && now().Sub(r.Created) > uncommittedAge {
			_ = s.meta.Delete(ctx, e.Key, e.Revision)
			continue
		}
		states[r.State] = true
		for _, name := range r.files() {
			named[name] = true
		}
	}
	for _, e := range entries[blocksPrefix] {
		b, err := decode[blockRecord](e)
		if err != nil {
			return nil, err
		}
		old := now().Sub(b.Uploaded) > uncommittedAge
		if old || !states[stateOf(e.Key)] && s.stale(ctx, e.Key, b) {
			_ = s.meta.Delete(ctx, e.Key, e.Revision)
			continue
		}
		named[b.File] = true
	}
	return named, nil
}

// stale looks once more, so that to delete blocks hangs on no order of reading.
func (s *Service) stale(ctx context.Context, key string, b *blockRecord) bool {
	r, _, err := get[record](ctx, s, blobKey(containerOf(key), b.Blob))
	return err == nil && (r == nil || r.State != stateOf(key))
}

// containerOf is the third segment of the key of a blob or block: a container's id.
func containerOf(key string) string { return segment(key, 2) }

// stateOf is the fifth segment of the key of a block.
func stateOf(key string) string { return segment(key, 4) }

func segment(key string, n int) string {
	parts := strings.SplitN(key, "/", n+2)
	if len(parts) <= n {
		return ""
	}
	return parts[n]
}

// clear removes what was in a deleted container. What fails, or is added while it works, is
// left to the next sweep.
func (s *Service) clear(ctx context.Context, container string) {
	for _, prefix := range []string{blobsPrefix, longPrefix} {
		entries, err := s.meta.List(ctx, prefix+container+"/")
		if err != nil {
			return
		}
		for _, e := range entries {
			r, err := decode[record](e)
			if err == nil && s.meta.Delete(ctx, e.Key, e.Revision) == nil {
				s.forget(ctx, container, r, nil)
			}
		}
	}
}
