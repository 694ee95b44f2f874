package blob

import "errors"

// What a caller branches on.
var (
	ErrContainerNotFound = errors.New("there is no such container")
	ErrContainerExists   = errors.New("the container exists already")
	ErrBlobNotFound      = errors.New("there is no such blob")
	// ErrBlobExists: the write was to create the blob.
	ErrBlobExists = errors.New("the blob exists already")
	// ErrOverwrite: who writes may only create.
	ErrOverwrite = errors.New("the blob exists already, and there is no right to overwrite it")

	// ErrConditionNotMet: the blob is not, or no longer, what the caller said it is.
	ErrConditionNotMet = errors.New("the condition of the request is not met")
	// ErrNotModified: a reader has the present state already.
	ErrNotModified = errors.New("not modified")

	ErrName     = errors.New("the name is not allowed")
	ErrMetadata = errors.New("the metadata is not allowed")
	// ErrProperties: they are too long.
	ErrProperties = errors.New("the properties are too long")
	ErrTooLarge   = errors.New("the body is too large")
	// ErrCutShort: the client went away in the middle of a body.
	ErrCutShort  = errors.New("the body ended before its time")
	ErrRange     = errors.New("the range lies outside of the blob")
	ErrBlockList = errors.New("the list names a block that was not uploaded")
	ErrTooMany   = errors.New("there are too many blocks")
	ErrMarker    = errors.New("the marker is none of this store's")

	// ErrNoSpace: storage is full. Nothing was changed.
	ErrNoSpace = errors.New("no space left for blobs")
)

// Of leases, when one is asked for or worked on.
var (
	ErrLeaseDuration     = errors.New("a lease lasts 15 to 60 seconds, or for ever, and breaks within 60 seconds")
	ErrLeasePresent      = errors.New("somebody has a lease already")
	ErrLeaseMismatch     = errors.New("the lease is another's")
	ErrLeaseNotPresent   = errors.New("there is no lease")
	ErrLeaseBreaking     = errors.New("the lease is being broken and cannot be acquired")
	ErrLeaseUnchangeable = errors.New("the lease is being broken and cannot be changed")
	ErrLeaseBroken       = errors.New("the lease is broken and cannot be renewed")
)

// Of leases, when something else is done under them.
var (
	// ErrLeaseNeeded: there is a lease, and the caller named none.
	ErrLeaseNeeded = errors.New("there is a lease, whose id the request lacks")
	// ErrLeaseOther: there is a lease, and the caller named another.
	ErrLeaseOther = errors.New("the lease id is not that of the lease")
	// ErrLeaseAbsent: the caller named a lease, and there is none.
	ErrLeaseAbsent = errors.New("there is no lease with the id that the request has")
	// ErrLeaseLost: the caller named a lease that has ended.
	ErrLeaseLost = errors.New("the lease has ended")
)
