// Package triage decides what becomes of events whose calls fail: called again, divided, put away.
// It is pure, and has the record by which a partition's work survives crashes.
//
//	          done, skipped                                   ┌── wait, again ──┐
//	fresh ──────────────────▶ finished                        ▼                 │
//	  └────── failed, and the policy allows another try ──▶ recorded ───────────┘
//	                                                          │ used up, or died too often
//	                              one event: put away ◀───────┴───────▶ several: halves, left and right
//
// # How to use it
//
//  1. Open: Begin from the stored record (the zero Work if there is none, or if it cannot be read:
//     say so). Not Owned afterwards: ErrFenced. Store it. An event that is at or below Begun has
//     been rewound: Begin again, with the same epoch.
//  2. For each batch Plan (not needed while Calm), then unit by unit from left to right. What is
//     Intended or Condemned is put away and not called. Batch.Attempt is Unit.Tries()+1.
//  3. Before a call: if Recorded(unit), Put it with Calling and store. If Wary(unit), no other call
//     of the process may run beside it, of whatever lane, partition or function, from before that
//     is stored until its outcome is: a death in between must be its doing.
//  4. After a call: After, then Settle with its parts; store if there is a part to Call or to
//     PutAway, or the unit was Calling. The parts take the unit's place in the queue. A cancelled
//     call: Put the unit with Calling false, store if still possible.
//  5. Putting away, one at a time for a partition: circuit first; then Intend with a random
//     producer, and store; the poison event as the Intent that it gave says; Sent, and store.
//     hub.ErrOutOfOrder: Renumber, and store. ErrTooLarge: forget what is Away furthest above the
//     checkpoint.
//  6. After a circuit was closed again: Anew for units, those in hand and those recorded.
//  7. Passed only with a checkpoint that the store has (Status.Saved), not with one that is merely
//     marked; it need not be stored by itself. Close in good order: Clean = true, store.
//
// # What is promised
//
// An event is put away only after calls that failed for it: with a result of its own, alone, or
// with all others of the part it was in, down to itself. One whose instance died is put away only
// after as many deaths as it may fail, three at least, of which the last three were in calls for it
// alone, with less than five calls between two of them that ended. Killing an instance by hand
// costs an event nothing: a death in a call beside others is held against nobody, as it may be
// theirs, and dying uses up no retry.
//
// Whoever dies on the happy path has recorded nothing. Owners that die at the same checkpoint three
// times put it under suspicion (Work.Suspect): until the checkpoint moves every call is recorded,
// and alone if it is the first for its events, and so the guilty call is found. A killer at the
// head of a partition, in a batch of 100, is away after fifteen deaths at most if batches are cut
// alike. What holds up others, as calls that are alone do, is bounded: an event that goes on
// failing, but kills nobody, is soon called beside them.
package triage
