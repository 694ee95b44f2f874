package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/jetstream/entries"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/holds"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
)

// checkFilled refuses a yard that is being filled. This node has written an entry of its own before, and
// who begins to fill a yard looks for others after it has written: so one of the two gives way.
func checkFilled(ctx context.Context, store meta.Store) error {
	if err := store.Fresh(ctx, "storage/"); err != nil {
		return err
	}
	_, err := store.Get(ctx, restoringKey)
	switch {
	case err == nil:
		return fmt.Errorf("%w into this yard: run the same command again", ErrRestoring)
	case errors.Is(err, meta.ErrNotFound):
		return nil
	}
	return err
}

// fillingYard is a yard on servers that is being filled.
type fillingYard struct {
	*natsNode
	claimed *claim // nil: not yet, or not any more
	fence   fence

	continued bool // something was left, and stays
}

// fence keeps a process that fills a yard from writing after another may have taken it for dead: one that
// was frozen, and whose claim another has by now, would go on until it hears of that, and mix what it has
// with what the other fills, or with what nodes do afterwards. The servers cannot tell the two apart, since
// both write the same entries and streams. So the sockets are closed, with all that waits to be sent, before
// anything is written to them that is later than the hold allows; see holds.Hold.Stands.
//
// What is left is what the process had handed to the system within that time: it is on its way, and can
// come late only if a server was frozen with it, and goes on after another process has waited for the hold,
// has removed what was there and has filled it. What reaches an entry or a partition that the other has
// filled is refused by its revision or by the rule of frames.
type fence struct {
	hold atomic.Pointer[holds.Hold] // nil: there is none yet
	once sync.Once
	down chan struct{} // closed when it was asked for after its time
}

// check says whether anything may be written. It is called by all who write.
func (f *fence) check() error {
	hold := f.hold.Load()
	if hold == nil || hold.Stands() {
		return nil
	}
	f.once.Do(func() { close(f.down) })
	return fmt.Errorf("%w: this process could not say for too long that it lives", ErrRestoring)
}

// restoreNATS is Restore for a yard on servers.
func restoreNATS(ctx context.Context, url string, cfg Config, what Restored) (*Restoring, error) {
	settings, err := connect.Parse(url)
	if err != nil {
		return nil, err
	}
	keys, err := cfg.SecretKey.given(ctx)
	if err != nil {
		return nil, err
	}
	return newFillingYard(settings, cfg).fill(ctx, keys, cmp.Or(what.Keys, keys), cfg.Program, what)
}

// restorePeer is Restore for a yard on servers inside the nodes, of which this one's is started: it ends with
// the restore. The other peers run meanwhile; see LendPeer. The keys that are given are those of the backup.
func restorePeer(ctx context.Context, folder string, cfg Config, what Restored) (*Restoring, error) {
	if cfg.Peer == nil {
		return nil, errors.New("a peer needs its bundle")
	}
	keys, err := sealed.ParseKeys(cfg.Peer.Bundle.SecretsKey)
	if err != nil {
		return nil, err
	}
	source := cmp.Or(what.Keys, keys)
	if cfg.SecretKey != (SecretKey{}) {
		if source, err = cfg.SecretKey.read(ctx, folder); err != nil {
			return nil, err
		}
	}
	if err := opens(source, what.SecretKeys); err != nil { // before anything is started
		return nil, err
	}
	in, err := startPeer(ctx, folder, cfg)
	if err != nil {
		return nil, err
	}
	y := newFillingYard(in.peer.settings(), cfg)
	y.inside, y.cfg.Inside = in, in.server
	return y.fill(ctx, keys, source, cfg.Program, what)
}

// fill makes the yard this process's to fill. What is there is closed with what it gives, or by an error.
func (y *fillingYard) fill(ctx context.Context, keys, source *sealed.Keys, program string, what Restored) (_ *Restoring, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, y.end())
		}
	}()
	if err := opens(source, what.SecretKeys); err != nil {
		return nil, err
	}
	if err := y.dial(ctx); err != nil {
		return nil, err
	}
	found, err := y.left(ctx)
	if err != nil {
		return nil, err
	}
	if err := y.claim(ctx, found, program, what.Continue); err != nil {
		return nil, err
	}
	if err := y.loadLogs(ctx); err != nil {
		return nil, err
	}
	if err := sealed.New(y.entries, keys).Agree(ctx); err != nil {
		return nil, err
	}
	return &Restoring{
		Log: y.engine, Meta: y.entries, Bodies: y.bodies, Replicas: y.cfg.Replicas, Keys: keys, Source: source,
		Continued: y.continued, anew: true,
		lost:  [2]<-chan struct{}{y.claimed.hold.Ended(), y.fence.down},
		adapt: func(ctx context.Context) error { return y.claimed.adapting(ctx, true) }, finish: y.finish, close: y.end,
	}, nil
}

func newFillingYard(settings connect.Settings, cfg Config) *fillingYard {
	y := &fillingYard{natsNode: newNATSNode(settings, cfg), fence: fence{down: make(chan struct{})}}
	y.cfg.Fence = y.fence.check
	return y
}

