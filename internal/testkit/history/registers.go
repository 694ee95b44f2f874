package history

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// Registers is a history of values under keys, which are changed by compare-and-set. No two changes of a
// history set the same value, so that a value names the change that made it; the empty one stands for a
// key that is not there. Its zero value is empty.
type Registers struct{ recorder }

// Outcome is what a client heard of a change.
type Outcome int

// A change that was refused for other reasons than another's change, and was not made, is not recorded:
// if it was made after all, its value is one that nobody has set.
const (
	Done     Outcome = iota
	Conflict         // another has changed the value before
	Unheard          // it may have been made, or be made later
)

func (o Outcome) String() string { return [...]string{"done", "conflict", "unheard"}[o] }

type registerCall struct {
	key, expects, value string
	read                bool
}

type registerAnswer struct {
	outcome  Outcome
	value    string // of a read
	revision int64
}

// Read records that a key had a value, of that revision, at some moment since begun.
func (r *Registers) Read(client int, begun Moment, key, value string, revision int64) {
	r.add(client, begun, r.Now(), registerCall{key: key, read: true}, registerAnswer{value: value, revision: revision})
}

// Change records a change since begun from the value that it expects to another, the empty one for a
// deletion. The revision is that of the new value, if the change was done and is no deletion.
func (r *Registers) Change(client int, begun Moment, key, expects, value string, outcome Outcome, revision int64) {
	ended := never
	if outcome != Unheard {
		ended = r.Now()
	}
	r.add(client, begun, ended, registerCall{key: key, expects: expects, value: value}, registerAnswer{outcome: outcome, revision: revision})
}

// Check gives an error where the registers were not linearizable, or a revision did not rise with a
// change.
func (r *Registers) Check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return check(registers, r.calls)
}

// register is the state of a key.
type register struct {
	value string
	// revision is the value's if that is known; else it is higher.
	revision int64
	known    bool
}

var registers = porcupine.Model{
	Partition: func(all []porcupine.Operation) (byKey [][]porcupine.Operation) {
		at := map[string]int{}
		for _, c := range all {
			key := c.Input.(registerCall).key
			i, ok := at[key]
			if !ok {
				i = len(byKey)
				at[key], byKey = i, append(byKey, nil)
			}
			byKey[i] = append(byKey[i], c)
		}
		return byKey
	},
	Init: func() any { return register{} },
	Step: func(state, input, output any) (bool, any) {
		return state.(register).step(input.(registerCall), output.(registerAnswer))
	},
	DescribeOperation: func(input, output any) string {
		c, a := input.(registerCall), output.(registerAnswer)
		if c.read {
			return fmt.Sprintf("read %s: %q of revision %d", c.key, a.value, a.revision)
		}
		return fmt.Sprintf("change %s from %q to %q: %v, revision %d", c.key, c.expects, c.value, a.outcome, a.revision)
	},
}

func (s register) step(c registerCall, a registerAnswer) (bool, register) {
	matches := s.value == c.expects
	switch {
	case c.read && a.value == "":
		return s.value == "", s
	case c.read:
		fits := s.known && a.revision == s.revision || !s.known && a.revision > s.revision
		return s.value == a.value && fits, register{s.value, a.revision, true}
	case a.outcome == Conflict || a.outcome == Unheard && !matches:
		return a.outcome == Unheard || !matches, s
	case a.outcome == Unheard || c.value == "":
		return matches, register{c.value, s.revision, false}
	default:
		return matches && a.revision > s.revision, register{c.value, a.revision, true}
	}
}
