package frame

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// ErrRights: the token is for the entity, but lacks the right that the call requires.
var ErrRights = auth.ErrTooFewRights

// Reach is how far a grant has to reach for a route.
type Reach int

// Where grants have to reach.
const (
	Undeclared Reach = iota // somebody forgot; such a route is never served
	Nobody                  // open to all: no token is looked at
	Any                     // any good token will do, whatever it is for
	Namespace               // the token is for the whole namespace
	Hub                     // the token is for the hub in the path, or what contains it
)

// Need is what a route asks of whoever calls it.
type Need struct {
	Reach Reach
	// OneOf are the rights of which one is enough; empty asks for any right at all.
	OneOf []auth.Rights

	// TopicKey: a key of the topic in the path, or a token made with one, is as good.
	TopicKey bool
	// Permissions: a shared-access signature of the blob account is as good that has one of them;
	// Account: if it is one for the account and not for a container or a blob.
	Permissions string
	Account     bool

	// Why says, where Nobody is asked for anything, how that can be.
	Why string
}

// Open is the need of a route that anybody may call, and why.
func Open(why string) Need { return Need{Reach: Nobody, Why: why} }

// Of is the need of one of these rights to the namespace or a hub; of no right in particular if
// none is named.
func Of(reach Reach, oneOf ...auth.Rights) Need { return Need{Reach: reach, OneOf: oneOf} }

// String is how openapi.json and refusals put it.
func (n Need) String() string {
	var text string
	switch n.Reach {
	case Undeclared:
		return "undeclared"
	case Nobody:
		return "nothing"
	case Any:
		return "any token"
	case Namespace:
		text = n.Rights() + " to the namespace"
	case Hub:
		text = n.Rights() + " to the hub"
	}
	if n.TopicKey {
		text += ", or a key of the topic"
	}
	if n.Permissions != "" {
		of := "a container or a blob"
		if n.Account {
			of = "the account"
		}
		text += ", or a signature for " + of + " with one of " + n.Permissions
	}
	return text
}

// Rights are those that the need asks for, in words.
func (n Need) Rights() string {
	names := make([]string, len(n.OneOf))
	for i, r := range n.OneOf {
		names[i] = strings.Join(r.Names(), " and ")
	}
	if len(names) == 0 {
		return "any right"
	}
	return strings.Join(names, " or ")
}

// Check says why a grant is not enough for an entity.
func (n Need) Check(g auth.Grant, at auth.Entity, now time.Time) error {
	if n.Reach == Any {
		if g.Opens() {
			return nil
		}
		return fmt.Errorf("%w: the token of %q gives none to this", ErrRights, g.Holder)
	}
	enough := func(r auth.Rights) bool { return g.Allows(at, r, now) }
	if len(n.OneOf) == 0 && enough(0) || slices.ContainsFunc(n.OneOf, enough) {
		return nil
	}
	if g.Rights(at) == 0 || g.Expired(now) {
		return fmt.Errorf("%w: the token of %q is not for %s", auth.ErrAudience, g.Holder, showEntity(at))
	}
	return fmt.Errorf("%w: %s is required, and the token of %q gives %s to %s",
		ErrRights, n.Rights(), g.Holder, g.Rights(at), showEntity(at))
}

func showEntity(at auth.Entity) string {
	if at.Hub == "" {
		return "the whole namespace"
	}
	return fmt.Sprintf("%q", at)
}
