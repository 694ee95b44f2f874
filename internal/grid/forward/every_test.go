package forward

import (
	"context"
	"errors"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// between carries requests between the nodes of a test.
type between struct {
	handlers map[string]func(context.Context, []byte) ([]byte, error) // by node
	as       string                                                   // who handles
}

func (b *between) Ask(ctx context.Context, node, _ string, body []byte) ([]byte, error) {
	handle := b.handlers[node]
	if handle == nil {
		return nil, ErrNoNode
	}
	return handle(ctx, body)
}

func (b *between) Handle(_ string, h func(context.Context, []byte) ([]byte, error)) {
	b.handlers[b.as] = h
}

// C4: all nodes are asked, each judges the caller for itself, and one that does not answer is named.
func TestEveryNodeIsAsked(t *testing.T) {
	wire := &between{handlers: map[string]func(context.Context, []byte) ([]byte, error){}}
	refused := errors.New("refused")
	var asked *Every[int, string]
	for _, name := range []string{"a", "b", "c", "d"} {
		wire.as = name
		e := NewEvery(EveryConfig{
			Nodes: wire, Self: name, Live: func() []string { return []string{"a", "b", "c", "d", "gone"} },
			Grant: func(context.Context) []byte { return []byte(`"shown"`) },
			Allow: func(_ context.Context, grant []byte, subject, subscription string) error {
				testkit.That(t, string(grant) == `"shown"` && subject == "all" && subscription == "", "asked by %s for %s of %s", grant, subject, subscription)
				if name == "c" {
					return refused
				}
				return nil
			},
		}, "all", func(_ context.Context, n int) (string, error) { return name + name[:n], nil })
		if name == "a" {
			asked = e
		}
	}
	answers, unanswered, err := asked.Ask(t.Context(), 1)
	testkit.Must(t, err)
	testkit.Deep(t, answers, map[string]string{"a": "aa", "b": "bb", "d": "dd"})
	testkit.Slices(t, unanswered, []string{"c", "gone"})
	alone := NewEvery(EveryConfig{Self: "a"}, "all", func(_ context.Context, n int) (int, error) { return n, nil })
	numbers, unanswered, err := alone.Ask(t.Context(), 7)
	testkit.Must(t, err)
	testkit.That(t, numbers["a"] == 7 && len(unanswered) == 0, "one node alone gives %v", numbers)
}
