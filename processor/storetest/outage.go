package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/eventyard/eventyard/processor"
)

// Calls are one of each call of a store that can be watched, as the owner of a lease, for tests in
// which its server is down or its answers are lost.
func Calls(s processor.Store, g processor.Group, l processor.Lease, c processor.Checkpoint, f processor.Entry) map[string]func(context.Context) error {
	return map[string]func(ctx context.Context) error{
		"Leases":      func(ctx context.Context) error { _, err := s.Leases(ctx, g); return err },
		"Claim":       func(ctx context.Context) error { _, err := s.Claim(ctx, g, []processor.Lease{l}); return err },
		"Checkpoints": func(ctx context.Context) error { _, err := s.Checkpoints(ctx, g); return err },
		"Begin":       func(ctx context.Context) error { _, err := s.Begin(ctx, g, l); return err },
		"Save":        func(ctx context.Context) error { _, err := s.Save(ctx, g, l, c); return err },
		"Force":       func(ctx context.Context) error { _, err := s.Force(ctx, g, c); return err },
		"Entries":     func(ctx context.Context) error { _, err := s.Entries(ctx, g, ""); return err },
		"Put":         func(ctx context.Context) error { _, err := s.Put(ctx, g, f); return err },
		"Remove":      func(ctx context.Context) error { return s.Remove(ctx, g, f) },
		"Watch": func(ctx context.Context) error {
			return s.(processor.Watcher).Watch(ctx, g, func() {}, make(chan struct{}))
		},
	}
}

// WantUnknown wants the error of a call of which nothing is known: neither success nor conflict.
func WantUnknown(t *testing.T, name string, err error) {
	t.Helper()
	if err == nil || errors.Is(err, processor.ErrConflict) || errors.Is(err, processor.ErrFenced) {
		t.Errorf("%s: %v", name, err)
	}
}

// Records is a text of all records of a group: another one after each write.
func Records(t *testing.T, s processor.Store, g processor.Group) string {
	t.Helper()
	leases, err := s.Leases(t.Context(), g)
	all, err2 := s.Checkpoints(t.Context(), g)
	entries, err3 := s.Entries(t.Context(), g, "")
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(leases, all, entries)
}

// WatchThroughCuts wants a watch to go on when its connection is cut, and to report a change then,
// since some may have been missed.
func WatchThroughCuts(t *testing.T, s processor.Store, g processor.Group, cut func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, changed, ended := make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.(processor.Watcher).Watch(ctx, g, func() { close(ready) }, changed); ctx.Err() == nil {
			t.Errorf("the watch ended: %v", err)
		}
	}()
	<-ready
	entry := processor.Entry{Key: "next/0"}
	for i := range 3 {
		cut()
		<-changed // it listens again
		var err error
		entry.Value = []byte{byte(i)}
		if entry, err = s.Put(ctx, g, entry); err != nil {
			t.Fatal(err)
		}
		<-changed
	}
	cancel()
	<-ended
}
