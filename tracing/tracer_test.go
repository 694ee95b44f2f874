package tracing_test

import (
	"net/http"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/tracing"
)

// One of several traces is the parent, and each other is linked to once.
func TestGatheringTraces(t *testing.T) {
	one := tracing.Parse(parent, "")
	other := one
	other.SpanID[0]++
	var g tracing.Gathering
	for _, c := range []tracing.Context{{}, one, other, one, {}, other} {
		g.Add(c)
	}
	testkit.Equal(t, g.Parent, one)
	testkit.Slices(t, g.Links, []tracing.Context{other})
	for i := range 2 * tracing.MaxLinks {
		other.SpanID[1], other.SpanID[2] = byte(i), byte(i>>8)
		g.Add(other)
	}
	testkit.Equal(t, len(g.Links), tracing.MaxLinks, "links")
}

// V6: carrying nothing, and making no spans, costs no memory.
func TestNothingCostsNothing(t *testing.T) {
	ctx, properties, header := t.Context(), map[string]any{"a": 1}, http.Header{"Accept": {"*/*"}}
	allocations := testing.AllocsPerRun(100, func() {
		var g tracing.Gathering
		g.Add(tracing.OfProperties(properties))
		g.Add(tracing.OfHeader(header))
		g.Add(tracing.Of(ctx))
		if within, span := g.Begin(tracing.With(ctx, g.Parent), nil, tracing.Beginning{}); within != ctx || span != nil {
			t.Error("there is a span")
		}
	})
	testkit.Equal(t, allocations, 0, "allocations")
}

func BenchmarkOff(b *testing.B) {
	properties, header := map[string]any{"a": 1}, http.Header{"Accept": {"*/*"}}
	b.ReportAllocs()
	for b.Loop() {
		var g tracing.Gathering
		g.Add(tracing.OfProperties(properties))
		g.Add(tracing.OfHeader(header))
		g.Begin(b.Context(), nil, tracing.Beginning{})
	}
}
