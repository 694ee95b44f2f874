package metatest

import (
	"context"
	"errors"
	"sync"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// LateNode is a store of one of several processes that share a Memory, and as late as the contract
// lets it be: it reads entries as they were when it last had to know. Of what others have changed it
// sees only what conflicted with its own changes, until Fresh. It is for tests.
type LateNode struct {
	*Memory
	broken bool // Fresh does nothing; for the tests of the suite itself

	mu    sync.Mutex
	known *Memory // guarded by mu: what it reads
}

// NewLateNode makes one over a store, which knows no entry yet.
func NewLateNode(s *Memory) *LateNode {
	return &LateNode{Memory: s, known: NewMemory()}
}

// Get reads what the node knows.
func (n *LateNode) Get(ctx context.Context, key string) (meta.Entry, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known.Get(ctx, key)
}

// List reads what the node knows.
func (n *LateNode) List(ctx context.Context, prefix string) ([]meta.Entry, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known.List(ctx, prefix)
}

// Fresh lets the node know all.
func (n *LateNode) Fresh(ctx context.Context, prefix string) error {
	if err := n.Memory.Fresh(ctx, prefix); err != nil || n.broken {
		return err
	}
	n.learn(func(string) bool { return true })
	return nil
}

// CompareAndSet lets the node know the key.
func (n *LateNode) CompareAndSet(ctx context.Context, key string, expected meta.Revision, value []byte) (meta.Revision, error) {
	revision, err := n.Memory.CompareAndSet(ctx, key, expected, value)
	if err == nil || errors.Is(err, meta.ErrConflict) {
		n.learn(func(k string) bool { return k == key })
	}
	return revision, err
}

// Delete lets the node know the key.
func (n *LateNode) Delete(ctx context.Context, key string, expected meta.Revision) error {
	err := n.Memory.Delete(ctx, key, expected)
	if err == nil || errors.Is(err, meta.ErrConflict) {
		n.learn(func(k string) bool { return k == key })
	}
	return err
}

func (n *LateNode) learn(which func(key string) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Memory.mu.Lock()
	defer n.Memory.mu.Unlock()
	for key, c := range n.Memory.entries {
		if which(key) {
			n.known.entries[key] = c
		}
	}
}
