// Package transactions coordinates the transactions of Kafka's producers.
//
// All that is known of a transactional id is one entry, kafka/transactions/<id>, a txn.Transaction. Each request reads
// it, asks the pure rules of package txn what it is to be, and writes that by compare-and-set: so any node may answer
// for any id, and of two that do at once one begins anew. There is nothing else to take over when a node is gone.
//
// A transaction ends in two steps. First the decision is stored. Then every partition is told, by a control frame
// (broker.Frames.EndTransaction), and every group (groups.Stage), and when all have heard of it that is stored. Whoever
// finds a decision that is not carried out does that: who was asked to decide, who comes next for the id, and Run, after
// a restart or when another node was in the middle of it. Telling twice does no harm. A partition is told by who has
// looked at the entry after it had claimed the producer there, so that one that comes late, when the next transaction
// may have begun, is refused.
//
// Whether a producer may write to a partition is asked of the entry, likewise (Coordinator.Verify).
package transactions
