package access

import (
	"sync"
	"sync/atomic"
	"time"
)

// uses is when each key of each policy was last good for something, by the policy's key in the store. It is
// kept in memory, and begins anew with the process.
type uses struct{ all sync.Map } // of *[2]atomic.Int64: primary and secondary, in Unix milliseconds

// note notes that a key was shown, by its place among keysOf. The key that everybody knows is neither.
func (u *uses) note(policy string, which int, now time.Time) {
	if which > 1 {
		return
	}
	at, known := u.all.Load(policy)
	if !known {
		at, _ = u.all.LoadOrStore(policy, &[2]atomic.Int64{})
	}
	last := &at.(*[2]atomic.Int64)[which]
	if ms := now.UnixMilli(); ms-last.Load() >= 1000 { // who asks a thousand times a second need not write as often
		last.Store(ms)
	}
}

// LastUse is when each key of a policy was last shown to this process, since it started; zero: never.
type LastUse struct {
	// Policy is as activity names it.
	Policy             string
	Primary, Secondary time.Time
}

// LastUses gives those of all policies whose keys were shown.
func (k *Registry) LastUses() (all []LastUse) {
	live := k.live.Load()
	k.uses.all.Range(func(key, at any) bool {
		r, there := live.byKey[key.(string)]
		if !there {
			k.uses.all.Delete(key) // the policy is gone
			return true
		}
		both := at.(*[2]atomic.Int64)
		all = append(all, LastUse{ObjectOf(r.Hub, r.Name), timeOf(both[0].Load()), timeOf(both[1].Load())})
		return true
	})
	return all
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
