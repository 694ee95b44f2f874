// Package sim holds the simulation of the processor library: a hub of 64 partitions, up to 20
// instances, and hours of crashes, pauses, and a store that is slow, down, or loses the
// answer to a write that it made. It runs under testing/synctest with no socket and
// no file, in one or two seconds for a simulated hour. It has no code of its own.
//
// One number, the seed, makes a whole run: who starts and dies when, and what becomes of each call.
// What chance decides is drawn for each call by itself from the seed and the call's own name, so
// that goroutines may come in any order. The processor draws its own jitter, though, and so a run
// goes much the same way again, but not exactly: a seed that failed is worth several tries
// (-count=20).
//
// What is real: the processor, the broker with its epochs, the disk engine on the in-memory
// file system, the memory store. What stands between them and fails is ours: one gate for
// each run of an instance, through which all its calls to the store and to the hub pass and all its
// handler calls return. A crash closes the gate for good: nothing of that run has any
// effect any more, except requests that were already under way. A pause holds everything at
// the gate. What a pause cannot do here is to delay the timers inside the processor,
// since no goroutine can be stopped from outside.
//
// The ledger is told of every write at the moment the store makes it and of every handler
// call, and knows the rules that must hold. The harness is tested by breaking things on purpose.
package sim
