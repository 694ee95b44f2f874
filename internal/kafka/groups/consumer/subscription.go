package consumer

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
)

// Catalog is the hubs that there are when something happens to a group.
type Catalog interface {
	// Topic finds a hub by a name, as clients write it.
	Topic(name string) (Topic, bool)
	// Match gives the names that an expression matches, of those hubs that the caller may read.
	Match(*regexp.Regexp) []string
}

// Subscription is what a member wants to read. It is never changed in place: members that want the same
// may share one.
type Subscription struct {
	// Names are in order, each once.
	Names []string
	// Expression is empty where there is none; Matched are the names that it stood for when it was resolved,
	// in order.
	Expression string
	Matched    []string
}

func (s *Subscription) equal(other *Subscription) bool {
	return s.Expression == other.Expression && slices.Equal(s.Names, other.Names) && slices.Equal(s.Matched, other.Matched)
}

// subscribe gives what a member wants after a heartbeat, and the same where that is as before.
func subscribe(before *Subscription, h Heartbeat, c Catalog) (*Subscription, error) {
	next := *before
	if h.Names != nil {
		next.Names = inOrder(h.Names)
	}
	if h.Expression != nil {
		next.Expression = *h.Expression
	}
	if h.Resolve || next.Expression != before.Expression {
		next.Matched = nil
		if next.Expression != "" {
			expression, err := compile(next.Expression)
			if err != nil {
				return nil, err
			}
			next.Matched = inOrder(c.Match(expression))
		}
	}
	if next.equal(before) {
		return before, nil
	}
	return &next, nil
}

func inOrder(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// maxInstructions bounds what one name costs to match: repetitions make much of a short expression.
const maxInstructions = 4000

// compile reads an expression, which has to match whole names. Kafka's is RE2, and so is Go's.
func compile(expression string) (*regexp.Regexp, error) {
	if len(expression) > maxExpression {
		return nil, fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrExpression, len(expression), maxExpression)
	}
	parsed, err := syntax.Parse(expression, syntax.Perl) // by itself: "a)|(b" would be good inside of ours, and \Q would hide it
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExpression, err)
	}
	tooCostly := fmt.Errorf("%w: it is too costly to match, because of its repetitions", ErrExpression)
	if instructions(parsed) > maxInstructions { // to write the repetitions out is what costs
		return nil, tooCostly
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExpression, err)
	}
	if n := len(program.Inst); n > maxInstructions {
		return nil, tooCostly
	}
	whole, err := regexp.Compile(`\A(?:` + parsed.String() + `)\z`)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExpression, err)
	}
	return whole, nil
}

// instructions is about how many an expression is compiled to, at least: more than maxInstructions where it would be
// many more.
func instructions(e *syntax.Regexp) int {
	n := 1
	if e.Op == syntax.OpLiteral {
		n = len(e.Rune)
	}
	for _, sub := range e.Sub {
		n = min(n+instructions(sub), maxInstructions+1)
	}
	if e.Op == syntax.OpRepeat {
		n *= max(e.Min, e.Max, 1) // Max is negative where there is none
	}
	return min(n, maxInstructions+1)
}

// topics are the hubs that a subscription means, by id.
func (s *Subscription) topics(c Catalog) []Topic {
	var found []Topic
	for _, names := range [][]string{s.Names, s.Matched} {
		for _, name := range names {
			if t, ok := c.Topic(name); ok {
				found = append(found, t)
			}
		}
	}
	return distinct(found)
}

func distinct(topics []Topic) []Topic {
	slices.SortFunc(topics, func(a, b Topic) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return slices.CompactFunc(topics, func(a, b Topic) bool { return a.ID == b.ID })
}
