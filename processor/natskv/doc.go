// Package natskv keeps leases, checkpoints and entries in a NATS JetStream key-value bucket.
// It needs servers of version 2.11 or later.
//
// Every record is one key, and every write is conditional on the key's last revision, which is the
// record's Version. Revisions count all writes of the bucket, so none ever comes back.
//
//	{namespace}.{hub}.{group}.lease.{partition}
//	{namespace}.{hub}.{group}.checkpoint.{partition}
//	{namespace}.{hub}.{group}.fact.{segment}.{segment}…
//
// # What a read is worth
//
// JetStream's reads are answered by any replica, which may lag behind. So a read first asks the
// stream's leader for its last sequence number and takes no answer from a replica that has not come
// so far; all records of one read are of one moment. Even so nothing rests on a read: the leader
// may have been deposed without knowing it yet. What decides is the condition of the write that
// follows.
//
// The fence works the same way. The epoch of the last Begin is kept in the checkpoint's own record,
// whose revision Begin moves on; a former owner's Save names a revision that is no more, and if it
// knew the newest, that record says that its epoch has passed.
//
// # Durability
//
// A write has returned when a majority of the bucket's replicas have it. By default NATS
// servers sync their files every two minutes only: for records that survive the loss of
// power on several machines at once, run the servers with sync_interval: always.
//
// Times of leases and checkpoints are by the clock of the machine that wrote them, as JetStream's
// answer to a write has none.
package natskv
