// Package metatest is the other half of the contract in package meta: a suite that every store must
// pass unchanged, be it a file on this machine or a replicated bucket elsewhere. It tests what the
// contract promises and nothing more: where a store has a choice (to coalesce, to answer from
// memory after the context ended), every choice passes.
package metatest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// patience turns a hang into a failure; no test waits for it when all is well.
const patience = 30 * time.Second

// test is one promise of the contract.
type test struct {
	name string
	run  func(t *testing.T, store meta.Store)
}

// Run tests the contract. Open gives an empty store each time and arranges for its
// closing by t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) meta.Store) {
	for _, group := range [][]test{setTests(), deleteTests(), readTests(), raceTests(), watchTests(), endTests()} {
		for _, test := range group {
			t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
		}
	}
}

// mustSet changes a key and gives its new revision.
func mustSet(t *testing.T, s meta.Store, key string, expected meta.Revision, value string) meta.Revision {
	t.Helper()
	revision, err := s.CompareAndSet(t.Context(), key, expected, []byte(value))
	if err != nil {
		t.Fatalf("set %q at revision %d: %v", key, expected, err)
	}
	if revision <= expected {
		t.Fatalf("set %q at revision %d: new revision %d is not higher", key, expected, revision)
	}
	return revision
}

func mustDelete(t *testing.T, s meta.Store, key string, expected meta.Revision) {
	t.Helper()
	if err := s.Delete(t.Context(), key, expected); err != nil {
		t.Fatalf("delete %q at revision %d: %v", key, expected, err)
	}
}

func mustGet(t *testing.T, s meta.Store, key string) meta.Entry {
	t.Helper()
	entry, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("get %q: %v", key, err)
	}
	return entry
}

func mustList(t *testing.T, s meta.Store, prefix string) []meta.Entry {
	t.Helper()
	entries, err := s.List(t.Context(), prefix)
	if err != nil {
		t.Fatalf("list %q: %v", prefix, err)
	}
	return entries
}

// wantEntry checks that a key is exactly as it was last acknowledged.
func wantEntry(t *testing.T, s meta.Store, key, value string, revision meta.Revision) {
	t.Helper()
	entry := mustGet(t, s, key)
	if entry.Key != key || !bytes.Equal(entry.Value, []byte(value)) || entry.Revision != revision {
		t.Errorf("get %q gave %q = %q at revision %d, want %q at %d",
			key, entry.Key, entry.Value, entry.Revision, value, revision)
	}
}

func wantMissing(t *testing.T, s meta.Store, key string) {
	t.Helper()
	if entry, err := s.Get(t.Context(), key); !errors.Is(err, meta.ErrNotFound) {
		t.Errorf("get %q gave revision %d, %v, want ErrNotFound", key, entry.Revision, err)
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

// impatient is the test's context with an end that only a hang reaches.
func impatient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
