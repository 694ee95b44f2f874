package consumer

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// matching is a join by expression.
func matching(member, expression string) Heartbeat {
	h := join(member)
	h.Names, h.Expression = nil, &expression
	return h
}

func TestAnExpressionStandsForWholeNames(t *testing.T) { // K2
	w := newWorld(t, hub("orders", 1, 0), hub("orders-eu", 1, 0), hub("reorders", 1, 0), hub("bills", 1, 0))
	assigned(t, w.say(matching("a", "orders(-.*)?|b")), 1, of("orders", 0).Or(of("orders-eu", 0)))
	testkit.Equal(t, w.g.Member("a").Subscription.Expression, "orders(-.*)?|b")
	assigned(t, w.say(matching("b", `\Qbills`)), 2, of("bills", 0))
	h := matching("c", "none.*") // names are had besides
	h.Names = []string{"reorders"}
	assigned(t, w.say(h), 3, of("reorders", 0))
}

func TestAnExpressionIsResolvedAgainWhenAsked(t *testing.T) { // K2
	w := newWorld(t, hub("orders", 1, 0))
	w.say(matching("a", "orders.*"))
	w.c["orders-eu"] = hub("orders-eu", 1, 0)
	testkit.Equal(t, w.g.Refresh(w.c), w.g, "whether a member may read it is seen when it is there")
	unassigned(t, w.say(beat("a", 1)), 1)
	h := beat("a", 1)
	h.Resolve = true
	assigned(t, w.say(h), 2, of("orders", 0).Or(of("orders-eu", 0)))
	none := ""
	h.Epoch, h.Resolve, h.Expression = 2, false, &none
	assigned(t, w.say(h), 2, nil)
}

func TestExpressionsThatAreNoneOrCostTooMuchAreRefused(t *testing.T) { // K6
	w := newWorld(t, hub("orders", 1, 0))
	for _, expression := range []string{"(", "a)|(b", "[", strings.Repeat("x", maxExpression+1), strings.Repeat("(ab){500}", 30), "\xff"} {
		w.refused(matching("a", expression), ErrExpression)
	}
}

func TestMembersThatWantTheSameShareIt(t *testing.T) { // K6
	w := newWorld(t, hub("orders", 1, 0))
	w.say(join("a", "orders", "bills"))
	w.say(join("b", "bills", "orders"))
	testkit.Equal(t, w.g.Member("a").Subscription, w.g.Member("b").Subscription)
}
