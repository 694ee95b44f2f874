package consumer

import "errors"

// What a member is refused with, besides what members of all kinds of groups are. Clients know each of
// them by a code of its own, and do what its text says.
var (
	// ErrInvalid: the heartbeat makes no sense, whatever the group is.
	ErrInvalid = errors.New("the heartbeat is not valid")
	// ErrFencedEpoch: the member is not where the coordinator knows it to be. It drops its partitions and joins
	// anew.
	ErrFencedEpoch = errors.New("the member's epoch is not the one that it was told: give up all partitions and join again with epoch 0")
	// ErrStaleEpoch: an offset is committed or asked for with an epoch that is not the member's. The client
	// repeats that with the one from its next heartbeat.
	ErrStaleEpoch = errors.New("the member's epoch has changed: repeat this with the one from the next heartbeat")
	// ErrUnreleasedInstance: another member has the instance id and has not left.
	ErrUnreleasedInstance = errors.New("another member uses this group.instance.id: stop it, or wait until its session has ended")
	// ErrAssignor: there is no such assignor.
	ErrAssignor = errors.New("the assignor is not known: use uniform or range")
	// ErrExpression: the regular expression cannot be read, or is too large.
	ErrExpression = errors.New("the regular expression of the subscription is refused")
)
