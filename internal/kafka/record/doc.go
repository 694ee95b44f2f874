// Package record is the codec of Kafka's record batches, in their format 2, and what their records are
// for readers of other protocols. It is pure: bytes in, bytes out.
//
//	batch.go           the head of a batch, its checksum, and what is filled in where it is stored
//	decode.go          its records, one after the other
//	unpack.go          gzip, snappy, lz4 and zstd
//	workspace.go       the memory that this takes, which is bounded
//	check.go           whether a batch may be stored, and as what
//	encode.go          an uncompressed batch of records
//
//	to_amqp.go         a record as the AMQP sections of a single event
//	from_amqp.go       a single event as a record
//	cloudevents.go     the attributes of CloudEvents in both
//	translate.go       whole frames and runs, by these
//
// docs/internals/kafka.md has the mapping as a table. Each of its rows is one function here; those marked
// [U] are our own choice, since nobody has written down what Event Hubs does.
//
// Whoever sends us a batch is a stranger. Reading never panics, and what it allocates is bounded by the
// bytes that are there and by [MaxUnpackedBytes], whatever lengths and counts they claim.
package record
