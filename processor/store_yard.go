package processor

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/groupwire"
)

// caller is a hub that answers on its node $yard: a *hub.Hub, or one of a test.
type caller interface {
	Name() string
	Call(ctx context.Context, c groupwire.Call) ([]byte, error)
}

type hubCaller struct{ *hub.Hub }

func (c hubCaller) Call(ctx context.Context, q groupwire.Call) ([]byte, error) {
	return groupwire.CallHub(ctx, c.Hub, q)
}

// yard is the store of the yard that has the hub, reached over the hub's connection. It keeps
// nothing itself. The right to listen is enough for what an instance does with what it holds
// itself: there an acquisition raises the epoch by one, whatever is asked for, and a lease that
// another process holds and renews is left out. Force takes an operator, and is
// errors.ErrUnsupported here.
type yard struct {
	hub caller
	// namespace is that of the hub, process what its secrets are made of.
	namespace string
	process   []byte
	// keeps is what the yard last said of itself.
	keeps atomic.Bool
}

func newYard(h *hub.Hub) *yard {
	return &yard{hub: hubCaller{h}, namespace: h.Namespace(), process: processSecret()}
}

// processSecret is what this process is known by to yards: who does not know it cannot renew,
// release or take what the process's instances hold. It lives as long as the process does.
var processSecret = sync.OnceValue(func() []byte { return []byte(rand.Text() + rand.Text()) })

// secret is what a group's yard is shown: each another, so that no yard learns what could be shown
// to another.
func (y *yard) secret(g Group) string {
	g.Namespace, g.Hub = y.namespace, y.hub.Name()
	g = g.Canonical()
	mac := hmac.New(sha256.New, y.process)
	fmt.Fprintf(mac, "%q %q %q", g.Namespace, g.Hub, g.Group)
	return hex.EncodeToString(mac.Sum(nil))
}

var (
	_ Store         = (*yard)(nil)
	_ Watcher       = (*yard)(nil)
	_ PresenceStore = (*yard)(nil)
)

// KeepsPresence is known once leases were read. An older yard does not, and refuses what it does
// not know; one that was replaced by an older says no from the next reading on.
func (y *yard) KeepsPresence() bool { return y.keeps.Load() }

func (y *yard) Leases(ctx context.Context, g Group) ([]Lease, error) {
	r, err := askYard[groupwire.LeasesReply](ctx, y, groupwire.OpLeases, g, groupwire.LeasesRequest{About: groupwire.About{Group: g.Group}})
	if err == nil {
		y.keeps.Store(r.KeepsPresence)
	}
	return translate(r.Leases, leaseOf), err
}

// times are how long a lease lasts and how often what an instance holds is written again. They come
// with the context of a processor's calls: by them the yard knows how long an instance can be
// silent and alive, and a store that wraps this one need not know of it.
type times struct{ lease, renew time.Duration }

type timesKey struct{}

func (t times) in(ctx context.Context) context.Context { return context.WithValue(ctx, timesKey{}, t) }

// timesOf are those of the processor that calls; else the defaults.
func timesOf(ctx context.Context) times {
	if t, ok := ctx.Value(timesKey{}).(times); ok {
		return t
	}
	c := Config{}.withDefaults()
	return times{c.Lease, c.Renew}
}

// claimBytes is about how much of leases one request holds.
const claimBytes = groupwire.MaxRequestBytes * 3 / 4

// Claim needs one request for a thousand leases, and takes more where there are more.
func (y *yard) Claim(ctx context.Context, g Group, leases []Lease) ([]Lease, error) {
	var written []Lease
	for rest := leases; len(rest) > 0; {
		n := claimFits(rest)
		q := groupwire.ClaimRequest{About: groupwire.About{Group: g.Group}, Leases: translate(rest[:n], wireLease)}
		r, err := askYardFor[groupwire.ClaimReply](ctx, y, groupwire.OpClaim, g, q, timesOf(ctx).lease)
		written = append(written, translate(r.Leases, leaseOf)...)
		switch {
		case err != nil:
			return written, err
		case r.Failed != "":
			return written, fmt.Errorf("claim at the yard: of %d leases only %d are known to be written: %s", n, len(r.Leases), r.Failed)
		}
		rest = rest[n:]
	}
	return written, nil
}

