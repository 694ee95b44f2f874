package functions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/processor"
)

// NoPoison, as Binding.Poison, drops events that have used up their retries, and counts them.
const NoPoison = "none"

// Binding says what a function is called for, and how. Only Hub is required.
type Binding struct {
	// Hub is the hub whose events are handled, Group the consumer group; empty: $Default. A group
	// is for one function: two that share one would each get a part of the events.
	Hub, Group string
	// Start is where a partition without a checkpoint begins; nil: with the oldest event.
	Start func(partition string) hub.Position

	// MaxBatch is the most events of a call; 0: 100. MinBatch are waited for, MaxWait at most; 0: 1
	// (whatever there is), and 1 s.
	MaxBatch, MinBatch int
	MaxWait            time.Duration
	// Prefetch is how many events the hub sends ahead; 0: 300, and at least MaxBatch.
	Prefetch int
	// Lanes makes so many calls at once for each partition, events of one key always in order;
	// events without a key are dealt out in turn. 0: one call, everything in order.
	Lanes int
	// Timeout of a call, within Each of each event; 0: 60 s. A call whose time is up has failed,
	// whatever it returns. It is waited for all the same, since no event is handled twice at once:
	// a call that ignores its context blocks its partition.
	Timeout time.Duration

	// Retry is what follows a failed call; zero: five retries, the first after 250 ms, doubling.
	// None() tries once.
	Retry Retry
	// Poison is the hub for events that used up their retries, in the same namespace; empty:
	// NAME-poison, with the function's name. It has to exist. In a yard's hub each is stored
	// exactly once. NoPoison drops and counts them.
	Poison string
	// PoisonTo is another target for them: Topic, Hub (also for hubs that take no producers'
	// numbers, as a yard's do), or one of your own.
	PoisonTo Sink
	// Breaker is when to stop, for all instances; zero: on more than 100 failures in 30 s.
	Breaker Breaker

	// Checkpoints says when what is done is written down; zero: after each batch. Auto makes no
	// difference here.
	Checkpoints processor.Checkpoints
	// Target is how many waiting events are worth one instance, for Status.Recommended; 0:
	// MaxBatch.
	Target int
	// Middleware is put around the handler, the first outermost.
	Middleware []Middleware
}

func (b Binding) withDefaults(name string) Binding {
	b.Group = or(b.Group, "$Default")
	b.MaxBatch = or(b.MaxBatch, 100)
	b.Timeout = or(b.Timeout, time.Minute)
	b.Target = or(b.Target, b.MaxBatch)
	b.Retry = b.Retry.withDefaults()
	if b.Retry.Retries < 0 {
		b.Breaker.Attempts = true
	}
	if b.PoisonTo == nil {
		b.Poison = or(b.Poison, name+"-poison")
	}
	b.Checkpoints.Auto = false // a batch is done when its circuit is closed, too, which the processor cannot know
	return b
}

// validate is asked with the defaults filled in. What the processor finds wrong it says itself.
func (b Binding) validate() error {
	switch {
	case b.Hub == "":
		return errors.New("Hub is empty: name the hub whose events it handles")
	case b.MaxBatch < 0 || b.Prefetch < 0 || b.Lanes < 0 || b.Target < 0:
		return errors.New("MaxBatch, Prefetch, Lanes and Target are not below zero")
	case b.Timeout < 0:
		return fmt.Errorf("Timeout is %v, below zero", b.Timeout)
	case b.Poison != "" && b.PoisonTo != nil:
		return fmt.Errorf("both Poison %q and PoisonTo are set: choose one", b.Poison)
	case strings.EqualFold(b.Poison, b.Hub):
		return fmt.Errorf("Poison is the function's own hub %s, so that it would get its poison again: choose another", b.Hub)
	case slices.ContainsFunc(b.Middleware, func(m Middleware) bool { return m == nil }):
		return errors.New("Middleware has a nil")
	}
	return errors.Join(b.Retry.validate(), b.Breaker.validate())
}

const maxName = 100

// checkName tells whether a function may be called so. Names are parts of keys, ids, hubs and
// paths, where one or two dots mean something else.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || len(name) > maxName || strings.ContainsFunc(name, notInName) {
		return fmt.Errorf("function %q: names are 1 to %d letters, digits, '-', '_' and '.', but neither . nor .. alone", name, maxName)
	}
	return nil
}

func notInName(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_', r == '.':
		return false
	}
	return true
}

func or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}
