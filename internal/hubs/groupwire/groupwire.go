// Package groupwire is what a processor and a yard say to each other about the leases,
// checkpoints and entries of a consumer group: the bodies of requests to the node $yard and of
// its replies, in JSON. It is pure: it knows neither of the two, nor the protocol between.
//
// A request names an operation and a hub outside of its body. The reply has a status; with
// StatusOK, and only then, its body is that of the operation.
//
// Requests are read strictly: what the yard does not know it must not pass over, since it
// could be a condition. Replies are read with leniency towards what a newer yard says besides.
package groupwire

import "errors"

// Node is the address of the links that requests and replies go by.
const Node = "$yard"

// The operations. Moving a checkpoint against its owner is none of them: that is an operator's
// business, and takes more than the right to listen.
const (
	OpLeases      = "leases"      // LeasesRequest, LeasesReply
	OpClaim       = "claim"       // ClaimRequest, ClaimReply
	OpCheckpoints = "checkpoints" // CheckpointsRequest, CheckpointsReply
	OpBegin       = "begin"       // BeginRequest, CheckpointReply
	OpSave        = "save"        // SaveRequest, CheckpointReply
	OpEntries     = "facts"       // EntriesRequest, EntriesReply
	OpPut         = "put"         // PutRequest, EntryReply
	OpRemove      = "remove"      // RemoveRequest, RemoveReply
	OpWatch       = "watch"       // WatchRequest, WatchReply
)

// Operations are all of them.
func Operations() []string {
	return []string{OpLeases, OpClaim, OpCheckpoints, OpBegin, OpSave, OpEntries, OpPut, OpRemove, OpWatch}
}

// The statuses of replies. Of any other but these nothing is known: what was asked for may have
// been done.
const (
	StatusOK           = 200
	StatusBadRequest   = 400 // and will be
	StatusUnauthorized = 401
	StatusNotFound     = 404 // the hub or the group
	StatusConflict     = 409 // the record is in another version; nothing was written
	StatusFenced       = 410 // another instance has the partition; nothing was written
	StatusTooMany      = 429 // nothing was done; later it may be
	StatusFailed       = 500 // nothing is known
	StatusUnavailable  = 503 // nothing was done; the yard is stopping or its disk is full
)

// Bounds on both sides.
const (
	// MaxRequestBytes and MaxReplyBytes are of a body.
	MaxRequestBytes = 256 << 10
	MaxReplyBytes   = 1 << 20
	// MaxLeases is the most leases of one claim.
	MaxLeases = 2048
	// MaxTextBytes is the longest text but for an entry's value: names, ids, versions.
	MaxTextBytes = 1024
	// MaxValueBytes is the longest value of an entry.
	MaxValueBytes = 16 << 10
	// PageBytes is about how much of entries a reply holds; for more one asks again.
	PageBytes = 512 << 10
)

var (
	// ErrMalformed: a body is not what it has to be.
	ErrMalformed = errors.New("malformed")
	// ErrTooLarge: a body, or something in it, is larger than it may be.
	ErrTooLarge = errors.New("too large")
)
