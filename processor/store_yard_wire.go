package processor

import "github.com/eventyard/eventyard/internal/hubs/groupwire"

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

func wireCheckpoint(c Checkpoint) groupwire.Checkpoint {
	return groupwire.Checkpoint{
		Partition: c.Partition, Sequence: c.Sequence, Offset: c.Offset,
		Epoch: c.Epoch, HubID: c.HubID, Version: string(c.Version),
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
