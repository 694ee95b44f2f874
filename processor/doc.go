// Package processor shares the partitions of a hub among any number of workers: leases,
// balance, checkpoints, take-over.
//
//	p := processor.New(client.Hub("orders"), processor.Config{Group: "billing"})
//	err := p.Run(ctx, func(ctx context.Context, b *processor.Batch) error {
//		if err := bill(ctx, b.Events); err != nil {
//			return err // the batch comes again
//		}
//		return b.Checkpoint(ctx)
//	})
//
// Start as many instances as you like, wherever: they spread the partitions evenly, and move them
// when instances come and go. Events of a partition come in order, one batch at a time, at least
// once: after a crash whatever was past the checkpoint comes again. A planned move repeats nothing.
// There are three forms of the same thing: Run with a function, RunHost with an object per
// partition (Open, ProcessEvents, ProcessError, Close), and Partitions, in which you do the
// looping.
//
// # What is stored
//
// A Store keeps three kinds of records for a consumer group, all changed by compare-and-set:
//
//	lease        of each partition: its owner, and an epoch that rises with every acquisition
//	checkpoint   of each partition: everything up to here is done
//	entry        presence/INSTANCE, rewritten by each living instance; next/PARTITION: who wants it
//
// # Liveness
//
// Every Config.Renew an instance rewrites its presence. Nobody looks at times: a record is dead when
// its version has not changed for Config.Lease on the observer's own monotonic clock. The owner
// counts from before its write began, so it has stopped when others begin. In a yard's own store
// leases hang on their owner's presence and live as long as that (PresenceStore): others end the
// presence of the dead before they take its leases, and an owner whose presence was ended has lost
// them. In other stores, and while an instance of an older version is about, the leases are
// rewritten, too, in one call.
//
// Presence is apart from the leases, so an instance without partitions counts, too. An owner
// without presence is another program's, such as an official SDK's processor: it has two minutes,
// is not asked, and while it is about our readers show epoch 0 as its do.
//
// # Who owns
//
// All instances decide by themselves and by the same pure function which partition each should
// have.
//
//	free or dead ──claim, epoch+1──▶ ours ──Begin──▶ fenced ──open reader──▶ running
//
// The hub disconnects readers with a lower epoch, and Begin makes every checkpoint under a lower
// epoch fail: an owner that does not know yet that it is none any more can do no harm. An answer
// that was lost is never guessed: the records are read again, and a lease that carries our id
// without anybody at work is claimed like any other, with a raised epoch.
//
// # How a partition moves
//
//	new owner                    owner
//	put next/3 = its id ───────▶ starts no further call, lets the one in progress end (of
//	                             lanes, those that are behind others catch up with them)
//	                             (after Config.Handoff its context ends with ErrHandoff)
//	                             closes the reader, calls Close(Handoff), writes what is marked
//	sees it free ◀────────────── releases the lease
//	claims, begins, reads
//	removes next/3
//
// A free partition that a living instance has asked for is left to it. An owner that does not let
// go loses the partition by force, after Handoff and one and a half times Renew.
//
// # States of a partition
//
//	          ┌──────────── reader fails, hub or store is away ──┐
//	          ▼                                                  │
//	──▶ Starting ──▶ Running ◀──▶ Retrying ──────────────────────┤
//	       │  ▲          │  a batch failed and comes again       │
//	       ▼  │          │                                       │
//	     Faulted         ├──▶ Stalled   no progress: released    │
//	  only an operator   ▼                                       │
//	  can help        Draining ──▶ Closed ◀── lease lost ────────┘
//
// Config.OnState is called with each change, Config.OnError with each error, and Status gives the
// states at any time.
//
// # What ends a call's context
//
// context.Cause says which: ErrLeaseLost when the lease could not be renewed in time (the call
// counts for nothing, whatever it returns), ErrHandoff and ErrShutdown when the time to end in good
// order is over (nil still counts while the lease is proven), ErrHandlerTimeout when the call took
// too long (it has failed). A call that ignores this for another Config.Lease loses the
// partition; it is not called a second time meanwhile.
//
// # Calls that wait
//
// A call may take as long as it likes where Config.HandlerTimeout is negative: the lease is renewed
// meanwhile, and events that wait behind it are no stall. Before its context ends it is notified by
// Batch.Leaving, which is closed as soon as draining begins or the partition is to start again:
// a handler that waits in the middle of a batch, as for something that is down, then returns
// ErrUndone, and the partition moves at once and not after Config.Handoff.
package processor
