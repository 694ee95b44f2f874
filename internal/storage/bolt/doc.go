// Package bolt keeps the entries of package meta in one bbolt file.
//
// # Changes
//
// A durable commit costs two syncs however much it holds, so changes that arrive while one commit
// is under way share the next. There is no writer goroutine: the first caller to find no open batch
// opens one and leads it. It waits for the commit under way to end, while others join; then it
// seals the batch, judges each change in order against the transaction's state, commits, tells the
// watchers and answers all. A change that loses its comparison fails alone. Who leads sees the
// batch through, whatever becomes of its context, for the others wait for it; who merely joined may
// leave at any time, and takes the change along if the batch is not yet sealed.
//
// # Reads
//
// Reads are bbolt snapshots, copied out at once, because a long one pins pages. bbolt
// shows a transaction to readers before its last sync has ended. A power cut would
// then undo what a reader has already acted upon, so a read that finds a revision
// higher than the highest durable one waits for the commit and looks again.
//
// # When storage fails
//
// bbolt writes the changed pages to free places, syncs, writes one meta page that makes them count,
// syncs again. A failure before the meta page leaves no trace: the transaction was rolled back and
// nothing was changed; with a full disk that is what the caller is told, by meta.ErrNoSpace, and
// the same change succeeds once there is room. A failure after it leaves the change in doubt:
// visible, perhaps not durable, and the kernel reports a lost write only once, so syncing again
// would prove nothing. The callers get meta.ErrUncertain, and the store reads and changes nothing
// more until the doubt is settled: the meta pages are written once again, which makes their sync
// mean something. Open does the same, for a doubt that the last process left behind.
//
// Behind the pages in use the file has room that was written already, so that on a full disk
// deletions still find pages: see reserve.
//
// # Locks
//
// In the order in which they may be taken: Store.commit, Store.gate, Store.mu,
// board.mu, watcher.mu.
//
// # File
//
// Bucket "entries" holds the entries; its bbolt sequence is the newest revision, also when
// that was a deletion. Bucket "about" holds the format's number under "format" and,
// under "tally", how many entries there are and what their checksums add up to. An entry's
// value is this record, and so is the tally:
//
//	byte 0      1, the record's version
//	byte 1-8    revision, big endian
//	byte 9-12   CRC-32C of the key, bytes 0-8 and the value, big endian
//	byte 13-    value
package bolt
