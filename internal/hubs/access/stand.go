package access

import (
	"crypto/sha256"
	"slices"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// Grants do not outlive what they stand on: a policy as it was made, the key that was shown, and
// the hub as it was then. A grant remembers these (auth.Basis) and asks the snapshot each time it
// is used. Who has something open on a grant hears of changes by OnChange, and asks then.

// noKey is the digest of a grant that no key was needed for.
var noKey [sha256.Size]byte

func digest(key string) [sha256.Size]byte { return sha256.Sum256([]byte(key)) }

// inForce reports whether a policy's hub is still the one that it was made for.
func (k *Registry) inForce(r record) bool {
	at, err := k.level(r.Hub)
	return err == nil && at.key(r.Name) == r.key()
}

// scope is what a policy gives as a whole.
func (r record) scope(key [sha256.Size]byte) auth.Scope {
	return auth.Scope{Path: r.level.hub, Rights: r.Rights, Basis: r.basis(r.level.incarnation(), key)}
}

func (r record) basis(hub int64, key [sha256.Size]byte) auth.Basis {
	return auth.Basis{Hub: hub, Policy: r.key(), Made: r.Created.UnixMilli(), Key: key}
}

// stands reports whether what a scope stands on is as it was.
func (k *Registry) stands(s auth.Scope) bool {
	if k.incarnation(s.Path) != s.Basis.Hub {
		return false
	}
	if s.Basis.Policy == "" {
		return true // a bearer token's
	}
	live := k.live.Load()
	r, ok := live.byKey[s.Basis.Policy]
	return ok && r.Created.UnixMilli() == s.Basis.Made && r.Rights == s.Rights &&
		(s.Basis.Key == noKey || slices.Contains(live.digests[s.Basis.Policy], s.Basis.Key))
}

// incarnation distinguishes the hub that a path lies in from others of that name; zero if there is
// none.
func (k *Registry) incarnation(path string) int64 {
	at, err := k.level(auth.HubOf(path))
	if err != nil {
		return 0
	}
	return at.incarnation()
}

// OnChange has f called after every change of the policies, whoever made it, until stop is called,
// and perhaps once more then. Changes wait for f: it must be quick, and must not change policies.
func (k *Registry) OnChange(f func()) (stop func()) { return k.listeners.Add(f) }