// claimFits is how many of the leases go into one request; at least one.
func claimFits(leases []Lease) int {
	size := 0
	for i, l := range leases {
		size += len(l.Partition) + 2*len(l.Owner) + 2*len(l.Presence) + len(l.Version) + 96 // as JSON writes it
		if i > 0 && (size > claimBytes || i >= groupwire.MaxLeases) {
			return i
		}
	}
	return len(leases)
}

func (y *yard) Checkpoints(ctx context.Context, g Group) ([]Checkpoint, error) {
	r, err := askYard[groupwire.CheckpointsReply](ctx, y, groupwire.OpCheckpoints, g, groupwire.CheckpointsRequest{About: groupwire.About{Group: g.Group}})
	return translate(r.Checkpoints, checkpointOf), err
}

func (y *yard) Begin(ctx context.Context, g Group, lease Lease) (Checkpoint, error) {
	lease.Presence = "" // it does not matter here, and the yard may be older than it
	q := groupwire.BeginRequest{About: groupwire.About{Group: g.Group}, Lease: wireLease(lease)}
	r, err := askYard[groupwire.CheckpointReply](ctx, y, groupwire.OpBegin, g, q)
	return checkpointOf(r.Checkpoint), err
}

func (y *yard) Save(ctx context.Context, g Group, lease Lease, c Checkpoint) (Checkpoint, error) {
	lease.Presence = ""
	q := groupwire.SaveRequest{About: groupwire.About{Group: g.Group}, Lease: wireLease(lease), Checkpoint: groupwire.Checkpoint{
		Partition: c.Partition, Sequence: c.Sequence, Offset: c.Offset, Epoch: c.Epoch, HubID: c.HubID, Version: string(c.Version),
	}}
	r, err := askYard[groupwire.CheckpointReply](ctx, y, groupwire.OpSave, g, q)
	return checkpointOf(r.Checkpoint), err
}

func (y *yard) Force(context.Context, Group, Checkpoint) (Checkpoint, error) {
	return Checkpoint{}, fmt.Errorf("move a checkpoint at the yard: %w: that takes an operator, by eventyard checkpoint or the HTTP API",
		errors.ErrUnsupported)
}

// Entries asks until it has all.
func (y *yard) Entries(ctx context.Context, g Group, prefix string) ([]Entry, error) {
	var all []Entry
	q := groupwire.EntriesRequest{About: groupwire.About{Group: g.Group}, Prefix: prefix}
	for {
		r, err := askYard[groupwire.EntriesReply](ctx, y, groupwire.OpEntries, g, q)
		if err != nil {
			return nil, err
		}
		all = append(all, translate(r.Entries, entryOf)...)
		if !r.More || len(r.Entries) == 0 {
			return all, nil
		}
		q.After = r.Entries[len(r.Entries)-1].Key
	}
}

// entryLasts is after how long another instance may remove an entry that nobody has written again:
// as those of functions do with the counts of the dead.
const entryLasts = 10 * time.Minute

func (y *yard) Put(ctx context.Context, g Group, e Entry) (Entry, error) {
	q := groupwire.PutRequest{About: groupwire.About{Group: g.Group}, Entry: wireEntry(e)}
	lasts := entryLasts
	if strings.HasPrefix(e.Key, presencePrefix) {
		lasts = watchFor(timesOf(ctx).renew)
	}
	r, err := askYardFor[groupwire.EntryReply](ctx, y, groupwire.OpPut, g, q, lasts)
	if err != nil {
		return Entry{}, err
	}
	e.Version = Version(r.Entry.Version)
	return e, nil
}

