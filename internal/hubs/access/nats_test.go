package access

import (
	"slices"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/jetstream/entries"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta/looks"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C3, C4: over a real server, too, a policy is good at another node as soon as it is made, and a key
// that was made anew, or a policy that was deleted, ends there.
func TestPoliciesBetweenNodesOverNATS(t *testing.T) {
	servers, yard := natstest.Shared(t, 1), natstest.Yard()
	var nodes []*Registry
	for range 2 {
		store := testkit.Value(entries.New(servers.Dial(t, 0), entries.Config{Yard: yard, Replicas: servers.Replicas, Buckets: 2, Log: testkit.Quiet()}))(t)
		testkit.Run(t, store.Run)
		testkit.Must(t, store.Load(t.Context()))
		k := open(t, Config{Meta: store, Looks: looks.New(store)})
		testkit.Run(t, k.Run)
		nodes = append(nodes, k)
	}
	ctx, a, b := t.Context(), nodes[0], nodes[1]
	var took []time.Duration
	ends := func(g auth.Grant, what string) {
		began := time.Now()
		testkit.Eventually(t, what, func() bool { return !g.Stands() })
		took = append(took, time.Since(began))
	}
	for range 4 { // each looks four times, and twenty may be looked for at once
		p := mustCreate(t, a, "", "p", auth.Send)
		g := testkit.Value(b.Key(ctx, "p", p.Primary))(t)
		renewed := testkit.Value(a.Regenerate(ctx, "", "p", PrimaryKey))(t)
		ends(g, "the key that was made anew ends")
		testkit.ErrorIs(t, testkit.Err(b.Key(ctx, "p", p.Primary)), auth.ErrSignature, "the old key")
		g = testkit.Value(b.Token(ctx, sign("sb://ns/", renewed), ""))(t)
		testkit.Must(t, a.Delete(ctx, "", "p"))
		ends(g, "the deleted policy ends")
		testkit.ErrorIs(t, testkit.Err(b.Key(ctx, "p", renewed.Primary)), auth.ErrSignature, "the deleted policy")
	}
	slices.Sort(took)
	t.Logf("what ended at one node ended at the other after %v (median), %v at most", took[len(took)/2], took[len(took)-1])
}
