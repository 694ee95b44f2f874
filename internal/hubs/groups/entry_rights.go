package groups

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/groupentry"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/processor"
)

// Keys of the entries that processors and functions write. Those of any other kind are for whoever
// wrote them.
const (
	presencePrefix = "presence/" // + instance
	nextPrefix     = "next/"     // + partition: which instance asks for it
	workPrefix     = "work/"     // + function/partition: for who has the partition
	tallyPrefix    = "failures/" // + function/instance: its count
	CircuitPrefix  = "circuit/"  // + function: for all instances, by Config.Circuit
)

// OfFunctions tells whether an entry is of a kind that only the hosts of functions read. Those of
// functions that the yard runs are shown to no client.
func OfFunctions(key string) bool {
	kind, _, _ := strings.Cut(key, "/")
	switch kind + "/" {
	case workPrefix, tallyPrefix, CircuitPrefix:
		return true
	}
	return false
}

// mayChange wants a client that is no operator to be allowed to put or remove an entry, whose
// present record is the one that the comparison will find.
func (g group) mayChange(ctx context.Context, by Caller, act act, e processor.Entry, expected meta.Revision) error {
	had, revision, err := g.entry(ctx, e.Key)
	switch {
	case err != nil:
		return err
	case revision > expected, revision == 0 && expected > 0:
		return processor.ErrConflict
	case revision < expected:
		return fmt.Errorf("entry %q: %w", e.Key, ErrBehind)
	}
	kind, name, _ := strings.Cut(e.Key, "/")
	var may bool
	switch kind + "/" {
	case presencePrefix:
		may, err = g.mayChangePresence(ctx, by, act, had, name, e.Value)
	case nextPrefix:
		may, err = g.mayChangeWish(ctx, by, had, e.Value)
	case workPrefix:
		may, err = g.mayChangeWork(ctx, by, e.Key)
	case tallyPrefix:
		may, err = g.mayChangeTally(ctx, by, act, had, e.Key)
	case CircuitPrefix:
		return g.mayChangeCircuit(ctx, by, act, had, e)
	default:
		may = mayListen[act][by.whoseEntry(had, g.k.up, now())]
	}
	if err == nil && !may {
		err = fmt.Errorf("entry %q: %w: it is another instance's", e.Key, ErrForbidden)
	}
	return err
}

// entry reads one; nil, and revision zero, if there is none.
func (g group) entry(ctx context.Context, key string) (*entryRecord, meta.Revision, error) {
	stored, err := g.k.meta.Get(ctx, g.Prefix+entryPrefix+key)
	if errors.Is(err, meta.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read entry %q: %w", key, err)
	}
	record, err := decode[entryRecord](stored)
	return &record, stored.Revision, err
}

// presence reads that of an instance; nil if it has none, or a name that none can have.
func (g group) presence(ctx context.Context, instance string) (*entryRecord, error) {
	if groupentry.CheckKey(presencePrefix+instance) != nil {
		return nil, nil
	}
	p, _, err := g.entry(ctx, presencePrefix+instance)
	return p, err
}

// presences are those of some instances, by their id.
type presences map[string]*entryRecord

// presences reads those that a claim is judged by.
func (g group) presences(ctx context.Context, by Caller, recorded map[string]leaseRead, leases []processor.Lease) (presences, error) {
	who := presences{}
	if by.Operator {
		return who, nil
	}
	for _, l := range leases {
		had := recorded[l.Partition]
		names := []string{l.Owner}
		if had.Hash != by.Hash {
			names = append(names, had.Owner)
		}
		for _, name := range names {
			if _, known := who[name]; known || name == "" {
				continue
			}
			p, err := g.presence(ctx, name)
			if err != nil {
				return nil, err
			}
			who[name] = p
		}
	}
	return who, nil
}

// presencesByID reads all.
func (g group) presencesByID(ctx context.Context) (presences, error) {
	all, err := g.dated(ctx, presencePrefix)
	who := make(presences, len(all))
	for _, e := range all {
		who[strings.TrimPrefix(e.key, presencePrefix)] = &e.entryRecord
	}
	return who, err
}

// isAnother reports whether an instance is another's, that lives and does not leave.
func (g group) isAnother(ctx context.Context, by Caller, instance string) (bool, error) {
	p, err := g.presence(ctx, instance)
	if by.whoseEntry(p, g.k.up, now()) != anothers {
		return false, err
	}
	return !said(p.Value).Leaving, err
}