func (y *yard) Remove(ctx context.Context, g Group, e Entry) error {
	e.Value = nil
	q := groupwire.RemoveRequest{About: groupwire.About{Group: g.Group}, Entry: wireEntry(e)}
	_, err := askYard[groupwire.RemoveReply](ctx, y, groupwire.OpRemove, g, q)
	return err
}

// Watch makes one request after the other; the yard replies when something has changed, or after a
// while. What changes between two of them it reports with the second.
func (y *yard) Watch(ctx context.Context, g Group, ready func(), changed chan<- struct{}) error {
	q := groupwire.WatchRequest{About: groupwire.About{Group: g.Group}}
	for {
		r, err := askYard[groupwire.WatchReply](ctx, y, groupwire.OpWatch, g, q)
		switch {
		case err != nil:
			return err
		case r.Token == "":
			return fmt.Errorf("watch at the yard: %w: the reply has no token", groupwire.ErrMalformed)
		case q.Since == "":
			ready()
		case r.Changed:
			select {
			case changed <- struct{}{}:
			default:
			}
		}
		q.Since = r.Token
	}
}

// askYard makes a request and reads its reply, whose status says which of the store's errors it is.
func askYard[R any](ctx context.Context, y *yard, operation string, g Group, q groupwire.Request) (R, error) {
	return askYardFor[R](ctx, y, operation, g, q, 0)
}

// askYardFor is askYard for what is to count as alive for so long.
func askYardFor[R any](ctx context.Context, y *yard, operation string, g Group, q groupwire.Request, lasts time.Duration) (R, error) {
	var r, none R
	body, err := groupwire.EncodeRequest(q)
	if err == nil && !strings.EqualFold(y.hub.Name(), g.Hub) {
		err = fmt.Errorf("this is the store of the hub %s, not of %s", y.hub.Name(), g.Hub)
	}
	if err == nil {
		body, err = y.hub.Call(ctx, groupwire.Call{
			Operation: operation, Group: g.Group, Body: body, Secret: y.secret(g), Lasts: lasts,
		})
	}
	if err == nil {
		r, err = groupwire.DecodeReply[R](body)
	}
	if err == nil {
		return r, nil
	}
	if said, ok := errors.AsType[*hub.CallError](err); ok {
		switch said.Code {
		case groupwire.StatusConflict:
			err = fmt.Errorf("%w: %w", ErrConflict, err)
		case groupwire.StatusFenced:
			err = fmt.Errorf("%w: %w", ErrFenced, err)
		}
	}
	return none, fmt.Errorf("%s at the yard: %w", operation, err)
}

// The records as they are said to a yard and by it. Requests have no times: those are the
// yard's to say.

func wireLease(l Lease) groupwire.Lease {
	return groupwire.Lease{Partition: l.Partition, Owner: l.Owner, Epoch: l.Epoch, Presence: l.Presence, Version: string(l.Version)}
}

func leaseOf(l groupwire.Lease) Lease {
	return Lease{
		Partition: l.Partition, Owner: l.Owner, Epoch: l.Epoch, Presence: l.Presence,
		Acquired: l.Acquired, Renewed: l.Renewed, Version: Version(l.Version),
	}
}

func checkpointOf(c groupwire.Checkpoint) Checkpoint {
	return Checkpoint{
		Partition: c.Partition, Sequence: c.Sequence, Offset: c.Offset, Epoch: c.Epoch,
		HubID: c.HubID, Updated: c.Updated, Version: Version(c.Version),
	}
}

func wireEntry(e Entry) groupwire.Entry {
	return groupwire.Entry{Key: e.Key, Value: e.Value, Version: string(e.Version)}
}

func entryOf(e groupwire.Entry) Entry {
	return Entry{Key: e.Key, Value: e.Value, Version: Version(e.Version)}
}

func translate[A, B any](all []A, f func(A) B) []B {
	done := make([]B, len(all))
	for i, one := range all {
		done[i] = f(one)
	}
	return done
}
