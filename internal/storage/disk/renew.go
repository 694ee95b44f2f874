package disk

import (
	"sync"
	"sync/atomic"

	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// renewal is the step from a folder that an older version wrote to one of the present format. On a
// full disk there may be no room for it: then the engine works on, in the older format.
type renewal struct {
	done atomic.Bool

	mu    sync.Mutex
	renew func() error // guarded by mu; nil once it is done
}

// renewFolder renews the folder, if there is room.
func renewFolder(cfg Config) (*renewal, error) {
	r := &renewal{renew: cfg.Renew}
	err := r.try()
	if vfs.IsNoSpace(err) {
		cfg.Log.Warn("data folder keeps its older format until there is room", "error", err)
		return r, nil
	}
	return r, err
}

// try renews the folder unless that is done. It returns without error when what only the present
// format has may be written.
func (r *renewal) try() error {
	if r.done.Load() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.renew != nil {
		if err := r.renew(); err != nil {
			return err
		}
		r.renew = nil
	}
	r.done.Store(true)
	return nil
}
