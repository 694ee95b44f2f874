package processor

import (
	"fmt"

	"github.com/eventyard/eventyard/hub"
)

// beginning is where a partition goes on, and what there is to report about it.
type beginning struct {
	from hub.Position
	// before is the event before the first to be read, as far as that is known.
	before   position
	anchored bool // before is certain
	pin      bool // before is to be stored at once
	// trouble is ErrGap or ErrBadCheckpoint, with the details: reported, but no reason not to go
	// on.
	trouble error
}

// begin finds where to go on from a checkpoint. The sequence number counts where there is one, as
// it can be compared; the offset is taken as it is. An error means that it must not be read (Fail).
func begin(c Checkpoint, hubID string, info hub.PartitionInfo, cfg Config) (beginning, error) {
	before := position{seq: c.Sequence, offset: c.Offset}
	switch {
	case c.Sequence < 0 && c.Offset == "":
		return fromStart(cfg.Start(info.Partition), info), nil
	case c.HubID != "" && hubID != "" && c.HubID != hubID:
		return outOfRange(fmt.Errorf("%w: it was made in a hub of %s, this one is of %s", ErrBadCheckpoint, c.HubID, hubID), info, cfg)
	case c.Sequence < 0:
		return beginning{from: hub.AfterOffset(c.Offset), before: before}, nil
	case c.Sequence > info.Last:
		return outOfRange(fmt.Errorf("%w: it is at %d, the newest event is %d", ErrBadCheckpoint, c.Sequence, info.Last), info, cfg)
	}
	b := beginning{from: hub.After(c.Sequence), before: before, anchored: true}
	gone := info.First - c.Sequence - 1 // how many events behind it are there no more
	if info.Empty {
		gone = info.Last - c.Sequence
	}
	if gone > 0 {
		b.from = hub.Earliest
		b.trouble = fmt.Errorf("%w: %d of them, from sequence number %d on", ErrGap, gone, c.Sequence+1)
	}
	return b, nil
}

// outOfRange does what the configuration says about a checkpoint that cannot be right.
func outOfRange(trouble error, info hub.PartitionInfo, cfg Config) (beginning, error) {
	switch cfg.OutOfRange {
	case Fail:
		return beginning{}, trouble
	case FromLatest:
		b := fromStart(hub.Latest, info)
		b.trouble = trouble
		return b, nil
	default:
		return beginning{from: hub.Earliest, before: nowhere, anchored: true, trouble: trouble}, nil
	}
}

// fromStart goes on without a checkpoint.
func fromStart(from hub.Position, info hub.PartitionInfo) beginning {
	switch {
	case from == hub.Earliest, from == hub.Latest && info.Last < 0:
		return beginning{from: hub.Earliest, before: nowhere, anchored: true}
	case from == hub.Latest:
		// Behind what is the newest event now. That is kept, as a position and as a checkpoint: the
		// end will be elsewhere when the reader is opened anew, or another owner begins, and what
		// has come until then would be missed.
		end := position{seq: info.Last, offset: info.LastOffset, at: info.LastEnqueued}
		return beginning{from: hub.After(info.Last), before: end, anchored: true, pin: true}
	}
	return beginning{from: from, before: nowhere}
}
