package groups

import (
	"errors"
	"fmt"
)

// What a listener branches on, besides what members are told (package member) and the store's own errors.
var (
	// ErrNotCoordinator: another node coordinates the group, or is about to.
	ErrNotCoordinator = errors.New("another node coordinates the group: ask which one")
	// ErrStopping: the coordinator stops, or the connection does. Another try may succeed elsewhere.
	ErrStopping = errors.New("the coordinator is stopping: try again")
	// ErrBusy: as many groups are in use as there may be, or their members take too much memory.
	ErrBusy = errors.New("too many groups are in use: try again later")
	// ErrInvalidID: the id of a group is empty or too long.
	ErrInvalidID = errors.New("the id of a group has 1 to 256 bytes")
	// ErrNotFound: there is no such group.
	ErrNotFound = errors.New("there is no such group")
	// ErrNotEmpty: the group has members, which have to leave first.
	ErrNotEmpty = errors.New("the group has members: stop them first")
	// ErrSubscribed: members of the group subscribe to the topic, so that its offsets are theirs.
	ErrSubscribed = errors.New("members of the group subscribe to the topic: stop them first")
	// ErrMetadata: what a client has to say beside an offset is too long.
	ErrMetadata = errors.New("the metadata of an offset have up to 1024 bytes")
	// ErrTooManyGroups: as many groups are stored as there may be, or one has offsets in too many hubs.
	ErrTooManyGroups = errors.New("as many groups are stored as there may be, or this one has offsets in too many hubs: delete some, or use another")
	// ErrTooManyOffsets: offsets of a group in one transaction measure more than they may.
	ErrTooManyOffsets = fmt.Errorf("offsets of a group in one transaction measure at most %d KiB as they are stored: commit those of fewer partitions at once, or with less metadata", maxStagedBytes>>10)
	// ErrRights: there is no right to Listen to each hub of the group.
	ErrRights = errors.New("there is no right to Listen to all hubs of the group: use a policy that has it")
)
