package cluster_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/testkit"
)

// versioned makes a node of a version.
func (y *yard) versioned(t *testing.T, id, version string, f cluster.Formats) *cluster.Nodes {
	t.Helper()
	return testkit.Value(cluster.New(cluster.Config{
		Store: y.entries, Wire: y.network, ID: id, Version: version, Formats: f, Log: testkit.Quiet(),
	}))(t)
}

// C8: nodes whose programs do not understand each other do not share a yard, and the one that starts
// says which is to be upgraded.
func TestVersionsThatDoNotGoTogether(t *testing.T) {
	for _, tt := range []struct {
		name        string
		there, here cluster.Formats
		says        string // empty: it joins
	}{
		{name: "neither says anything"},
		{name: "the same", there: cluster.Formats{Writes: 2, Knows: 2}, here: cluster.Formats{Writes: 2, Knows: 2}},
		{name: "the first upgrade", there: cluster.Formats{}, here: cluster.Formats{Writes: 1, Knows: 2}},
		{name: "the second upgrade", there: cluster.Formats{Writes: 1, Knows: 2}, here: cluster.Formats{Writes: 2, Knows: 2}},
		{name: "back from it beside the new one", there: cluster.Formats{Writes: 2, Knows: 2}, here: cluster.Formats{Writes: 1, Knows: 2}},
		{name: "both upgrades in one", there: cluster.Formats{}, here: cluster.Formats{Writes: 2, Knows: 2}, says: "node there (version 1.0) knows forms up to 1: upgrade that node first"},
		{name: "too old", there: cluster.Formats{Writes: 3, Knows: 3}, here: cluster.Formats{Writes: 2, Knows: 2}, says: "start version 1.0 or later"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard()
				there := y.versioned(t, "there", "1.0", tt.there)
				testkit.Must(t, there.Join(t.Context()))
				testkit.Run(t, there.Run)
				here := y.versioned(t, "here", "2.0", tt.here)
				err := here.Join(t.Context())
				time.Sleep(3 * cluster.LookInterval)
				if tt.says == "" {
					testkit.Must(t, err)
					wantLive(t, there, "here", "there")
					testkit.Run(t, here.Run)
					return
				}
				testkit.ErrorIs(t, err, cluster.ErrVersions)
				testkit.That(t, strings.Contains(err.Error(), tt.says), "it says %v", err)
				wantLive(t, there, "there")
			})
		})
	}
}

// C8: a node that has died, and whose entry is still there, keeps nobody out.
func TestADeadNodeOfAnotherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		testkit.Must(t, y.versioned(t, "old", "1.0", cluster.Formats{}).Join(t.Context())) // and it is heard of no more
		y.network.Inject(func(context.Context, cluster.Request) error { return cluster.ErrNoNode }, nil)
		here := y.versioned(t, "here", "2.0", cluster.Formats{Writes: 2, Knows: 2})
		testkit.Must(t, here.Join(t.Context()))
		testkit.Run(t, here.Run)
	})
}

// C8: what newer nodes have written keeps older programs out also when none of them runs.
func TestAnOlderProgramOnNewerContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		start := func(id, version string, f cluster.Formats) error {
			n := y.versioned(t, id, version, f)
			err := n.Join(t.Context())
			if err == nil {
				testkit.Run(t, n.Run)()
			}
			return err
		}
		testkit.Must(t, start("a", "1.0", cluster.Formats{}))
		testkit.Equal(t, len(testkit.Value(y.entries.List(t.Context(), ""))(t)), 0, "entries that nodes of the first form leave")
		testkit.Must(t, start("a", "2.0", cluster.Formats{Writes: 2, Knows: 3}))
		testkit.Must(t, start("b", "2.1", cluster.Formats{Writes: 1, Knows: 2}))
		err := start("a", "1.0", cluster.Formats{})
		testkit.ErrorIs(t, err, cluster.ErrVersions)
		testkit.That(t, strings.Contains(err.Error(), "start version 2.0 or later"), "it says %v", err)
		testkit.Must(t, start("a", "3.0", cluster.Formats{Writes: 3, Knows: 3}))
		testkit.ErrorIs(t, start("b", "2.1", cluster.Formats{Writes: 1, Knows: 2}), cluster.ErrVersions)
	})
}

// C8: of two nodes that start at once and do not go together not both stay.
func TestVersionsThatStartAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		results := make(chan error, 2)
		for id, f := range map[string]cluster.Formats{"old": {}, "new": {Writes: 2, Knows: 2}} {
			n := y.versioned(t, id, id, f)
			go func() { results <- n.Join(t.Context()) }()
		}
		first, second := <-results, <-results
		testkit.That(t, first != nil || second != nil, "both have joined")
	})
}
