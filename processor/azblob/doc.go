// Package azblob keeps leases and checkpoints in an Azure Blob container, in the layout of
// the official Event Hubs SDKs, so that their processors and ours share a group, or a group
// moves from one to the other and back.
//
//	{namespace}/{hub}/{group}/ownership/{partition}   empty, metadata ownerid
//	{namespace}/{hub}/{group}/checkpoint/{partition}  empty, metadata sequencenumber, offset
//
// What the SDKs have no room for lies beside it, where they never look:
//
//	{namespace}/{hub}/{group}/eventyard/epoch/{partition}  metadata epoch, owner, heldepoch, heldowner
//	{namespace}/{hub}/{group}/eventyard/fact/{key}         metadata value, or a body
//	{namespace}/{hub}/{group}/eventyard/group              metadata name
//
// The SDKs share a group only if they name the namespace alike, in case (Config.PathCase) and port
// (Config.Namespace).
//
// There is no room for which hub a checkpoint was made on, as the SDKs' records are kept bit for
// bit: that of an earlier hub of the same name is noticed only if it lies beyond the end.
//
// # Epochs
//
// The ownership blob has no room for an epoch. So whoever acquires a partition first draws a
// number: it raises the epoch blob by compare-and-set. Then it writes the ownership blob on
// condition of the version it had seen. This is safe for three reasons. A number is drawn once, so
// no two acquisitions share one. The version was read before the number was drawn, so if somebody
// with a higher number has written the ownership blob since, that version is gone and the write
// fails: the numbers of those who succeed only rise. And a number that was drawn in vain harms
// nobody: whoever learns that its write failed puts the number back, which no hub has seen; where
// it died before that, the owner goes on under its own number, which the epoch blob keeps as
// heldepoch, and the next one draws a higher. Leases then gives the highest number drawn, as that
// is the one to exceed.
//
// An owner that drew no number is a foreign one, such as an SDK's processor.
//
// # Fences
//
// The version of a checkpoint is the blob's ETag. Begin writes an existing checkpoint once
// more, unchanged, and Save writes only over the version that its caller knows, so after
// Begin every save of a former owner fails. Two things cannot be fenced in this layout:
// an SDK's processor writes checkpoints without any condition; and where no checkpoint exists
// there is nothing to write again (an empty one would break the SDKs' listing), so a
// former owner's very first save can slip in between its look at the ownership blob and
// its write. The new owner's own first save is a conflict then, and it begins again.
//
// # Answers that are lost
//
// Reads are repeated as the client's retry options say. Writes are repeated only where the
// service says that it has done nothing (throttling): a conditional write that is sent again
// although it had succeeded would learn that its condition failed, by its own first try.
package azblob
