// Package frames is the rule by which many nodes write one log without an owner: what a frame is,
// which frames count, and which numbers their events get. It does no I/O, starts nothing and knows
// no clock; any storage that keeps messages in one total order will do.
//
// The plain idea is one writer for each partition, to which all others forward. It costs a second
// trip for most of the data, and a frozen owner stops everybody. Instead, every node appends its
// frames to the stream itself, and whether a frame counts is a function of the frames before it.
// Whoever reads the stream comes to the same numbers.
//
// The rule, for one partition. Its state is the next number, the newest time, and for each writer
// an epoch and a counter q. A writer is a node's process, or an idempotent producer.
//
//  1. A data frame (writer, epoch, q) counts if (epoch, q) is exactly its writer's. An unknown
//     writer begins with (0, 0). Then its events get the next numbers, and q rises by one.
//  2. Its time is its own or the newest, whichever is later.
//  3. A fence (writer, epoch) with a higher epoch sets its writer to (epoch, 0).
//  4. Everything else is void: it takes room in the stream and no number.
//  5. A writer that was not used for [WriterLife] of the partition's own time is unknown again;
//     a producer, after [ProducerLife].
//  6. A frame whose own time lies half of that life behind the newest is void, so that no frame
//     outlives the memory of its writer.
//
// By 1, a frame that is missing voids those sent behind it, and so a writer's order holds. By 3,
// once a fence lies in the stream nothing of a lower epoch counts any more, however late it
// arrives; so a writer in doubt knows all once it has read up to its fence. See [Writer].
//
// Parts: [Header], [Frame] and [Batch] are the bytes (docs/internals/format/frames.md);
// [Partition] is the fold, one frame after the other; [Mark] is the state of all partitions of a
// stream, where a reader begins; [Writer] is a writer's window, its doubt and its fences.
package frames
