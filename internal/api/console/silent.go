package console

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// othersTime is how long a page waits for other nodes, in all that it asks for: less than figuresTime, so
// that it is still shown in time what the others have said, and which node has said nothing.
const othersTime = 200 * time.Millisecond

// silent are the nodes that have not answered in time what a page asked of all.
type silent struct {
	mu    sync.Mutex
	nodes map[string]bool // guarded by mu
}

// add takes note of what an answer says is missing.
func (s *silent) add(nodes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range nodes {
		if s.nodes == nil {
			s.nodes = map[string]bool{}
		}
		s.nodes[n] = true
	}
}

// sentence names them; empty: all have answered.
func (s *silent) sentence() string {
	s.mu.Lock()
	names := slices.Sorted(maps.Keys(s.nodes))
	s.mu.Unlock()
	switch last := len(names) - 1; last {
	case -1:
		return ""
	case 0:
		return "Node " + names[0] + " does not answer. What it has counted is missing here."
	default:
		return "Nodes " + strings.Join(names[:last], ", ") + " and " + names[last] + " do not answer. What they have counted is missing here."
	}
}

// begin is when a page begins to ask: other nodes are waited for from now on, and none is known to be silent.
func (v *visit) begin() { v.until, v.silent = time.Now().Add(othersTime), &silent{} }

// late tells that the time of a first answer is over: what else there is to know the stream brings.
func (v *visit) late() bool {
	return v.sight == nil && !v.until.IsZero() && time.Now().After(v.until.Add(v.console.figuresTime-othersTime))
}
