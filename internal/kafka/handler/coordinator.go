package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Kinds of coordinators, as clients ask for them.
const (
	coordinatorGroup       = 0
	coordinatorTransaction = 1
)

// findCoordinator says which node coordinates a group: none yet, which clients ask again about.
//
// FindCoordinator (10), versions 0 to 6; from 4 on for several at once.
func (p *peer) findCoordinator(r *kmsg.FindCoordinatorRequest) kmsg.Response {
	answer := kmsg.NewPtrFindCoordinatorResponse()
	keys := r.CoordinatorKeys
	if r.Version < 4 {
		keys = []string{r.CoordinatorKey}
	}
	for _, key := range keys {
		one := kmsg.NewFindCoordinatorResponseCoordinator()
		one.Key, one.NodeID, one.Port = key, -1, -1
		one.ErrorCode, one.ErrorMessage = p.noCoordinator(r.CoordinatorType)
		answer.Coordinators = append(answer.Coordinators, one)
	}
	if r.Version < 4 {
		one := answer.Coordinators[0]
		answer.NodeID, answer.Host, answer.Port = one.NodeID, one.Host, one.Port
		answer.ErrorCode, answer.ErrorMessage, answer.Coordinators = one.ErrorCode, one.ErrorMessage, nil
	}
	return answer
}

func (p *peer) noCoordinator(kind int8) (code int16, text *string) {
	switch kind {
	case coordinatorGroup:
		return codeNoCoordinator, kmsg.StringPtr("consumer groups are not there yet: assign partitions yourself, and keep offsets")
	case coordinatorTransaction:
		return codeClusterRights, kmsg.StringPtr(errTransactions.Error())
	}
	return codeInvalidRequest, kmsg.StringPtr("there are no coordinators of this kind")
}
