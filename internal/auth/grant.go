package auth

import (
	"strings"
	"time"
)

// Scope is rights to everything at or beneath a path.
type Scope struct {
	// Path is a hub, or something beneath one, as Path makes it; empty is the whole
	// namespace.
	Path   string
	Rights Rights
}

// Grant is what a token or key gives, until it expires. A signature or a key gives one
// scope; a bearer token may give several.
type Grant struct {
	Scopes []Scope
	// Expires zero: never.
	Expires time.Time
	// Holder names the policy, or the subject of a bearer token, for logs.
	Holder string

	hubOf func(path string) string
}

// Within gives the grant with a view of the hubs there are. hubOf names the hub that a
// path lies in, as Path makes it; empty if none.
//
// It is needed because names of hubs may have slashes: beside the hub a there may be
// a/b, which is no part of a. With the view, a scope that lies in one hub does not
// reach into another, also not into one made later.
func (g Grant) Within(hubOf func(path string) string) Grant {
	g.hubOf = hubOf
	return g
}

// Allows tells whether the grant is good for a path, as Path makes it, at that time: it
// has not expired, and the scopes that reach the path have together all of need. A need
// of zero asks for any right.
func (g Grant) Allows(path string, need Rights, now time.Time) bool {
	rights := g.Rights(path)
	return rights != 0 && rights.Has(need) && !g.Expired(now)
}

// Rights gives those at a path, whatever the time: of every scope whose path is the same
// or a prefix of it, segment by segment.
func (g Grant) Rights(path string) Rights {
	var rights Rights
	for _, s := range g.Scopes {
		if g.reaches(s.Path, path) {
			rights |= s.Rights
		}
	}
	return rights
}

// Expired tells whether the grant's time is over.
func (g Grant) Expired(now time.Time) bool { return !g.Expires.IsZero() && !now.Before(g.Expires) }

func (g Grant) reaches(scope, path string) bool {
	if !covers(scope, path) {
		return false
	}
	if scope == "" || scope == path || g.hubOf == nil {
		return true
	}
	hub := g.hubOf(scope)
	return hub == "" || hub == g.hubOf(path)
}

// covers tells whether a path is a prefix of another, segment by segment.
func covers(prefix, path string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (prefix == "" || rest == "" || rest[0] == '/')
}
