package eventhubs

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// always is the view of a yard in which no policy ever changes.
func always(auth.Scope) bool { return true }

func grant(path string, rights auth.Rights, life time.Duration) auth.Grant {
	g := auth.Grant{Scopes: []auth.Scope{{Path: path, Rights: rights}}}.While(always)
	if life != 0 {
		g.Expires = time.Now().Add(life)
	}
	return g
}

// endings remembers when guards were told to end, from the test's beginning, and why.
type endings struct {
	began time.Time
	mu    sync.Mutex
	at    map[string]time.Duration
	why   map[string]error
}

func newEndings() *endings {
	return &endings{began: time.Now(), at: map[string]time.Duration{}, why: map[string]error{}}
}

func (e *endings) guard(path string, need auth.Rights) *guard {
	return &guard{entity: auth.EntityOf(path), need: need, end: func(why error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.at[path], e.why[path] = time.Since(e.began), why
	}}
}

func (e *endings) want(t *testing.T, path string, want time.Duration) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if at, ended := e.at[path]; !ended || at != want {
		t.Errorf("%s ended after %v (%v), want %v", path, at, ended, want)
	}
}

func (e *endings) none(t *testing.T, path string) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if at, ended := e.at[path]; ended {
		t.Errorf("%s ended after %v", path, at)
	}
}

// H9: a right reaches what is beneath its path, and no more than was granted.
func TestRightsReachWhatIsBeneath(t *testing.T) {
	var r rights
	testkit.Must(t, r.add(grant("orders", auth.Send, time.Hour)))
	testkit.Must(t, r.add(grant("orders/consumergroups/g", auth.Listen, time.Hour)))
	tests := []struct {
		path string
		need auth.Rights
		want bool
	}{
		{"orders", auth.Send, true},
		{"orders/partitions/0", auth.Send, true},
		{"orders", auth.Listen, false},
		{"orders2", auth.Send, false},
		{"", auth.Send, false},
		{"orders/consumergroups/g/partitions/0", auth.Listen, true},
		{"orders/consumergroups/h/partitions/0", auth.Listen, false},
		{"orders/$management", 0, true},
		{"other/$management", 0, false},
		{"orders", auth.Manage, false},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s to %q", tt.need, tt.path), func(t *testing.T) {
			testkit.Equal(t, r.allow(auth.EntityOf(tt.path), tt.need), tt.want)
		})
	}
}

// H9: links end with their token, a little later, unless it is renewed.
func TestLinksEndWithTheirRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rights
		defer r.stop()
		e := newEndings()
		testkit.Must(t, r.add(grant("a", auth.Send, time.Minute)))
		testkit.Must(t, r.add(grant("b", auth.Send, 2*time.Minute)))
		testkit.Must(t, r.add(grant("c", auth.Send, 0)))
		for _, path := range []string{"a", "b", "c", "a/partitions/0"} {
			g := e.guard(path, auth.Send)
			testkit.Equal(t, r.watch(g), true, "%s is refused", path)
			if path == "a/partitions/0" {
				r.unwatch(g)
			}
		}
		time.Sleep(90 * time.Second)
		testkit.Must(t, r.add(grant("b", auth.Send, 5*time.Minute)))
		time.Sleep(time.Hour)
		e.want(t, "a", time.Minute+grace)
		if why, ok := errors.AsType[*auth.ExpiredError](e.why["a"]); !ok || !why.At.Equal(e.began.Add(time.Minute)) {
			t.Errorf("it ended because of %v", e.why["a"])
		}
		e.want(t, "b", 90*time.Second+5*time.Minute+grace)
		e.none(t, "c")
		e.none(t, "a/partitions/0")
		testkit.Equal(t, r.allow(auth.At("a"), auth.Send), false, "an expired grant is good")
	})
}

// A token that is renewed within the grace saves its links.
func TestRenewalWithinTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rights
		defer r.stop()
		e := newEndings()
		testkit.Must(t, r.add(grant("a", auth.Listen, time.Minute)))
		r.watch(e.guard("a", auth.Listen))
		time.Sleep(time.Minute + grace - time.Second)
		testkit.Must(t, r.add(grant("a", auth.Listen, time.Minute)))
		time.Sleep(30 * time.Second)
		synctest.Wait()
		e.none(t, "a")
	})
}

