package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/holds"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
)

// restoringKey is the key of an entry that is there from before anything is restored to a yard on servers
// until all of it is there. No node starts meanwhile.
const restoringKey = "storage/restoring"

// checkFilled refuses a yard that is being filled. This node has written an entry of its own before, and
// who begins to fill a yard looks for others after it has written: so one of the two gives way.
func checkFilled(ctx context.Context, store meta.Store) error {
	if err := store.Fresh(ctx, "storage/"); err != nil {
		return err
	}
	_, err := store.Get(ctx, restoringKey)
	switch {
	case err == nil:
		return fmt.Errorf("%w into this yard: run the same command again, which removes what is there and begins anew", ErrRestoring)
	case errors.Is(err, meta.ErrNotFound):
		return nil
	}
	return err
}

// fillingYard is a yard on servers that is being filled.
type fillingYard struct {
	*natsNode
	mark meta.Revision // of the entry that says so
	hold *holds.Hold   // by which another who would fill it sees that this process lives; nil: not yet
}

// restoreNATS is Restore for a yard on servers.
func restoreNATS(ctx context.Context, url string, cfg Config, what Restored) (_ *Restoring, err error) {
	settings, err := connect.Parse(url)
	if err != nil {
		return nil, err
	}
	keys, err := cfg.SecretKey.given(ctx)
	if err != nil {
		return nil, err
	}
	source := keys
	if what.Keys != nil {
		source = what.Keys
	}
	if err := opens(source, what.SecretKeys); err != nil {
		return nil, err
	}
	y := &fillingYard{natsNode: newNATSNode(settings, cfg)}
	defer func() {
		if err != nil {
			err = errors.Join(err, y.end())
		}
	}()
	if err := y.dial(ctx); err != nil {
		return nil, err
	}
	if err := y.empty(ctx); err != nil {
		return nil, err
	}
	if err := y.begin(ctx, cfg.Program); err != nil {
		return nil, err
	}
	if err := sealed.New(y.entries, keys).Agree(ctx); err != nil {
		return nil, err
	}
	return &Restoring{
		Log: y.engine, Meta: y.entries, Bodies: y.bodies, Keys: keys, Source: source, anew: true,
		finish: y.finish, close: y.end,
	}, nil
}

// empty wants no streams of the yard, and removes what an interrupted restore has left.
func (y *fillingYard) empty(ctx context.Context) error {
	left, err := y.left(ctx)
	if err != nil || left.mark.Key == "" {
		return err
	}
	return y.remove(ctx, left)
}

// left is what a restore has left that was interrupted, or goes on.
type left struct {
	names []string   // of streams, with that of the mark at last
	mark  meta.Entry // without a key: there is nothing to remove
}

// left looks what there is of the yard, and refuses what no restore has left.
func (y *fillingYard) left(ctx context.Context) (left, error) {
	var names []string
	err := y.patiently(ctx, func(ctx context.Context) (err error) {
		names, err = connect.Streams(ctx, y.conns.Control, y.cfg.Yard)
		return err
	})
	if err != nil || len(names) == 0 {
		return left{}, err
	}
	occupied := fmt.Errorf("%w: yard %s has %d streams on these servers: choose another name by --yard", ErrYardOccupied, y.cfg.Yard, len(names))
	definitions := slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix(name, "_e_d") })
	if definitions < 0 { // the entry that says whose they are is always there as long as they are
		return left{}, occupied
	}
	if err := y.loadEntries(ctx); err != nil {
		return left{}, err
	}
	entries, err := y.entries.List(ctx, "")
	if err != nil {
		return left{}, err
	}
	if len(entries) == 0 && !slices.ContainsFunc(names, func(name string) bool { return !strings.Contains(name, "_e_") }) {
		return left{}, nil // it was interrupted before it had written anything
	}
	mark := slices.IndexFunc(entries, func(e meta.Entry) bool { return e.Key == restoringKey })
	if mark < 0 {
		return left{}, occupied
	}
	return left{append(slices.Delete(slices.Clone(names), definitions, definitions+1), names[definitions]), entries[mark]}, nil
}

