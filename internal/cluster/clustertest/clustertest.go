// Package clustertest helps to test what several nodes do together: a network between them in
// memory, which loses and delays what a test says, under a fake clock too.
package clustertest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Network is a cluster.Wire that all nodes of a test share. The zero Network works.
type Network struct {
	mu     sync.Mutex
	served map[cluster.Node]*serving                          // guarded by mu
	before func(ctx context.Context, r cluster.Request) error // guarded by mu
	after  func(ctx context.Context, r cluster.Request) error // guarded by mu
}

type serving struct {
	handler cluster.Handler
	ctx     context.Context // ends when serving stops
	stop    context.CancelFunc
	running sync.WaitGroup
}

// Inject sets what happens to a request on its way, and to an answer on its way back: each function
// may wait, and an error of it is what the asker gets instead. Nil lets everything pass.
func (w *Network) Inject(before, after func(ctx context.Context, r cluster.Request) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before, w.after = before, after
}

// Lose is for Inject: what is lost is waited for until the asker gives up.
func Lose(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// Ask asks a node; see cluster.Wire.
func (w *Network) Ask(ctx context.Context, r cluster.Request) ([]byte, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		panic("a request without a deadline")
	}
	w.mu.Lock()
	before, after := w.before, w.after
	w.mu.Unlock()
	if before != nil {
		if err := before(ctx, r); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	s := w.served[r.To]
	if s == nil {
		w.mu.Unlock()
		return nil, fmt.Errorf("%s: %w", r.To, cluster.ErrNoNode)
	}
	s.running.Add(1)
	w.mu.Unlock()
	answer, err := s.answer(ctx, r)
	if err == nil && after != nil {
		err = after(ctx, r)
	}
	return answer, err
}

// answer runs the handler, which goes on when the asker has given up.
func (s *serving) answer(ctx context.Context, r cluster.Request) ([]byte, error) {
	type outcome struct {
		answer []byte
		err    error
	}
	r.Body = bytes.Clone(r.Body)
	done := make(chan outcome, 1)
	go func() {
		defer s.running.Done()
		answer, err := s.handler(s.ctx, r)
		done <- outcome{answer, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return nil, &cluster.RemoteError{Node: r.To, Subject: r.Subject, Text: o.err.Error()}
		}
		return o.answer, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Serve answers requests to a node; see cluster.Wire.
func (w *Network) Serve(self cluster.Node, handler cluster.Handler) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &serving{handler: handler, ctx: ctx, stop: cancel}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.served == nil {
		w.served = make(map[cluster.Node]*serving)
	}
	w.served[self] = s
	return func() {
		w.mu.Lock()
		delete(w.served, self)
		w.mu.Unlock()
		s.stop()
		s.running.Wait()
	}, nil
}

// Join makes a node that runs until the test ends, or until leave is called.
func Join(t testing.TB, wire cluster.Wire, store meta.Store, id string) (nodes *cluster.Nodes, leave func()) {
	t.Helper()
	nodes = testkit.Value(cluster.New(cluster.Config{Store: store, Wire: wire, ID: id, Log: testkit.Quiet()}))(t)
	testkit.Must(t, nodes.Join(t.Context()))
	return nodes, testkit.Run(t, nodes.Run)
}
