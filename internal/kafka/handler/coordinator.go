package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Kinds of coordinators, as clients ask for them.
const (
	coordinatorGroup       = 0
	coordinatorTransaction = 1
)

// findCoordinator says which node coordinates a group, or a transaction: any node could do that, and it is well done
// by one.
//
// FindCoordinator (10), versions 0 to 6; from 4 on for several at once.
func (p *peer) findCoordinator(r *kmsg.FindCoordinatorRequest) kmsg.Response {
	answer := kmsg.NewPtrFindCoordinatorResponse()
	keys := distinct(r.CoordinatorKeys, maxFoundGroups)
	if r.Version < 4 {
		keys = []string{r.CoordinatorKey}
	}
	nodes := p.nodes()
	for _, key := range keys {
		one := kmsg.NewFindCoordinatorResponseCoordinator()
		one.Key, one.NodeID, one.Port = key, -1, -1
		switch r.CoordinatorType {
		case coordinatorGroup, coordinatorTransaction:
			n := p.coordinator(nodes, key)
			one.NodeID, one.Host, one.Port = n.ID, n.Host, n.Port
		default:
			one.ErrorCode, one.ErrorMessage = codeInvalidRequest, kmsg.StringPtr("there are no coordinators of this kind")
		}
		answer.Coordinators = append(answer.Coordinators, one)
	}
	if r.Version < 4 {
		one := answer.Coordinators[0]
		answer.NodeID, answer.Host, answer.Port = one.NodeID, one.Host, one.Port
		answer.ErrorCode, answer.ErrorMessage, answer.Coordinators = one.ErrorCode, one.ErrorMessage, nil
	}
	return answer
}

// distinct gives the first names, at most so many, without those that were named before: what is named twice is told of
// once.
func distinct(names []string, most int) []string {
	seen := make(map[string]bool)
	var once []string
	for _, name := range names {
		if len(once) == most {
			break
		}
		if !seen[name] {
			seen[name] = true
			once = append(once, name)
		}
	}
	return once
}
