package processor

import (
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/hub"
)

// setupError says what is set up wrongly in words of its own: the hub's are for those who run the
// hub. They are there for errors.As.
type setupError struct {
	text  string
	means error // hub.ErrNotFound or hub.ErrUnauthorized
	said  error
}

func (e *setupError) Error() string   { return e.text }
func (e *setupError) Unwrap() []error { return []error{e.means, e.said} }

// hopeless errors do not pass by waiting.
func hopeless(err error) bool {
	return errors.Is(err, hub.ErrNotFound) || errors.Is(err, hub.ErrUnauthorized)
}

// noHub is of a hub that does not tell of itself; any other error is as it was.
func (in *instance) noHub(err error) error {
	if errors.Is(err, hub.ErrNotFound) {
		return &setupError{"no hub " + in.group.Hub + in.remedy("hub create "+in.group.Hub), hub.ErrNotFound, err}
	}
	return in.noRight(err)
}

// noGroup is of a hub that is there, and its group is not.
func (in *instance) noGroup(err error) error {
	if errors.Is(err, hub.ErrNotFound) {
		text := fmt.Sprintf("no group %q in hub %s", in.group.Group, in.group.Hub)
		return &setupError{text + in.remedy("group create "+in.group.Hub+" "+in.group.Group), hub.ErrNotFound, err}
	}
	return in.noRight(err)
}

func (in *instance) noRight(err error) error {
	if !errors.Is(err, hub.ErrUnauthorized) {
		return err
	}
	text := fmt.Sprintf("no right to read hub %s as group %q: it takes a key or token that is valid and has the right to listen",
		in.group.Hub, in.group.Group)
	return &setupError{text, hub.ErrUnauthorized, err}
}

// remedy is how it is done in a yard; of other hubs we do not know.
func (in *instance) remedy(command string) string {
	if _, ok := in.store.(*yard); !ok {
		return ""
	}
	return ": create it with: eventyard " + command
}
