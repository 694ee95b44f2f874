package auth

import (
	"crypto/sha256"
	"strings"
	"time"
)

// Entity is what a right is needed for: a hub, or something in one. The zero Entity is the
// namespace.
type Entity struct {
	// Hub is the hub that is worked on, and Path its path or one beneath it, both as
	// PathOf makes them. They are two because names of hubs may have slashes: a path
	// alone does not show whether a/b is the hub of that name or a part of a.
	Hub, Path string
}

// At gives the entity of a hub or of something in it, such as At("Orders", "Partitions", "0").
func At(hub string, parts ...string) Entity {
	return Entity{Hub: PathOf(hub), Path: PathOf(append([]string{hub}, parts...)...)}
}

// EntityOf gives the entity of a path, as Path makes it.
func EntityOf(path string) Entity { return Entity{Hub: HubOf(path), Path: path} }

// Scope is rights to everything at or beneath a path, within one hub.
type Scope struct {
	// Path is a hub, or something beneath one, as Path makes it; empty is the whole namespace.
	Path   string
	Rights Rights
	// Basis is what the scope stands on.
	Basis Basis
}

// Basis is what a scope stands on besides its time. Where any of it goes, or is made anew,
// the scope has ended.
type Basis struct {
	// Hub is when the hub that the scope lies in was created, in Unix milliseconds: it
	// distinguishes it from a later one of that name. Zero where it lies in none that exists.
	Hub int64
	// Policy is the name under which its registry knows the policy, and Made when that was
	// made, in Unix milliseconds. Bearer tokens have none.
	Policy string
	Made   int64
	// Key is the digest of the key that was shown; zero where none was needed.
	Key [sha256.Size]byte
}

// Grant is what a token or key gives, until it expires or what it stands on goes. A signature or a
// key gives one scope for each policy that it fits; a bearer token may give several.
type Grant struct {
	Scopes []Scope
	// Expires zero: never.
	Expires time.Time
	// Holder names the policy, or the subject of a bearer token, for logs.
	Holder string

	stands func(Scope) bool
}

// Account is who the grant's use is counted for: its policy, by the name of its registry, or the
// subject of a bearer token.
func (g Grant) Account() string {
	if len(g.Scopes) > 0 && g.Scopes[0].Basis.Policy != "" {
		return g.Scopes[0].Basis.Policy
	}
	return g.Holder
}

// While gives the grant with a view of what its scopes stand on: stands reports whether all of a
// scope's basis is still there. It is called each time, so that a grant ends in the moment in
// which its basis does. A grant without a view allows nothing.
func (g Grant) While(stands func(Scope) bool) Grant {
	g.stands = stands
	return g
}

// Allows reports whether the grant is good for an entity at that time: it has not expired, and the
// scopes that reach the entity have together all of need. A need of zero means any right.
func (g Grant) Allows(p Entity, need Rights, now time.Time) bool {
	rights := g.Rights(p)
	return rights != 0 && rights.Has(need) && !g.Expired(now)
}

// Rights gives those to an entity, whatever the time: of every scope that lies in its hub
// and whose path is the same or a prefix of its path, segment by segment. A scope whose
// hub does not exist reaches no other hub for that.
func (g Grant) Rights(p Entity) Rights {
	var rights Rights
	for _, s := range g.Scopes {
		reaches := s.Path == "" || covers(s.Path, p.Path) && HubOf(s.Path) == p.Hub
		if reaches && g.inForce(s) {
			rights |= s.Rights
		}
	}
	return rights
}

// Stands reports whether any right of the grant is left, whatever the time.
func (g Grant) Stands() bool {
	for _, s := range g.Scopes {
		if s.Rights != 0 && g.inForce(s) {
			return true
		}
	}
	return false
}

// Trimmed gives the grant without the scopes that have ended, and whether there were any.
func (g Grant) Trimmed() (Grant, bool) {
	var left []Scope
	for _, s := range g.Scopes {
		if g.inForce(s) {
			left = append(left, s)
		}
	}
	ended := len(left) < len(g.Scopes)
	g.Scopes = left
	return g, ended
}

// Expired reports whether the grant's time is over.
func (g Grant) Expired(now time.Time) bool { return !g.Expires.IsZero() && !now.Before(g.Expires) }

// inForce reports whether a scope still stands.
func (g Grant) inForce(s Scope) bool { return g.stands != nil && g.stands(s) }

// covers reports whether a path is a prefix of another, segment by segment.
func covers(prefix, path string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '/')
}
