package auth

import (
	"crypto/sha256"
	"time"
)

// Scope is rights to an entity and all that is in it.
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
// subject of a bearer token. Of several policies it is the first that it still stands on.
func (g Grant) Account() string {
	for _, s := range g.Scopes {
		if s.Basis.Policy != "" && g.inForce(s) {
			return s.Basis.Policy
		}
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
// scopes that reach the entity have together all of need. A need of zero means any right to it, which
// Metrics is not.
func (g Grant) Allows(p Entity, need Rights, now time.Time) bool {
	rights := g.Rights(p)
	if need == 0 {
		rights &= Manage
	}
	return rights != 0 && rights.Has(need) && !g.Expired(now)
}

// Rights gives those to an entity, whatever the time: of every scope that it is or lies in. A scope
// whose hub does not exist reaches no other hub for that.
func (g Grant) Rights(p Entity) Rights {
	var rights Rights
	for _, s := range g.Scopes {
		if EntityOf(s.Path).covers(p) && g.inForce(s) {
			rights |= s.Rights
		}
	}
	return rights
}

// Reaching gives the grant with only those scopes that reach an entity.
func (g Grant) Reaching(p Entity) Grant {
	var reaching []Scope
	for _, s := range g.Scopes {
		if EntityOf(s.Path).covers(p) {
			reaching = append(reaching, s)
		}
	}
	g.Scopes = reaching
	return g
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

// Opens reports whether a right to any entity is left, whatever the time: Metrics alone is none.
func (g Grant) Opens() bool {
	for _, s := range g.Scopes {
		if s.Rights&Manage != 0 && g.inForce(s) {
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