// A later token that ends sooner takes nothing away: both were good.
func TestAShorterTokenTakesNothingAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rights
		defer r.stop()
		testkit.Must(t, r.add(grant("a", auth.Listen, time.Hour)))
		testkit.Must(t, r.add(grant("a", auth.Listen, time.Minute)))
		time.Sleep(2 * time.Minute)
		testkit.Equal(t, r.allow(auth.At("a"), auth.Listen), true, "the longer token is forgotten")
		testkit.Must(t, r.add(grant("a", auth.Listen, 0)))
		testkit.Must(t, r.add(grant("a", auth.Listen, time.Minute)))
		time.Sleep(2 * time.Hour)
		testkit.Equal(t, r.allow(auth.At("a"), auth.Listen), true, "the endless grant is forgotten")
	})
}

// A guard whose right was lost between the question and the watching is refused.
func TestALinkWithoutRightsIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rights
		defer r.stop()
		testkit.Must(t, r.add(grant("a", auth.Listen, time.Minute)))
		time.Sleep(time.Minute)
		if r.watch(newEndings().guard("a", auth.Listen)) || len(r.guards) != 0 {
			t.Error("it is watched")
		}
	})
}

// view is one of policies that can be taken back.
type view struct {
	mu   sync.Mutex
	gone map[string]bool // guarded by mu
}

func (v *view) revoke(policies ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range policies {
		v.gone[p] = true
	}
}

func (v *view) stands(s auth.Scope) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return !v.gone[s.Basis.Policy]
}

// grant is one with a scope for each policy named, all of the same path.
func (v *view) grant(path string, rights auth.Rights, policies ...string) auth.Grant {
	var g auth.Grant
	for _, p := range policies {
		g.Scopes = append(g.Scopes, auth.Scope{Path: path, Rights: rights, Basis: auth.Basis{Policy: p}})
	}
	return g.While(v.stands)
}

// H9: links end at once when what they stand on is taken back, unless something else carries them.
func TestLinksEndWhenRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rights
		defer r.stop()
		v, e := &view{gone: map[string]bool{}}, newEndings()
		testkit.Must(t, r.add(v.grant("a", auth.Send, "one")))
		testkit.Must(t, r.add(v.grant("b", auth.Send, "one", "two")))
		testkit.Must(t, r.add(v.grant("c", auth.Send, "one")))
		testkit.Must(t, r.add(v.grant("c", auth.Send, "three")))
		for _, path := range []string{"a", "a/partitions/0", "b", "c"} {
			testkit.Equal(t, r.watch(e.guard(path, auth.Send)), true, "%s is refused", path)
		}
		r.review()
		time.Sleep(time.Hour)
		e.none(t, "a")
		v.revoke("one")
		r.review()
		synctest.Wait()
		e.want(t, "a", time.Hour)
		e.want(t, "a/partitions/0", time.Hour)
		e.none(t, "b")
		e.none(t, "c")
		if !errors.Is(e.why["a"], auth.ErrRevoked) || r.allow(auth.At("a"), auth.Send) || len(r.grants) != 2 {
			t.Errorf("ended because of %v, with %d grants left", e.why["a"], len(r.grants))
		}
		v.revoke("two", "three")
		r.review()
		synctest.Wait()
		e.want(t, "b", time.Hour)
		e.want(t, "c", time.Hour)
		testkit.Equal(t, len(r.grants)+len(r.guards), 0, "%d grants and %d links are left", len(r.grants), len(r.guards))
	})
}

// A link that an endless grant carried is told of the end of the next best.
func TestRevokedLinksFallBackOnTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rights
		defer r.stop()
		v, e := &view{gone: map[string]bool{}}, newEndings()
		testkit.Must(t, r.add(v.grant("a", auth.Send, "key")))
		testkit.Must(t, r.add(grant("a", auth.Send, time.Minute)))
		r.watch(e.guard("a", auth.Send))
		v.revoke("key")
		r.review()
		time.Sleep(time.Hour)
		e.want(t, "a", time.Minute+grace)
	})
}

