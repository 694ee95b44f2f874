// Package entries is a meta.Store over NATS JetStream, which any number of processes share.
//
// Entries are in a few streams, the buckets: one of definitions and some of state (names.go has the
// table). Each key has a subject of its own, of which its stream keeps the newest message only. So a
// change is one message, on condition of the sequence of the one before it, and the revision of an
// entry is twice its sequence. A deletion is a message too, which the stream forgets after a day; its
// revision is odd, so that nobody can take it for a value's.
//
// Each process has all entries in memory (replica), and reads are answered from there:
//
//	CompareAndSet ──► stream of the bucket ──► sequence ──► line ──► replica ──► watchers
//	                                              │           ▲
//	                       announcement to all ◄──┘           ├── announcements of other nodes
//	                                                          └── batches read from the stream
//
// The line of a bucket (line.go, pure) puts messages into the order of their sequences, wherever they
// come from. After an acknowledgement a writer announces the message to the other nodes by core NATS.
// An announcement may be lost, and a node may die before it sends one: a gap in the sequences that
// lasts for 20 ms is read from the stream, and so is the end of the stream, every second while
// somebody watches. Reads come from whichever server answers and may be old; line.go says what is
// known all the same.
//
// What is promised follows from two numbers of each line. A call's own changes, and what conflicted
// with them, are sequences that reads wait for, so they are never older than what this process saw
// acknowledged. Fresh writes a message that changes nothing, a barrier, and waits for it: whatever was
// acknowledged to anyone before has a lower sequence.
//
// A write of which nothing is heard for 5 s is looked for behind a barrier. Each write has a random
// number and names the sequence that it replaced: the newest message of the key is the write itself
// (done), or replaced what the write expected (conflict), or leaves it open (meta.ErrUncertain). Of messages
// that were replaced since, that is known where they were heard of meanwhile (sight.go). A refusal is judged
// alike: two leaders may have been handed the write, one that was frozen and the one after it. What
// was never handed over, for want of a connection or a leader, is meta.ErrUnavailable.
//
// A process that was cut off reads what it missed and tells its watchers, so meta.ErrWatchLost never
// comes. After half the life of deletions it reads everything anew, and takes for deleted what is
// not there any more.
package entries
