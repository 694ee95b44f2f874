// Package handler answers the requests of Kafka's clients out of the broker: topics are hubs, and record
// batches are kept as they came.
//
// Connections, versions and authentication are package kafka's, hubs the broker's, batches those of
// record, rights those of access.
//
//	handler.go, login.go       what it works with; who is let in
//	peer.go, rights.go         a connection, and what it may do
//	errors.go                  what is reported when something cannot be done: one table
//	metadata.go, cluster.go    which hubs and nodes there are
//	produce.go, producer_id.go batches that come in
//	fetch*.go                  batches that go out: fetch_session.go (what is asked for, pure), fetch_reader.go
//	                           (a partition), fetch_answer.go (what is sent, byte by byte), fetch_kept.go
//	                           (what stays between fetches)
//	offsets.go                 offsets by time, and of epochs
//	topics.go, configs.go      hubs made, changed and deleted
//	coordinator.go             who coordinates a group; transactions, which there are not
//	group_*.go                 groups (package groups): members, offsets, and those who look at them
//	log_dirs.go, acls.go       what tools ask besides
//	metrics.go, delivered.go   what is counted
//
// # Who does what at once
//
// The connection's reading goroutine checks and submits what is produced; its writing goroutine waits
// for that, and does everything else, one request after another. Only what ends a connection whose
// rights have ended is called by others.
//
// # How a fetch is answered
//
// An answer begins with its length. So headers of frames are looked at first (Extents), which give the
// exact length of Kafka's batches; then they are read and sent, 1 MiB at a time. Single events have to be
// made into batches before their length is known: an answer has at most 1 MiB of those. What turns out
// not to be there any more, because it is damaged or retention has overtaken the reader, is made up for
// by a batch without records, behind which clients go on, and by one that is cut off, which they pass
// over.
package handler
