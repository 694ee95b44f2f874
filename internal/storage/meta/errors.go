package meta

import "errors"

// What a caller branches on.
var (
	// ErrNotFound: the key does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the key's revision is another than expected. Nothing was changed.
	ErrConflict = errors.New("changed by someone else")
	// ErrClosed: the store has been closed.
	ErrClosed = errors.New("meta store is closed")
	// ErrInvalid: the key or value is not of the form the contract allows.
	ErrInvalid = errors.New("invalid key or value")
	// ErrNoSpace: storage is full. Nothing was changed; reads go on, and the same change
	// succeeds once there is room.
	ErrNoSpace = errors.New("no space left for entries")
	// ErrUnavailable: the store is out of reach, as when its servers have no majority.
	// Nothing was changed, and the same call succeeds once they are back.
	ErrUnavailable = errors.New("meta store is out of reach")
	// ErrUncertain: storage failed under the change. It may or may not have been made.
	ErrUncertain = errors.New("outcome of the change is unknown")
	// ErrWatchLost: the watch may have missed a change, as when the connection to the
	// store was down for longer than the store remembers deletions. Watch again and
	// start from the present state: a key known before that is not in it is gone.
	ErrWatchLost = errors.New("watch may have missed a change")
)
