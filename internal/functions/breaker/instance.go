package breaker

import (
	"errors"
	"reflect"
)

// How a change is refused that an instance must not make.
var (
	errHeld    = errors.New("an operator holds the circuit, and only an operator changes it")
	errHolds   = errors.New("only an operator holds a circuit")
	errResumes = errors.New("only an operator resumes an open circuit, or a probe where its policy has one")
	errTerm    = errors.New("a change raises the term by one and keeps the incident")
)

// ByInstance judges a change of the record that an instance makes: it may write what Decide, Probed
// and Returned give, and Decided of a closed one, but not what Hold and Resume do. It gives the
// instance in whose name the change is, if it matters who makes it: that which tries, or has tried,
// an event.
func ByInstance(before, after Record) (instance string, err error) {
	again := after
	again.Policy = before.Policy
	switch from, to := before.State, after.State; {
	case from == HalfOpen && reflect.DeepEqual(again, before): // the prober shows that it lives
		return before.Prober, nil
	case before.Closed() && after.Closed() && before.decides(after):
		return "", nil
	case from == Held:
		return "", errHeld
	case to == Held:
		return "", errHolds
	case after.Term != before.Term+1, !before.Closed() && !after.Closed() && before.Incident != after.Incident:
		return "", errTerm
	case before.Closed() && to == Open:
		return "", nil
	case from == Open && to == HalfOpen:
		if _, probes := before.Policy.ProbeWait(before); !probes {
			return "", errResumes
		}
		return after.Prober, nil
	case from == HalfOpen && to == HalfOpen:
		return after.Prober, nil
	case from == HalfOpen: // Closed or Open
		return before.Prober, nil
	}
	return "", errResumes
}

// decides tells whether a closed record that replaces another differs only in what was decided on
// put-aways.
func (r Record) decides(after Record) bool {
	after.State, after.Decided, after.Policy = r.State, r.Decided, r.Policy
	return reflect.DeepEqual(after, r)
}
