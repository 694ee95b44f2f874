package eventhubs

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/auth"
)

func grant(path string, rights auth.Rights, life time.Duration) auth.Grant {
	g := auth.Grant{Scopes: []auth.Scope{{Path: path, Rights: rights}}}
	if life != 0 {
		g.Expires = time.Now().Add(life)
	}
	return g
}

// endings remembers when guards were told to end, from the test's beginning.
type endings struct {
	began time.Time
	mu    sync.Mutex
	at    map[string]time.Duration
}

func newEndings() *endings { return &endings{began: time.Now(), at: map[string]time.Duration{}} }

func (e *endings) guard(path string, need auth.Rights) *guard {
	return &guard{path: path, need: need, expire: func(time.Time) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.at[path] = time.Since(e.began)
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
	must(t, r.add(grant("orders", auth.Send, time.Hour)))
	must(t, r.add(grant("orders/consumergroups/g", auth.Listen, time.Hour)))
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
		if got := r.allow(tt.path, tt.need); got != tt.want {
			t.Errorf("%s to %q is %v", tt.need, tt.path, got)
		}
	}
}

// H9: links end with their token, a little later, unless it is renewed.
func TestLinksEndWithTheirRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rights
		defer r.stop()
		e := newEndings()
		must(t, r.add(grant("a", auth.Send, time.Minute)))
		must(t, r.add(grant("b", auth.Send, 2*time.Minute)))
		must(t, r.add(grant("c", auth.Send, 0)))
		for _, path := range []string{"a", "b", "c", "a/closed"} {
			g := e.guard(path, auth.Send)
			r.watch(g)
			if path == "a/closed" {
				r.unwatch(g)
			}
		}
		time.Sleep(90 * time.Second)
		must(t, r.add(grant("b", auth.Send, 5*time.Minute)))
		time.Sleep(time.Hour)
		e.want(t, "a", time.Minute+grace)
		e.want(t, "b", 90*time.Second+5*time.Minute+grace)
		e.none(t, "c")
		e.none(t, "a/closed")
		if r.allow("a", auth.Send) {
			t.Error("an expired grant is good")
		}
	})
}

// A token that is renewed within the grace saves its links.
func TestRenewalWithinTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rights
		defer r.stop()
		e := newEndings()
		must(t, r.add(grant("a", auth.Listen, time.Minute)))
		r.watch(e.guard("a", auth.Listen))
		time.Sleep(time.Minute + grace - time.Second)
		must(t, r.add(grant("a", auth.Listen, time.Minute)))
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
		must(t, r.add(grant("a", auth.Listen, time.Hour)))
		must(t, r.add(grant("a", auth.Listen, time.Minute)))
		time.Sleep(2 * time.Minute)
		if !r.allow("a", auth.Listen) {
			t.Error("the longer token is forgotten")
		}
		must(t, r.add(grant("a", auth.Listen, 0)))
		must(t, r.add(grant("a", auth.Listen, time.Minute)))
		time.Sleep(2 * time.Hour)
		if !r.allow("a", auth.Listen) {
			t.Error("the endless grant is forgotten")
		}
	})
}

// A guard whose right was lost between the question and the watching is not forgotten.
func TestALinkWithoutRightsIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rights
		defer r.stop()
		e := newEndings()
		r.watch(e.guard("a", auth.Listen))
		time.Sleep(time.Minute)
		e.want(t, "a", grace)
	})
}

// A client cannot have us remember tokens without end.
func TestGrantsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rights
		for i := range maxGrants {
			must(t, r.add(grant(fmt.Sprintf("hub/%d", i), auth.Send, time.Minute)))
		}
		if err := r.add(grant("one/more", auth.Send, time.Minute)); !errors.Is(err, errTooManyGrants) {
			t.Errorf("one more grant is %v", err)
		}
		must(t, r.add(grant("hub/7", auth.Send, time.Hour))) // a renewal is no more
		time.Sleep(time.Minute + grace)
		must(t, r.add(grant("one/more", auth.Send, time.Minute)))
		if !r.allow("hub/7", auth.Send) || len(r.grants) != 2 {
			t.Errorf("%d grants are left", len(r.grants))
		}
	})
}

// After stop no link is ended any more, whatever was due.
func TestStopWaitsForTheSweep(t *testing.T) {
	for range 50 {
		var r rights
		var ended sync.WaitGroup
		ended.Add(1)
		must(t, r.add(auth.Grant{Scopes: []auth.Scope{{Path: "a", Rights: auth.Send}}, Expires: time.Now().Add(-grace)}))
		stopped := false
		var mu sync.Mutex
		r.watch(&guard{path: "a", need: auth.Send, expire: func(time.Time) {
			mu.Lock()
			defer mu.Unlock()
			if stopped {
				t.Error("a link was ended after stop")
			}
		}})
		r.stop()
		mu.Lock()
		stopped = true
		mu.Unlock()
	}
}