// remove removes it, if nobody goes on with it.
func (y *fillingYard) remove(ctx context.Context, found left) error {
	if err := y.alone(ctx); err != nil {
		return err
	}
	// The other may have finished meanwhile, and others may have waited, too: one of them goes on.
	if _, err := y.entries.CompareAndSet(ctx, restoringKey, found.mark.Revision, found.mark.Value); err != nil {
		if errors.Is(err, meta.ErrConflict) || errors.Is(err, meta.ErrNotFound) {
			err = fmt.Errorf("%w: another process has filled yard %s meanwhile, or has begun to", ErrRestoring, y.cfg.Yard)
		}
		return err
	}
	y.log.Info("what an interrupted restore has left is removed", "yard", y.cfg.Yard, "streams", len(found.names))
	if err := y.unload(); err != nil {
		return err
	}
	return connect.DeleteStreams(ctx, y.conns.Control, found.names)
}

// aloneTime is how long it is waited for another process to end, or to be seen dead.
const aloneTime = 30 * time.Second

// alone makes sure that nobody else fills the yard at the moment. One that was killed is known as such by
// its silence.
func (y *fillingYard) alone(ctx context.Context) error {
	looker := holds.NewLooker(y.entries, holds.Filling)
	for late := time.Now().Add(aloneTime); ; {
		held, err := looker.Held(ctx)
		if err != nil || !held {
			return err
		}
		if time.Now().After(late) {
			return fmt.Errorf("%w: another process fills yard %s at the moment", ErrRestoring, y.cfg.Yard)
		}
		if err := sleep.For(ctx, time.Second, nil); err != nil {
			return err
		}
	}
}

// unload ends what loadEntries began.
func (y *fillingYard) unload() error {
	err := y.entries.Close()
	y.stop()
	y.followed.Wait()
	y.entries, y.stop = nil, nil
	return err
}

// begin marks the yard, and makes what it has on the servers. Who else has begun to use it comes first.
func (y *fillingYard) begin(ctx context.Context, program string) error {
	if y.entries == nil {
		if err := y.loadEntries(ctx); err != nil {
			return err
		}
	}
	text, err := json.Marshal(map[string]string{"program": program, "began": time.Now().UTC().Format(time.RFC3339)})
	if err != nil {
		return err
	}
	if y.mark, err = y.entries.CompareAndSet(ctx, restoringKey, 0, text); err != nil {
		if errors.Is(err, meta.ErrConflict) {
			err = fmt.Errorf("%w: another process fills yard %s at the moment", ErrRestoring, y.cfg.Yard)
		}
		return err
	}
	if y.hold, err = holds.Begin(ctx, y.entries, holds.Filling); err != nil {
		return err
	}
	if err := y.entries.Fresh(ctx, ""); err != nil {
		return err
	}
	entries, err := y.entries.List(ctx, "")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Key != restoringKey && !strings.HasPrefix(e.Key, holds.Prefix) {
			return errors.Join(fmt.Errorf("%w: a node of yard %s has started meanwhile", ErrYardOccupied, y.cfg.Yard), y.entries.Delete(ctx, restoringKey, y.mark))
		}
	}
	return y.loadLogs(ctx)
}

// finish has nodes start on the yard from now on. It is closed in any case.
func (y *fillingYard) finish(ctx context.Context) error {
	err := y.engine.Close()
	if err == nil {
		err = y.hold.Release(ctx)
	}
	if err == nil {
		err = y.entries.Delete(ctx, restoringKey, y.mark)
	}
	if errors.Is(err, meta.ErrConflict) || errors.Is(err, meta.ErrNotFound) {
		err = fmt.Errorf("%w: another process has begun to fill yard %s", ErrRestoring, y.cfg.Yard)
	}
	return errors.Join(err, y.end())
}

// endTime is how long a process that gives up may take to say so.
const endTime = 5 * time.Second

// end frees what is open. Safe twice.
func (y *fillingYard) end() error {
	if y.hold != nil {
		ctx, cancel := context.WithTimeout(context.Background(), endTime)
		defer cancel()
		_ = y.hold.Release(ctx) // if it fails, others wait for some seconds
		y.hold = nil
	}
	n := y.natsNode
	y.natsNode = &natsNode{cfg: n.cfg, log: n.log}
	return n.close()
}
