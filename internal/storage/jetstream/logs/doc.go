// Package logs is the eventlog.Engine of many nodes: each appends to every partition and reads every
// partition itself, over storage that keeps messages in one order (package streams), by the rule that
// says which of them count (package frames). It knows no servers: package natsstreams has those, and
// package model has simulated ones, on which all faults are tried.
//
//	Submit ─► writer ─► Publish ─► acknowledged ─┐                       ┌─► receipts
//	                                             ├─► line ─► folds ──────┼─► index ─► cursors
//	             announcements, what was read ───┘  (dense)              └─► Peek, Bounds
//
// A partition is a subject of a stream; a stream carries several (names.go). What a log is stands in
// an entry of the meta store (definition.go, provide.go); everything else follows from the streams.
//
// A stream that this node uses is followed (stream.go, feed.go): what its messages say is put into
// the order of their sequences (line.go), whether it was heard with an acknowledgement of one's own,
// from another node's announcement (announce.go), or was missing and read (errand.go). Each message
// is folded once. A partition has one fold, whose newest frames are in its index; a cursor reads
// bodies by subject, and takes from the index what counts and which numbers it has. A cursor that
// stands before the index has a fold of its own, from a mark on (seek.go).
//
// Marks, retention and purges are the background work (mark.go, retention.go, purge.go). Any node does
// them; twice does no harm. Streams that this node does not follow are looked at once in a while, and
// followed where they are at rest and something can have become too old, or where this node has been told
// to trim them (visit.go). What Trim allows stays while some node copies the logs (archive.go).
//
// Goroutines: each followed stream has a feeder, which alone folds and publishes, and one errand at a
// time, which reads for it; the engine has one that watches the entries of logs. Close waits for all.
// Run has one more, which visits streams, and waits for it.
// A hold (archive.go) has one that its caller ends.
// Locks: stream.tending before Engine.holding before Engine.mu before stream.mu; but for the first two,
// none is held while the storage is called.
package logs
