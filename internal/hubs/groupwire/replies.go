package groupwire

// LeasesReply has all leases of the group.
type LeasesReply struct {
	Leases []Lease `json:"leases"`
	// KeepsPresence: leases can hang on their owner's presence. Older yards refuse requests that
	// say so of a lease.
	KeepsPresence bool `json:"keepsPresence,omitempty"`
}

// ClaimReply has the leases that were written, as they are now.
type ClaimReply struct {
	Leases []Lease `json:"leases"`
	// Failed, where it is not empty, is why others may have been written or not.
	Failed string `json:"failed,omitempty"`
}

// CheckpointsReply has all checkpoints of the group.
type CheckpointsReply struct {
	Checkpoints []Checkpoint `json:"checkpoints"`
}

// CheckpointReply has one checkpoint as it is now.
type CheckpointReply struct {
	Checkpoint Checkpoint `json:"checkpoint"`
}

// EntriesReply has entries. More: there are others behind the last of these.
type EntriesReply struct {
	Entries []Entry `json:"facts"`
	More    bool    `json:"more,omitempty"`
}

// EntryReply has an entry as it is now, without its value.
type EntryReply struct {
	Entry Entry `json:"fact"`
}

// RemoveReply has nothing to say.
type RemoveReply struct{}

// WatchReply says that leases or entries may have changed, or that nothing has for a while.
type WatchReply struct {
	Changed bool `json:"changed,omitempty"`
	// Token is what the next request names.
	Token string `json:"token"`
}