// Many take back, put, attach and leave at once; nobody is left with a link and no right.
func TestRevocationStorm(t *testing.T) {
	var r rights
	v := &view{gone: map[string]bool{}}
	var open sync.Map
	var all sync.WaitGroup
	for i := range 50 {
		policy := fmt.Sprint("p", i)
		all.Go(func() {
			testkit.Must(t, r.add(v.grant("a/"+policy, auth.Send, policy)))
			g := &guard{entity: auth.At("a/" + policy), need: auth.Send, end: func(error) { open.Delete(policy) }}
			open.Store(policy, true)
			if !r.watch(g) {
				open.Delete(policy)
			}
		})
		all.Go(func() {
			v.revoke(policy)
			r.review()
		})
	}
	all.Wait()
	r.stop()
	open.Range(func(policy, _ any) bool {
		t.Errorf("the link of %v is open", policy)
		return true
	})
}

// H9: a connection is not kept for one who shows nothing.
func TestVigil(t *testing.T) {
	const patience = time.Minute
	tests := []struct {
		what string
		do   func(r *rights, v *view)
		want time.Duration // zero: never
	}{
		{"nothing is put", func(*rights, *view) {}, patience},
		{"a key was shown", func(r *rights, v *view) { _ = r.add(v.grant("a", auth.Send, "p")) }, 0},
		{"a token is put in time, and ends", func(r *rights, _ *view) {
			time.Sleep(patience - 1)
			_ = r.add(grant("a", auth.Send, time.Hour))
		}, patience - 1 + time.Hour + patience},
		{"a token is put too late", func(r *rights, _ *view) {
			time.Sleep(patience + 1)
			_ = r.add(grant("a", auth.Send, time.Hour))
		}, patience},
		{"a token is renewed", func(r *rights, _ *view) {
			for range 10 {
				_ = r.add(grant("a", auth.Send, time.Hour))
				time.Sleep(59 * time.Minute)
			}
		}, 9*59*time.Minute + time.Hour + patience},
		{"the key is taken back", func(r *rights, v *view) {
			_ = r.add(v.grant("a", auth.Send, "p"))
			time.Sleep(time.Hour)
			v.revoke("p")
			r.review()
		}, time.Hour + patience},
		{"the key is taken back, and a token is put", func(r *rights, v *view) {
			_ = r.add(v.grant("a", auth.Send, "p"))
			time.Sleep(time.Hour)
			v.revoke("p")
			r.review()
			_ = r.add(v.grant("a", auth.Send, "q"))
		}, 0},
		{"the connection ends", func(r *rights, _ *view) { r.stop() }, 0},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r rights
				defer r.stop()
				began, ended := time.Now(), time.Duration(0)
				r.await(patience, func() { ended = time.Since(began) })
				tt.do(&r, &view{gone: map[string]bool{}})
				time.Sleep(100 * time.Hour)
				synctest.Wait()
				testkit.Equal(t, ended, tt.want, "given up after")
			})
		})
	}
}

// A client cannot have us remember tokens without end.
func TestGrantsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rights
		for i := range maxGrants {
			testkit.Must(t, r.add(grant(fmt.Sprintf("hub/%d", i), auth.Send, time.Minute)))
		}
		testkit.ErrorIs(t, r.add(grant("one/more", auth.Send, time.Minute)), errTooManyGrants, "one more grant is")
		testkit.Must(t, r.add(grant("hub/7", auth.Send, time.Hour))) // a renewal is no more
		time.Sleep(time.Minute + grace)
		testkit.Must(t, r.add(grant("one/more", auth.Send, time.Minute)))
		testkit.Equal(t, r.allow(auth.At("hub/7"), auth.Send), true)
		testkit.Equal(t, len(r.grants), 2)
	})
}

// After stop no link is ended any more, whatever was due.
func TestStopWaitsForTheSweep(t *testing.T) {
	for range 50 {
		var r rights
		var stopped atomic.Bool
		v := &view{gone: map[string]bool{}}
		watch := func(hub string) *guard {
			g := &guard{entity: auth.At(hub), need: auth.Send, end: func(error) {
				testkit.Equal(t, stopped.Load(), false, "a link was ended after stop")
			}}
			testkit.MustEqual(t, r.watch(g), true, "it is not watched")
			return g
		}
		testkit.Must(t, r.add(v.grant("a", auth.Send, "p")))
		testkit.Must(t, r.add(v.grant("b", auth.Send, "q")))
		watch("a")
		late := watch("b")
		r.mu.Lock()
		r.grants, late.until = r.grants[:1], time.Now().Add(-grace)
		r.armLocked()
		r.mu.Unlock()
		v.revoke("p")
		r.review()
		r.stop()
		stopped.Store(true)
		r.review()
	}
}
