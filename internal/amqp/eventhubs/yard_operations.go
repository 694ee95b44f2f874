package eventhubs

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/hubs/groupwire"
	"github.com/eventyard/eventyard/processor"
)

// operation is what a request to $yard may ask for. All take the right to listen to the group; what
// besides decides whether a change is made is package groups' business, by groups.Caller.
type operation struct {
	// do does it and gives the reply's body.
	do func(ctx context.Context, n *yardNode, by groups.Caller, hub string, body []byte) (any, error)
	// writes: it changes something, and so is refused in groups that are the yard's own.
	writes bool
}

// operations are what $yard knows.
var operations = map[string]operation{
	groupwire.OpLeases:      reading((*yardNode).leases),
	groupwire.OpClaim:       writing((*yardNode).claim),
	groupwire.OpCheckpoints: reading((*yardNode).checkpoints),
	groupwire.OpBegin:       writing((*yardNode).beginLease),
	groupwire.OpSave:        writing((*yardNode).save),
	groupwire.OpEntries:     reading((*yardNode).entries),
	groupwire.OpPut:         writing((*yardNode).put),
	groupwire.OpRemove:      writing((*yardNode).remove),
	groupwire.OpWatch:       reading((*yardNode).watch),
}

// reading is an operation that changes nothing.
func reading[Q groupwire.Request](do func(*yardNode, context.Context, processor.Group, Q) (any, error)) operation {
	return on(false, func(n *yardNode, ctx context.Context, _ groups.Caller, g processor.Group, q Q) (any, error) {
		return do(n, ctx, g, q)
	})
}

// writing is one that does.
func writing[Q groupwire.Request](do func(*yardNode, context.Context, groups.Caller, processor.Group, Q) (any, error)) operation {
	return on(true, do)
}

// on reads the request and finds its group, which has to exist.
func on[Q groupwire.Request](writes bool, do func(*yardNode, context.Context, groups.Caller, processor.Group, Q) (any, error)) operation {
	return operation{writes: writes, do: func(ctx context.Context, n *yardNode, by groups.Caller, hub string, body []byte) (any, error) {
		q, err := groupwire.DecodeRequest[Q](body)
		if err != nil {
			return nil, err
		}
		b := n.peer.handler.cfg.Broker
		group, err := b.Group(ctx, hub, q.Of())
		if err != nil {
			return nil, err
		}
		if writes && n.peer.handler.cfg.Reserved(hub, group.Name) {
			return nil, &amqp.Error{Condition: condUnauthorized, Description: fmt.Sprintf(
				"The consumer group '%s' of '%s' is that of a function which the yard runs: nobody else changes anything there. Use a group of your own.",
				group.Name, hub)}
		}
		return do(n, ctx, by, processor.Group{Namespace: b.Namespace(), Hub: hub, Group: group.Name}, q)
	}}
}

func (n *yardNode) leases(ctx context.Context, g processor.Group, _ groupwire.LeasesRequest) (any, error) {
	leases, err := n.groups.Leases(ctx, g)
	return groupwire.LeasesReply{Leases: each(leases, replyLease), KeepsPresence: true}, err
}

// claim reports what was written also where something went wrong on the way.
func (n *yardNode) claim(ctx context.Context, by groups.Caller, g processor.Group, q groupwire.ClaimRequest) (any, error) {
	written, err := n.groups.ClaimBy(ctx, by, g, each(q.Leases, readLease))
	if err != nil && len(written) == 0 {
		return nil, err
	}
	answer := groupwire.ClaimReply{Leases: each(written, replyLease)}
	if err != nil {
		reported, _ := judge(n.peer.entity(address{node: nodeYard, hub: g.Hub, group: g.Group}), err)
		answer.Failed = reported.Description
		n.peer.log.Warn("only some leases are known to be written", "hub", g.Hub, "group", g.Group, "error", err)
	}
	return answer, nil
}

func (n *yardNode) checkpoints(ctx context.Context, g processor.Group, _ groupwire.CheckpointsRequest) (any, error) {
	all, err := n.groups.Checkpoints(ctx, g)
	return groupwire.CheckpointsReply{Checkpoints: each(all, replyCheckpoint)}, err
}

func (n *yardNode) beginLease(ctx context.Context, by groups.Caller, g processor.Group, q groupwire.BeginRequest) (any, error) {
	c, err := n.groups.BeginBy(ctx, by, g, readLease(q.Lease))
	return groupwire.CheckpointReply{Checkpoint: replyCheckpoint(c)}, err
}

