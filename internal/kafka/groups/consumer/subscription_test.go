package consumer

import (
	"runtime"
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

// K6: what an expression would cost is known before that is spent.
func TestExpressionsAreBoundedBeforeTheyAreCompiled(t *testing.T) {
	for _, expression := range []string{strings.Repeat("(....){1000}", 84), "((((a{9}){9}){9})b{9,}){9}c"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := compile(expression)
		runtime.ReadMemStats(&after)
		testkit.ErrorIs(t, err, ErrExpression)
		spent := after.TotalAlloc - before.TotalAlloc
		testkit.That(t, spent < 4<<20, "%d bytes were used for %d", spent, len(expression))
	}
	for _, expression := range []string{"orders-.*", "(a|b){2,5}[0-9]{1,9}", "x{1000}"} {
		testkit.Must(t, testkit.Err(compile(expression)))
	}
}

func TestMembersThatWantTheSameShareIt(t *testing.T) { // K6
	w := newWorld(t, hub("orders", 1, 0))
	w.say(join("a", "orders", "bills"))
	w.say(join("b", "bills", "orders"))
	testkit.Equal(t, w.g.Member("a").Subscription, w.g.Member("b").Subscription)
}