// presenceSaid is what an instance says in its presence.
type presenceSaid struct {
	Started time.Time `json:"started"`
	Leaving bool      `json:"leaving"`
	// Life is what leases name that hang on it; Ended: nothing does any more.
	Life  string `json:"life"`
	Ended bool   `json:"ended"`
}

// said reads it; nothing where it is none of a processor.
func said(presence []byte) (s presenceSaid) {
	if json.Unmarshal(presence, &s) != nil {
		return presenceSaid{}
	}
	return s
}

// ends reports whether what is put says no more than that the instance which is there is dead.
func ends(key string, had *entryRecord, value []byte) bool {
	then := said(value)
	return strings.HasPrefix(key, presencePrefix) && had != nil && then.Ended && then.Life == said(had.Value).Life
}

// mayChangePresence: an instance's own, or what one has left behind. A presence that is not there,
// or that was not renewed for long, is out of reach while leases show that the instance lives: they
// last longer, and who has the presence has them. Only to end it is to take no more than what hangs
// on it, so that nothing but the presence itself can show that this lives.
func (g group) mayChangePresence(ctx context.Context, by Caller, act act, had *entryRecord, instance string, value []byte) (bool, error) {
	w := by.whoseEntry(had, g.k.up, now())
	if may := mayListen[act][w]; had != nil && (w == own || !may) {
		return may, nil
	}
	free, ends := true, act == actPut && ends(presencePrefix+instance, had, value)
	_, err := list(ctx, g, "leases", leasePrefix, "", func(r leaseRecord, _ string, _ meta.Revision) struct{} {
		if ends && r.hangsOn(*had) {
			r.Renewed = had.Put
		} else if ends {
			return struct{}{}
		}
		if r.Owner == instance && by.whoseLease(r, had, g.k.up, now()) == anothers {
			free = false
		}
		return struct{}{}
	})
	return free, err
}

// mayChangeWish: nobody wishes in the name of another that lives, or undoes the wish of one.
func (g group) mayChangeWish(ctx context.Context, by Caller, had *entryRecord, value []byte) (bool, error) {
	wishes := [][]byte{value}
	if had != nil {
		wishes = append(wishes, had.Value)
	}
	for _, wish := range wishes {
		another, err := g.isAnother(ctx, by, wisher(wish))
		if err != nil || another {
			return false, err
		}
	}
	return true, nil
}

// wisher is who asks for a partition; empty where the value is none of a processor.
func wisher(value []byte) string {
	var wish struct {
		Instance string `json:"instance"`
	}
	_ = json.Unmarshal(value, &wish)
	return wish.Instance
}

// mayChangeWork: who has the partition.
func (g group) mayChangeWork(ctx context.Context, by Caller, key string) (bool, error) {
	partition := key[strings.LastIndexByte(key, '/')+1:]
	if err := g.has(partition); err != nil {
		return false, nil
	}
	l, err := g.lease(ctx, partition)
	if err != nil {
		return false, err
	}
	return g.mayWriteUnder(ctx, by, l)
}

// mayChangeTally: an instance's own, also by its presence, or what one has left behind. A key that
// was shortened names no instance; then the secret decides.
func (g group) mayChangeTally(ctx context.Context, by Caller, act act, had *entryRecord, key string) (bool, error) {
	w := by.whoseEntry(had, g.k.up, now())
	if w == anothers || w == abandoned {
		p, err := g.presence(ctx, key[strings.LastIndexByte(key, '/')+1:])
		if err != nil {
			return false, err
		}
		w = by.byPresence(w, p)
	}
	return mayListen[act][w], nil
}

// mayChangeCircuit: what instances find out, but not what operators decide.
func (g group) mayChangeCircuit(ctx context.Context, by Caller, act act, had *entryRecord, e processor.Entry) error {
	if act == actRemove || g.k.circuit == nil {
		return fmt.Errorf("entry %q: %w: only an operator does that to a circuit", e.Key, ErrForbidden)
	}
	var before []byte
	if had != nil {
		before = had.Value
	}
	instance, err := g.k.circuit(before, e.Value)
	if err != nil {
		return fmt.Errorf("entry %q: %w: %w", e.Key, ErrForbidden, err)
	}
	another, err := g.isAnother(ctx, by, instance)
	if err == nil && another {
		err = fmt.Errorf("entry %q: %w: it is in the name of another instance", e.Key, ErrForbidden)
	}
	return err
}
