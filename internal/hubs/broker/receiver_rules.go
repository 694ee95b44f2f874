package broker

// MaxReceivers is how many receivers without epoch may read a partition for one group at
// the same time (H6).
const MaxReceivers = 5

// claim is what a receiver comes with.
type claim struct {
	name  string
	epoch *int64 // nil: none
}

// admit is the rule of who may read a partition for a group (H5 to H7): either one
// receiver that has an epoch, or up to MaxReceivers that have none. It is given those who
// are there and the newcomer, and says which of them have to go for it, by their place in
// present, or why it is refused. A newcomer that is refused disturbs nobody.
func admit(present []claim, newcomer claim) (evict []int, refusal error) {
	if newcomer.epoch == nil {
		return nil, admitWithoutEpoch(present, newcomer)
	}
	for i, old := range present {
		if old.epoch != nil && *old.epoch > *newcomer.epoch {
			return nil, refusedFor(old, newcomer)
		}
		evict = append(evict, i) // also where the epochs are equal: the newest counts
	}
	return evict, nil
}

func admitWithoutEpoch(present []claim, newcomer claim) error {
	for _, old := range present {
		if old.epoch != nil {
			return refusedFor(old, newcomer)
		}
	}
	if len(present) < MaxReceivers {
		return nil
	}
	quota := &ReceiverQuotaError{Limit: MaxReceivers, Names: make([]string, len(present))}
	for i, old := range present {
		quota.Names[i] = old.name
	}
	return quota
}

func refusedFor(old, newcomer claim) *EpochError {
	return &EpochError{Name: newcomer.name, Epoch: newcomer.epoch, OldName: old.name, OldEpoch: *old.epoch}
}

// evictedBy is what one who has to go is told.
func (c claim) evictedBy(newcomer claim) *EvictedError {
	return &EvictedError{Name: c.name, Epoch: c.epoch, NewName: newcomer.name, NewEpoch: *newcomer.epoch}
}
