package access

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/bolt"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// The store that most tests here use keeps the contract too.
func TestMemStoreIsAStore(t *testing.T) {
	metatest.Run(t, func(*testing.T) meta.Store { return metatest.NewMemory() })
}

// With real files all is there after a restart, and what was deleted is not.
func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "meta.db")
	hub := newHubs("a/B").find
	start := func() (*Registry, func()) {
		store := testkit.Value(bolt.Open(bolt.Config{Path: path, Log: testkit.Quiet()}))(t)
		return open(t, Config{Meta: store, Hub: hub}), func() {
			testkit.Check(t, store.Close())
		}
	}
	k, stop := start()
	mustCreate(t, k, "", "gone", auth.Send)
	mustCreate(t, k, "a/b", "Both", auth.Send|auth.Listen)
	testkit.Must(t, k.Delete(t.Context(), "", "gone"))
	root, _ := k.Policies("")
	own, _ := k.Policies("A/B")
	stop()
	k, stop = start()
	defer stop()
	if got, _ := k.Policies(""); !reflect.DeepEqual(got, root) || k.Created() {
		t.Errorf("got %+v, was %+v", got, root)
	}
	if got, _ := k.Policies("a/b"); !reflect.DeepEqual(got, own) || len(own) != 1 {
		t.Errorf("got %+v, was %+v", got, own)
	}
}

// What the store holds is of one form; anything else is refused with its key, and
// without its secrets.
func TestDecodeRefuses(t *testing.T) {
	const good = `{"name":"P","rights":["Send"],"primary":"HUSH1","secondary":"HUSH2","created":"2026-01-01T00:00:00Z"}`
	testkit.Must(t, testkit.Err(decode(meta.Entry{Key: "policies/namespace/p", Value: []byte(good)})))
	tests := []struct{ what, key, value string }{
		{"no JSON", "policies/namespace/p", "HUSH1"},
		{"another name", "policies/namespace/q", good},
		{"another level", "policies/hubs/h/0/p", good},
		{"an unknown right", "policies/namespace/p", strings.Replace(good, "Send", "Fly", 1)},
		{"no right", "policies/namespace/p", strings.Replace(good, `"Send"`, "", 1)},
		{"no primary key", "policies/namespace/p", strings.Replace(good, "HUSH1", "", 1)},
		{"no secondary key", "policies/namespace/p", strings.Replace(good, "HUSH2", "", 1)},
		{"a hub without its time", "policies/hubs/h/1/p", strings.Replace(good, "{", `{"hub":"h",`, 1)},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			_, err := decode(meta.Entry{Key: tt.key, Value: []byte(tt.value)})
			if err == nil || !strings.Contains(err.Error(), tt.key) || strings.Contains(err.Error(), "HUSH") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A policy is the same after it was stored.
func TestStoredFormIsStable(t *testing.T) {
	r := record{
		Policy: Policy{Hub: "a/B", Name: "P", Rights: auth.Send | auth.Listen, Primary: "x", Secondary: "y", Created: time.UnixMilli(1).UTC()},
		level:  level{hub: "a/b", created: time.UnixMilli(1700000000123).UTC()},
	}
	testkit.Equal(t, r.key(), "policies/hubs/a%2Fb/1700000000123/p", "key")
	want := `{"name":"P","hub":"a/B","hubCreated":"2023-11-14T22:13:20.123Z","rights":["Send","Listen"],"primary":"x","secondary":"y","created":"1970-01-01T00:00:00.001Z"}`
	testkit.Equal(t, string(r.encode()), want, "value")
	testkit.Equal(t, testkit.Value(decode(meta.Entry{Key: r.key(), Value: r.encode()}))(t), r, "came back as")
}
