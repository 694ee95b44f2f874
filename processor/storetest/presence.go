package storetest

import "github.com/eventyard/eventyard/processor"

// presenceTests are for a processor.PresenceStore.
var presenceTests = []test{
	{"what a lease hangs on is given to every process as it was claimed", hanging(presenceKept)},
	{"a renewal changes what a lease hangs on, also to nothing", hanging(presenceChanged)},
	{"an acquisition replaces what a lease hangs on, and a release removes it", hanging(presenceReplaced)},
	{"a claim that is left out leaves what a lease hangs on", hanging(presenceOfTheLeftOut)},
	{"a lease that hangs on a presence is renewed, begun and saved under like any other", hanging(presenceUnderWork)},
}

// keepsPresence reports whether the store says that it is one. It may have to read leases to know.
func keepsPresence(f *fixture) bool {
	f.Helper()
	f.leases()
	renewing, ok := f.store.(processor.PresenceStore)
	return ok && renewing.KeepsPresence()
}

// hanging runs a test with a store that keeps presences; there is none of the others to be tested.
func hanging(run func(f *fixture)) func(f *fixture) {
	return func(f *fixture) {
		if !keepsPresence(f) {
			f.Skip("leases of this store hang on nothing")
		}
		run(f)
	}
}

func presenceKept(f *fixture) {
	won := f.claimAll(hangs(lease("0", "a", 1), "LIFE1"), lease("1", "a", 1), hangs(lease("2", "b", 1), "LIFE2"))
	for i, want := range []string{"LIFE1", "", "LIFE2"} {
		wantPresence(f, won[i], want)
	}
}

func presenceChanged(f *fixture) {
	l := f.claim(lease("0", "a", 1))
	for _, life := range []string{"LIFE1", "LIFE2", "", "LIFE1"} {
		l = f.claim(hangs(l, life))
		wantPresence(f, l, life)
	}
}

func presenceReplaced(f *fixture) {
	had := f.claim(hangs(lease("0", "a", 1), "LIFE1"))
	taken := hangs(lease("0", "b", 2), "LIFE2")
	taken.Version = had.Version
	taken = f.claim(taken)
	wantPresence(f, taken, "LIFE2")
	taken.Owner, taken.Presence = "", ""
	wantPresence(f, f.claim(taken), "")
}

func presenceOfTheLeftOut(f *fixture) {
	old := f.claim(hangs(lease("0", "a", 1), "LIFE1"))
	now := f.claim(old)
	f.claimLost(hangs(old, "LIFE2"))
	f.claimLost(hangs(old, ""))
	wantPresence(f, now, "LIFE1")
}

func presenceUnderWork(f *fixture) {
	l := f.claim(hangs(lease("0", "a", 1), "LIFE1"))
	l = f.claim(l)
	c, err := f.store.Begin(f.ctx, f.group, l)
	if err == nil {
		c.Sequence, c.Offset = 7, "7"
		_, err = f.store.Save(f.ctx, f.group, l, c)
	}
	if err != nil {
		f.Fatalf("work under %+v: %v", l, err)
	}
}

func hangs(l processor.Lease, life string) processor.Lease {
	l.Presence = life
	return l
}

// wantPresence wants the lease to hang on this, as it was given and as another process reads it.
func wantPresence(f *fixture, given processor.Lease, life string) {
	f.Helper()
	read, err := f.peer().Leases(f.ctx, f.group)
	if err != nil {
		f.Fatalf("leases: %v", err)
	}
	for _, l := range read {
		if l.Partition == given.Partition && l.Presence == life && given.Presence == life {
			return
		}
	}
	f.Fatalf("given %+v, read %+v, want it to hang on %q", given, read, life)
}
