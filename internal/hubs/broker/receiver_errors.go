package broker

import (
	"fmt"
	"strings"
)

// EvictedError tells a receiver who took its place (H5, H7).
type EvictedError struct {
	// Name and Epoch are the receiver's own, NewName and NewEpoch those of the other.
	Name     string
	Epoch    *int64 // nil: it has none
	NewName  string
	NewEpoch int64
}

func (e *EvictedError) Error() string {
	return fmt.Sprintf("%s lost its slot to %s",
		describe(claim{e.Name, e.Epoch}), describe(claim{e.NewName, &e.NewEpoch}))
}

// EpochError refuses a receiver because of one that has a higher epoch, or any epoch
// when it has none itself (H5, H7).
type EpochError struct {
	Name  string
	Epoch *int64 // nil: the newcomer has none
	// OldName and OldEpoch are those of the receiver that is there.
	OldName  string
	OldEpoch int64
}

func (e *EpochError) Error() string {
	next := "use an epoch as high or higher, or close the other first"
	if e.Epoch == nil {
		next = "use an epoch too, or close the other first"
	}
	return fmt.Sprintf("%s is refused, %s is there: %s",
		describe(claim{e.Name, e.Epoch}), describe(claim{e.OldName, &e.OldEpoch}), next)
}

// ReceiverQuotaError refuses a receiver without epoch when there are Limit already (H6).
type ReceiverQuotaError struct {
	Limit int
	// Names are those of the receivers there, empty for who has none.
	Names []string
}

func (e *ReceiverQuotaError) Error() string {
	shown := make([]string, len(e.Names))
	for i, name := range e.Names {
		shown[i] = fmt.Sprintf("%.64q", name)
	}
	return fmt.Sprintf("%d receivers without epoch are the most for a group and partition: close one of %s",
		e.Limit, strings.Join(shown, ", "))
}

// describe names a receiver for an error.
func describe(c claim) string {
	who := "receiver"
	if c.name != "" {
		who = fmt.Sprintf("receiver %.64q", c.name)
	}
	if c.epoch == nil {
		return who + " without epoch"
	}
	return fmt.Sprintf("%s of epoch %d", who, *c.epoch)
}