// left loads the entries, and gives the mark of a restore that was interrupted, or goes on; one without a
// key where there is nothing of the yard. It refuses what no restore has left.
func (y *fillingYard) left(ctx context.Context) (mark meta.Entry, err error) {
	names, err := y.streamNames(ctx)
	if err != nil {
		return meta.Entry{}, err
	}
	occupied := fmt.Errorf("%w: yard %s has %d streams on these servers: choose another name by --yard", ErrYardOccupied, y.cfg.Yard, len(names))
	if len(names) > 0 && !slices.Contains(names, entries.DefinitionsStream(y.cfg.Yard)) { // it is made first, and removed last
		return meta.Entry{}, occupied
	}
	if err := y.loadEntries(ctx); err != nil {
		return meta.Entry{}, err
	}
	stored, err := y.entries.List(ctx, "")
	if err != nil {
		return meta.Entry{}, err
	}
	mark, filled := markOf(stored)
	used := filled || slices.ContainsFunc(names, func(name string) bool { return !entries.IsStream(y.cfg.Yard, name) })
	if mark.Key == "" && used || used && !filled && !fills(mark) { // else there is at most who is about to store it, or was killed before
		return meta.Entry{}, occupied
	}
	return mark, y.sameReplicas(ctx)
}

func (y *fillingYard) streamNames(ctx context.Context) (names []string, err error) {
	err = y.patiently(ctx, func(ctx context.Context) (err error) {
		names, err = connect.Streams(ctx, y.conns.Control, y.cfg.Yard)
		return err
	})
	return names, err
}

// sameReplicas wants the streams of entries, which stay, to be kept by as many servers as those that are
// made.
func (y *fillingYard) sameReplicas(ctx context.Context) error {
	var replicas int
	err := y.patiently(ctx, func(ctx context.Context) (err error) {
		replicas, err = connect.Replicas(ctx, y.conns.Control, entries.DefinitionsStream(y.cfg.Yard))
		return err
	})
	if err == nil && replicas != y.cfg.Replicas {
		err = fmt.Errorf("%w: a restore into yard %s was begun with %d replicas: give --replicas %d, or choose another name by --yard",
			ErrYardOccupied, y.cfg.Yard, replicas, replicas)
	}
	return err
}

// claim makes the yard this process's to fill, empty, or with what can be continued.
func (y *fillingYard) claim(ctx context.Context, found meta.Entry, program string, goOn bool) (err error) {
	left := parseFillMark(found)
	if y.claimed, err = claimYard(ctx, y.entries, y.cfg.Yard, found, program); err != nil {
		return err
	}
	y.fence.hold.Store(y.claimed.hold)
	switch {
	case !left.Fills:
		return nil
	case goOn && !left.Adapting:
		y.continued = true
		y.log.Info("a copy that was interrupted is continued", "yard", y.cfg.Yard)
		return y.clearLocal(ctx)
	}
	if err := y.claimed.adapting(ctx, true); err != nil {
		return err
	}
	if err := y.clear(ctx); err != nil {
		return err
	}
	return y.claimed.adapting(ctx, false)
}

// clearLocal removes what belongs to an interrupted restore alone: this one may have another secret key.
func (y *fillingYard) clearLocal(ctx context.Context) error {
	if err := y.entries.Fresh(ctx, "storage/"); err != nil {
		return err
	}
	stored, err := y.entries.List(ctx, "storage/")
	if err != nil {
		return err
	}
	return y.removeEntries(ctx, slices.DeleteFunc(stored, func(e meta.Entry) bool { return !isFilled(e) }))
}

// removedAtOnce is how many entries are removed together, so that they share the servers' syncs.
const removedAtOnce = 512

// clear removes what an interrupted restore has left: logs and bodies by their streams, entries one by
// one.
func (y *fillingYard) clear(ctx context.Context) error {
	names, err := y.streamNames(ctx)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return entries.IsStream(y.cfg.Yard, name) })
	y.log.Info("what an interrupted restore has left is removed", "yard", y.cfg.Yard, "streams", len(names))
	if err := connect.DeleteStreams(ctx, y.conns.Control, names); err != nil {
		return err
	}
	if err := y.entries.Fresh(ctx, ""); err != nil {
		return err
	}
	stored, err := y.entries.List(ctx, "")
	if err != nil {
		return err
	}
	return y.removeEntries(ctx, slices.DeleteFunc(stored, func(e meta.Entry) bool { return !isFilled(e) }))
}

func (y *fillingYard) removeEntries(ctx context.Context, stored []meta.Entry) error {
	for some := range slices.Chunk(stored, removedAtOnce) {
		errs := make([]error, len(some))
		var all sync.WaitGroup
		for i, e := range some {
			all.Go(func() { errs[i] = y.entries.Delete(ctx, e.Key, e.Revision) })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return fmt.Errorf("remove what an interrupted restore has left: %w", err)
		}
	}
	return nil
}

// finish has nodes start on the yard from now on. It is closed in any case.
func (y *fillingYard) finish(ctx context.Context) error {
	err := y.engine.Close()
	if err == nil {
		err = y.claimed.end(ctx)
	}
	return errors.Join(err, y.end())
}

// end frees what is open. Safe twice.
func (y *fillingYard) end() error {
	if y.claimed != nil {
		y.claimed.leave()
		y.claimed = nil
	}
	n := y.natsNode
	y.natsNode = &natsNode{cfg: n.cfg, log: n.log}
	return n.close()
}
