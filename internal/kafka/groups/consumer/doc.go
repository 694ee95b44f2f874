// Package consumer is the consumer group of KIP-848: the coordinator assigns partitions, and each member
// moves towards its part on its own, by heartbeats. It is pure: no clock, no lock, no storage.
//
//	group.go             a group, and what a heartbeat makes of it
//	heartbeat.go         what a member says, and what is refused at sight
//	member.go            a member, and how it moves from what it has to what it is to have
//	subscription.go      names and expressions, and which hubs they mean
//	assign*.go           who is to have which partition: uniform, range
//	set.go               sets of partitions
//	deadlines.go         when a member has been silent, or has kept a partition, for too long
//	entry.go             a group as it is stored
//
// # Epochs
//
// A group's epoch rises whenever its members, what they subscribe to, or the hubs that this means change.
// The target, which says who is to have what, is made in the same step, so that one number stands for
// both. A member's epoch is that of the target up to which it has given up everything that is not its
// own any more. It never is ahead of the group's.
//
//	           the target changes                 told what to give up
//	stable ─────────────────────────▶ behind ─────────────────────────▶ revoking
//	  ▲                                 │ ▲       a heartbeat without it    │
//	  │ everything of the target        │ └─────────────────────────────────┘
//	  │ is free, and given              ▼ nothing to give up: takes the group's epoch
//	  └────────────────────────── waiting for what others have not given up yet
//
// # A partition has one owner
//
// What a member has been told to consume is Assigned; what it has been told to give up, and has not said
// that it did, is Revoking. A partition is given to a member only if it is in neither of anybody else's.
// Partitions leave these sets when their member no longer reports them, leaves, or is removed because it
// was silent for too long or kept a partition for longer than it said it would need. A member that was
// removed is refused from then on: it hears so with its next heartbeat, or when it commits.
//
// # Answers that are lost
//
// A member whose answer was lost still has the epoch before. It is let on if it names what it owns and
// that is part of what is assigned to it, so that it cannot own what has since been given to somebody
// else; it hears its assignment again. An assignment is also told to whoever sends everything about
// itself, as clients do after an error.
//
// # Values
//
// A Group never changes: a heartbeat gives the next one, or the same if there is nothing to store. The
// coordinator goes on with the next one at once, and has answers wait until it is stored. Where it could not be, who
// waits hears an error and says everything again, and the group is stored with its next change.
package consumer
