// Package circuit keeps a function's circuit breaker in a processor's store, shared by all
// instances: each writes its own count, all read all counts, and one compare-and-set opens or
// closes it for everybody.
//
// # What is stored
//
//	circuit/FUNCTION              a breaker.Record: the state, its term, why
//	failures/FUNCTION/INSTANCE    a breaker.Tally: an instance's failures by age when it was written
//
// A circuit that never had trouble has no record. An instance has a tally while it runs, written
// once if it has no failure, by which operators find the function.
//
// # Who decides
//
// Everybody, by the same rules (package breaker) and on what it has seen; whoever writes the record
// first has decided, and all others read it. After a write whose answer was lost the record is read
// again: what is there counts, and nothing is guessed. There is no leader, and it does not matter
// who dies.
//
// # Counting without comparing clocks
//
// A tally has ages, not times. Who reads it adds how long ago it has first seen it in this form, on
// its own clock. That is exact only if it was seen soon after it was written, so a tally that was
// there when a member came, or was found changed after the store was away, counts only when it
// changes again. Instances with failures in the window write their tally again now and then, so
// that this is soon; one that was dead all the while never does. What a member has once seen counts
// until it has aged, also if its instance has left. While the circuit is not closed nobody counts,
// and no tally is written but for one, which shows what each instance had counted when it opened.
//
// # What succeeds elsewhere
//
// A tally also tells how long ago the newest call began that succeeded. There the reverse holds: it
// must not be taken for younger than it is, since an event is found guilty by it. So it is dated
// from the read before the one that found it, less the time that the write may have taken. It is
// written again only while somebody finds what the function needs down.
//
// # When the store is away
//
// Before the first good read nothing is known and no call passes. Later the last known state stays:
// a closed circuit stays closed for calls, since most outages of a store have nothing to do with
// the function, and failures are counted in memory. But MayPutAway needs the store and fails, so
// that nothing is put away meanwhile. A record that cannot be read is the same as a store that
// is away, and never a closed circuit.
//
// # When a read lags behind
//
// A replica may give a record that is older than the one a member knows. By its lower term it is
// known, and heeded only if it stays: then it was removed, and begun anew. MayPutAway writes the
// record from the version that it read, which an older one does not allow.
//
// # No more than the policy allows
//
// If each instance put away what its own count allows, k of them would put away k times as many
// before they heard of each other. So a put-away is decided on by compare-and-set of the record: it
// is read, then all tallies are, and how many failures this instance has then is written into it
// (breaker.Record.Decided), until its tally shows as many. All decisions of a term have an order
// so, and each counts what was decided before.
//
// # Who writes when
//
//	Run        the tally, at most four times a second; the record when it is due; a probe's end that could not be stored yet
//	Failed     the record, when these failures are too many
//	MayPutAway has Run write the record: what it allows, or that it is open
//	Probed     the record
package circuit
