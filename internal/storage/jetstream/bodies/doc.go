// Package bodies keeps the larger bodies of blobs on NATS servers, for all nodes of a yard. It is a
// blob.Bodies; package blob has the contract.
//
// All bodies are in one stream. A body is cut into chunks, which are messages of one subject, and has
// an index on a subject of its own, which says where in the stream each chunk lies:
//
//	y.YARD.b.NAME.c   chunk, chunk, chunk, …      written first, each acknowledged
//	y.YARD.b.NAME.i   size, size of a chunk, sequences of the chunks
//
// The index makes a body whole: it is written when all chunks are durable, so a crash leaves chunks
// without an index, which are listed and swept as any body that nobody names. A chunk of which
// nothing was heard is sent again, and the index names the sequence that was acknowledged: a copy that
// arrives late is in nobody's way and goes with the body. Any range is read by direct gets of the
// chunks that it lies in, from whichever server answers.
//
// The object store of the NATS client was not taken: it reads a body from its beginning only, by a
// consumer, which may take tens of seconds to come back after a server was lost; clients of blobs
// read large bodies in ranges, so that each would read all that lies before it. Nor does it find what
// a crash left.
package bodies
