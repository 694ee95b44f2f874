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

// noHub is of a hub that does not answer for itself; any other error is as it was.
func (in *instance) noHub(err error) error {
	return in.noSuch(err, "no hub "+in.group.Hub, "hub create "+in.group.Hub)
}

// noGroup is of a hub that is there, and its group is not.
func (in *instance) noGroup(err error) error {
	text := fmt.Sprintf("no group %q in hub %s", in.group.Group, in.group.Hub)
	return in.noSuch(err, text, "group create "+in.group.Hub+" "+in.group.Group)
}

// noSuch names the command that helps in a yard; of other hubs we know none.
func (in *instance) noSuch(err error, text, command string) error {
	switch {
	case errors.Is(err, hub.ErrNotFound):
		if _, ok := in.store.(*yard); ok {
			text += ": create it with: eventyard " + command
		}
		return &setupError{text, hub.ErrNotFound, err}
	case errors.Is(err, hub.ErrUnauthorized):
		text = fmt.Sprintf("no right to read hub %s as group %q: it takes a key or token that is valid and has the right to listen",
			in.group.Hub, in.group.Group)
		return &setupError{text, hub.ErrUnauthorized, err}
	}
	return err
}
