package consumer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// hub makes a hub whose id begins with its name, and then has its incarnation.
func hub(name string, partitions, incarnation int) Topic {
	t := Topic{Name: name, Partitions: int32(partitions)}
	copy(t.ID[:15], name)
	t.ID[15] = byte(incarnation)
	return t
}

// of are partitions of a hub in its first incarnation.
func of(name string, numbers ...int32) Set {
	var s []Partition
	for _, n := range numbers {
		s = append(s, Partition{hub(name, 0, 0).ID, n})
	}
	return SetOf(s)
}

// show is a set as text.
func show(s Set) string {
	var b strings.Builder
	for _, p := range s {
		fmt.Fprintf(&b, "%s/%d ", strings.TrimRight(string(p.Topic[:15]), "\x00"), p.Number)
	}
	return b.String()
}

// keysOf are the keys of a map.
func keysOf[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func TestSets(t *testing.T) {
	a, b := of("x", 3, 1, 2, 1), of("x", 2, 4).Or(of("y", 0))
	for what, c := range map[string]struct {
		got  Set
		want string
	}{
		"in order, each once": {a, "x/1 x/2 x/3 "},
		"without":             {a.Without(b), "x/1 x/3 "},
		"without nothing":     {a.Without(nil), "x/1 x/2 x/3 "},
		"and":                 {a.And(b), "x/2 "},
		"and nothing":         {a.And(nil), ""},
		"or":                  {a.Or(b), "x/1 x/2 x/3 x/4 y/0 "},
		"nothing or":          {Set(nil).Or(a), "x/1 x/2 x/3 "},
	} {
		testkit.Equal(t, show(c.got), c.want, what)
	}
	var topics []string
	for topic, numbers := range b.Topics() {
		topics = append(topics, fmt.Sprint(string(topic[:1]), numbers))
	}
	testkit.Slices(t, topics, []string{"x[2 4]", "y[0]"})
	testkit.That(t, of("x", 2).Within(a) && a.Within(a) && Set(nil).Within(nil), "parts are within")
	testkit.That(t, !a.Within(b), "others are not")
}
