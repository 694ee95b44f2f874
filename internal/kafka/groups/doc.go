// Package groups coordinates the groups of Kafka's consumers, and keeps their offsets. They are not the
// consumer groups of hubs: they are made by their first use, and span all hubs.
//
// # Kinds
//
// What a group does is decided by a pure machine: package classic has the one of the classic protocol, package
// consumer the one of KIP-848. This package gives it the time, keeps it, and has answers wait for the store.
// kind.go is all that it knows of a kind; an entry says of which kind its group is. A group without members
// becomes one of the other kind by whoever joins it; members of both kinds are never in one group.
//
// # What is kept
//
//	kafka/groups/<group>                     kind, coordinator and its epoch, members, which shards there are
//	kafka/offsets/<log>/<group>/<shard>      epoch, and the offsets of 128 partitions
//	kafka/staged/<group>/<transaction>       offsets that count when their transaction is committed
//
// Offsets lie under the log of their hub: the broker deletes them with it. They are read from the store each
// time, so that a group takes the memory of its members alone.
//
// # One writer
//
// A group that is in use is loaded, and has one lock. While something of it is to be stored one goroutine
// writes: what comes while it does travels with its next write. What a client is told follows the write that
// it depends on. A group's entry is written before a shard that it does not list yet.
//
// # The fence
//
// Of several nodes one coordinates a group at a time. Who loads a group raises the epoch in its entry, and
// then writes that epoch to all shards that the entry lists, the missing ones included. So a coordinator that
// does not know that it was replaced fails at its next write: of the entry, because its revision is another;
// of a shard that is listed, likewise; and one that is not listed needs a write of the entry first. It gives up
// the group then, and its clients ask who coordinates it. Epochs of a group that was deleted and made anew go
// on rising, since the first one of a group is taken from the clock. Who deletes a group claims its entry in the same
// way first, removes the shards that nobody has claimed since, and the entry last.
//
// # Goroutines
//
// Run has the alarm of all groups, and looks now and then which groups this node has to take over or to give
// up, and which have expired. A write, and the loading of a group, are a goroutine each, which no client's
// patience ends, and one takes over groups that have members, a few at a time; Run waits for them.
//
// # Operators
//
// Operator is for those who look at groups and change them from outside Kafka, at any node (table.go). What has no
// members can be changed by a node that it does not belong to: that takes it over for a moment, as the fence allows.
package groups