func (n *yardNode) save(ctx context.Context, by groups.Caller, g processor.Group, q groupwire.SaveRequest) (any, error) {
	c, err := n.groups.SaveBy(ctx, by, g, readLease(q.Lease), readCheckpoint(q.Checkpoint))
	return groupwire.CheckpointReply{Checkpoint: replyCheckpoint(c)}, err
}

func (n *yardNode) entries(ctx context.Context, g processor.Group, q groupwire.EntriesRequest) (any, error) {
	select {
	case n.listings <- struct{}{}:
		defer func() { <-n.listings }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	reserved := n.peer.handler.cfg.Reserved(g.Hub, g.Group)
	all, err := n.groups.Entries(ctx, g, q.Prefix)
	if err != nil {
		return nil, err
	}
	if reserved || n.peer.handler.cfg.Reserved(g.Hub, g.Group) { // a function may have come, or gone, meanwhile
		all = slices.DeleteFunc(all, func(f processor.Entry) bool { return groups.OfFunctions(f.Key) })
	}
	return page(all, q.After), nil
}

func (n *yardNode) put(ctx context.Context, by groups.Caller, g processor.Group, q groupwire.PutRequest) (any, error) {
	f, err := n.groups.PutBy(ctx, by, g, readEntry(q.Entry))
	f.Value = nil // who put it knows it
	return groupwire.EntryReply{Entry: replyEntry(f)}, err
}

func (n *yardNode) remove(ctx context.Context, by groups.Caller, g processor.Group, q groupwire.RemoveRequest) (any, error) {
	return groupwire.RemoveReply{}, n.groups.RemoveBy(ctx, by, g, readEntry(q.Entry))
}

func (n *yardNode) watch(ctx context.Context, g processor.Group, q groupwire.WatchRequest) (any, error) {
	return n.watches.poll(ctx, g, q.Since)
}

// page gives the entries behind a key, as many as one reply should hold, and at least one.
func page(all []processor.Entry, after string) groupwire.EntriesReply {
	slices.SortFunc(all, func(x, y processor.Entry) int { return cmp.Compare(x.Key, y.Key) })
	at, there := slices.BinarySearchFunc(all, after, func(f processor.Entry, key string) int { return cmp.Compare(f.Key, key) })
	if there {
		at++
	}
	answer := groupwire.EntriesReply{Entries: []groupwire.Entry{}}
	size := 0
	for _, f := range all[at:] {
		size += len(f.Key) + len(f.Version) + len(f.Value)*4/3 + 64 // as JSON and base64 write it
		if size > groupwire.PageBytes && len(answer.Entries) > 0 {
			answer.More = true
			break
		}
		answer.Entries = append(answer.Entries, replyEntry(f))
	}
	return answer
}

func each[A, B any](all []A, f func(A) B) []B {
	done := make([]B, len(all))
	for i, one := range all {
		done[i] = f(one)
	}
	return done
}

func replyLease(l processor.Lease) groupwire.Lease {
	return groupwire.Lease{
		Partition: l.Partition, Owner: l.Owner, Epoch: l.Epoch, Presence: l.Presence,
		Acquired: l.Acquired, Renewed: l.Renewed, Version: string(l.Version),
	}
}

func readLease(l groupwire.Lease) processor.Lease {
	return processor.Lease{
		Partition: l.Partition, Owner: l.Owner, Epoch: l.Epoch, Presence: l.Presence,
		Acquired: l.Acquired, Renewed: l.Renewed, Version: processor.Version(l.Version),
	}
}

func replyCheckpoint(c processor.Checkpoint) groupwire.Checkpoint {
	return groupwire.Checkpoint{
		Partition: c.Partition, Sequence: c.Sequence, Offset: c.Offset, Epoch: c.Epoch,
		HubID: c.HubID, Updated: c.Updated, Version: string(c.Version),
	}
}

func readCheckpoint(c groupwire.Checkpoint) processor.Checkpoint {
	return processor.Checkpoint{
		Partition: c.Partition, Sequence: c.Sequence, Offset: c.Offset, Epoch: c.Epoch,
		HubID: c.HubID, Updated: c.Updated, Version: processor.Version(c.Version),
	}
}

func replyEntry(f processor.Entry) groupwire.Entry {
	return groupwire.Entry{Key: f.Key, Value: f.Value, Version: string(f.Version)}
}

func readEntry(f groupwire.Entry) processor.Entry {
	return processor.Entry{Key: f.Key, Value: f.Value, Version: processor.Version(f.Version)}
}
