package processor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/groupwire"
)

// caller is a hub that answers on its node $yard: a *hub.Hub, or one of a test.
type caller interface {
	Name() string
	Call(ctx context.Context, operation string, body []byte) ([]byte, error)
}

type hubCaller struct{ *hub.Hub }

func (c hubCaller) Call(ctx context.Context, operation string, body []byte) ([]byte, error) {
	return groupwire.CallHub(ctx, c.Hub, operation, body)
}

// yard is the store of the yard that has the hub, reached over the hub's connection. It keeps
// nothing itself. The right to listen is enough for all of it but Force, which takes an operator:
// that is errors.ErrUnsupported here.
type yard struct{ hub caller }

var (
	_ Store   = (*yard)(nil)
	_ Watcher = (*yard)(nil)
)

func (y *yard) Leases(ctx context.Context, g Group) ([]Lease, error) {
	r, err := askYard[groupwire.LeasesReply](ctx, y, groupwire.OpLeases, g, groupwire.LeasesRequest{About: groupwire.About{Group: g.Group}})
	return translate(r.Leases, leaseOf), err
}

// claimBytes is about how much of leases one request holds.
const claimBytes = groupwire.MaxRequestBytes * 3 / 4

// Claim needs one request for a thousand leases, and takes more where there are more.
func (y *yard) Claim(ctx context.Context, g Group, leases []Lease) ([]Lease, error) {
	var written []Lease
	for rest := leases; len(rest) > 0; {
		n := claimFits(rest)
		q := groupwire.ClaimRequest{About: groupwire.About{Group: g.Group}, Leases: translate(rest[:n], wireLease)}
		r, err := askYard[groupwire.ClaimReply](ctx, y, groupwire.OpClaim, g, q)
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
		size += len(l.Partition) + 2*len(l.Owner) + len(l.Version) + 80 // as JSON writes it
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
	q := groupwire.BeginRequest{About: groupwire.About{Group: g.Group}, Lease: wireLease(lease)}
	r, err := askYard[groupwire.CheckpointReply](ctx, y, groupwire.OpBegin, g, q)
	return checkpointOf(r.Checkpoint), err
}

func (y *yard) Save(ctx context.Context, g Group, lease Lease, c Checkpoint) (Checkpoint, error) {
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

func (y *yard) Put(ctx context.Context, g Group, f Entry) (Entry, error) {
	q := groupwire.PutRequest{About: groupwire.About{Group: g.Group}, Entry: wireEntry(f)}
	r, err := askYard[groupwire.EntryReply](ctx, y, groupwire.OpPut, g, q)
	if err != nil {
		return Entry{}, err
	}
	f.Version = Version(r.Entry.Version)
	return f, nil
}

func (y *yard) Remove(ctx context.Context, g Group, f Entry) error {
	f.Value = nil
	q := groupwire.RemoveRequest{About: groupwire.About{Group: g.Group}, Entry: wireEntry(f)}
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
	var r, none R
	body, err := groupwire.EncodeRequest(q)
	if err == nil && !strings.EqualFold(y.hub.Name(), g.Hub) {
		err = fmt.Errorf("this is the store of the hub %s, not of %s", y.hub.Name(), g.Hub)
	}
	if err == nil {
		body, err = y.hub.Call(ctx, operation, body)
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
	return groupwire.Lease{Partition: l.Partition, Owner: l.Owner, Epoch: l.Epoch, Version: string(l.Version)}
}

func leaseOf(l groupwire.Lease) Lease {
	return Lease{
		Partition: l.Partition, Owner: l.Owner, Epoch: l.Epoch,
		Acquired: l.Acquired, Renewed: l.Renewed, Version: Version(l.Version),
	}
}

func checkpointOf(c groupwire.Checkpoint) Checkpoint {
	return Checkpoint{
		Partition: c.Partition, Sequence: c.Sequence, Offset: c.Offset, Epoch: c.Epoch,
		HubID: c.HubID, Updated: c.Updated, Version: Version(c.Version),
	}
}

func wireEntry(f Entry) groupwire.Entry {
	return groupwire.Entry{Key: f.Key, Value: f.Value, Version: string(f.Version)}
}

func entryOf(f groupwire.Entry) Entry {
	return Entry{Key: f.Key, Value: f.Value, Version: Version(f.Version)}
}

func translate[A, B any](all []A, f func(A) B) []B {
	done := make([]B, len(all))
	for i, one := range all {
		done[i] = f(one)
	}
	return done
}
