package eventlog

import (
	"context"
	"fmt"
)

// Described is a log as its engine knows it.
type Described struct {
	Name string
	// Shape is what it was provided with. Known is false where nobody has provided it since the engine
	// was opened: then Shape has the number of partitions only.
	Shape Shape
	Known bool
}

// Archivable is an engine whose logs can be copied while they are used. An engine need not be one.
type Archivable interface {
	// Logs gives all logs that hold anything, and those that were provided, by name. It may block. One
	// that is made or removed meanwhile may be missing or not; see Partition for what was removed.
	Logs(ctx context.Context) ([]Described, error)

	// Hold has what Trim allows to be removed stay, in all logs and for all processes that share them,
	// until release is called, which is safe twice. What a Trim had allowed before Hold was called may
	// still go, and what retention and Remove take goes all the same. It may be called several times at
	// once, and may block. It is for who reads several logs that events move between: what is in one
	// when it begins is found there, also if it was moved on meanwhile to one that was read before.
	//
	// An error of release says that it is not known whether all of it stayed until then: what was read
	// may lack something. If nobody calls it, as after a crash, the hold ends by itself after a while.
	Hold(ctx context.Context) (release func(context.Context) error, err error)
}

// Skipper is an Importer that can leave numbers out, for those of events that were damaged where they
// came from.
type Skipper interface {
	// SkipTo makes the partition go on at a number above the present end. Readers meet a *CorruptError
	// for the numbers between. Nobody else appends meanwhile, and no import is under way. It is as
	// durable as the engine promises when it returns. Errors: as of BeginAt.
	SkipTo(ctx context.Context, next Sequence) error
}

// ParseKind gives the kind with a name.
func ParseKind(name string) (Kind, error) {
	for kind, known := range kindNames {
		if known == name {
			return Kind(kind), nil
		}
	}
	return 0, fmt.Errorf("no log is of kind %q", name)
}
