// Package delivery is the grid at work: it reads each source once, finds the subscriptions that an
// event matches, and sees to it that every one of them gets it, or its dead letter.
//
// # The plain idea, and why it is not enough
//
// A subscription is a cursor over a log: read, send, move on. With ten thousand of them each event
// would be read and decoded ten thousand times, a slow endpoint would hold up the events behind
// the one it does not answer, and a failed event would have to wait in memory for hours. So three
// things are apart here: reading is shared, sending is each subscription's own, and what has
// failed leaves the log for another (package retry logs).
//
//	source ──→ feed ──→ lane ──→ workers ──→ endpoint
//	  │     (filters)  │  ↑ ↑       │ delivered: the mark moves
//	  └──→ pump ───────┘  │ │       ├ again:     retry logs ──→ due ─┐
//	       (catches up)   │ └─ parked log ←──────────────────────────┤ no room, or on probation
//	                      └─────────────────────────────────────┘
//	                                └ never:     dead letters, or dropped and counted
//
// # Who is who
//
// A feed reads one partition of a source, decodes each event once, asks one index of all filters
// which subscriptions it concerns, and offers it to those. It never waits for anybody.
//
// A lane is one subscription. What it has taken stands in its queue, bounded in events and bytes,
// and all queues together are bounded by a budget. It has no goroutine: whoever changes something
// pokes it, and it starts workers, or has itself pumped, where that is of use. Ten thousand idle
// lanes are ten thousand small structs.
//
// What it has is divided by purpose, each piece a plain value under the lane's one lock:
//
//	terms      what the definition says, made ready; replaced whole
//	memory     the queue, what waits to be put away, and what all of it measures
//	sending    the workers, the rate, the probe
//	stock      what is known of the parked log
//	pullers    who receives, and what they hold
//	pumping    how it stands with the pumps
//	tracks     where it stands in each partition
//
// pokeLocked is where they meet.
//
// A track is where a lane stands in one partition. Joined to the feed it has no position of its
// own: what does not concern it does not touch it. When the lane cannot take an event (its queue is
// full, it is paused, its endpoint is on probation) the track is detached before that event, and
// the feed goes on without it. Later a pump reads on from there, with this lane's filter only,
// until the track is no longer behind the feed, and joins it again. Joining is decided with the
// feed held still, so that nothing falls between; a track that has come further than the feed may
// join too, because it ignores what is below its mark. See track.
//
// A worker takes a batch that fits together, of what is there (G2), sends it, asks package retry
// for the verdict, and carries it out. It ends when there is nothing more to send. There are so many of all
// lanes together: see seats.
//
// An endpoint is an address that lanes send to. Its health is theirs together (G7): see endpoint.
//
// # What is durable
//
// The happy path writes nothing but, once a second, the marks of all lanes of a partition as one
// entry (of a shard, up to four entries, the stalest first): below a lane's mark everything is delivered, given up, or kept elsewhere. An event is
// finished only when that is so: after the retry log, the parked log or the dead letters have it
// durably. If they do not take it (a full disk), the worker keeps it and tries again, and the lane
// stands still in the end; nothing is passed over. A crash, at any point, repeats what was done
// after the marks were saved, and loses nothing.
//
// # What leaves memory
//
// A lane that stands still holds nothing: what came from the log is put down, as numbers, and is
// read again; what came from a parked log goes back to it. So a million events behind a dead
// endpoint cost as much as none. Events still grow old there: a sweep, when the first of them has,
// moves them to the dead letters (G6).
//
// # Ordered subscriptions
//
// Events of one key go out one after another. A failed one is tried again in place, by the same
// schedule, and holds back its key alone; it uses no retry log, so that its attempts begin anew
// after a crash. The queue's bounds are the window: once it is full of keys that wait, the others
// wait, too.
//
// # Shards
//
// A holding is the subscriptions that are delivered here under one epoch. One machine has one, of
// all, for ever. Where the yard has several nodes each of 64 shards is one, for as long as this node
// holds it (Serve): it has its own retry logs, cursors, workers and pumps, and ends without the
// others. Feeds, endpoints, the clock and the budget are the node's.
//
// A shard that is given up takes nothing more, lets requests end, saves where its lanes stand, and
// drops what is in memory: the next holder reads it again from there, and repeats nothing. One that
// was lost saves nothing that a later holder has begun with (package shards). What is done for good,
// removing the parked log of a deleted subscription, is done on the store's word only: this node's
// definitions may be late, and the subscription one that it has not heard of.
//
// An endpoint's health is each node's own. That it was put on probation, for how long, and that this
// has ended is told to the other nodes by an entry (see shared): each makes at most one probe when
// the time has come, and the first that succeeds ends it for all.
//
// # Locks
//
// feed.mu, then lane.mu, then one of endpoint.mu, budget.mu, lates.mu, pumps.mu and the lock of the seats'
// share, then clock.mu (under endpoint.mu, budget.mu and the share's, which also has seats.mu under it) or crew.mu
// (under pumps.mu). Service.mu is held with no other.
// Nothing is read, written or sent under any of them, entries of parked logs and retry logs are
// reported as done without them, and nobody is poked: endpoints and the budget have the
// clock's goroutine do it.
package delivery
