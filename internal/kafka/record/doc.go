// Package record is the codec of Kafka's record batches, in their format 2. It is pure: bytes in,
// bytes out.
//
//	batch.go           the head of a batch, its checksum, and what is filled in where it is stored
//	decode.go          its records, one after the other
//	unpack.go          gzip, snappy, lz4 and zstd
//	workspace.go       the memory that this takes, which is bounded
//	check.go           whether a batch may be stored, and as what
//	encode.go          an uncompressed batch of records
//
// Whoever sends us a batch is a stranger. Reading never panics, and what it allocates is bounded by the
// bytes that are there and by [MaxUnpackedBytes], whatever lengths and counts they claim.
package record
