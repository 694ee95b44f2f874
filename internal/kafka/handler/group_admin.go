package handler

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/groups"
)

// groupAdmin answers those who look at groups, or delete them.
type groupAdmin struct{ *peer }

// stateDead is how a group is described that there is not.
const stateDead = "Dead"

// describeGroups tells who is in groups. Who has no right to Listen to each hub that a group is about hears
// nothing of it.
//
// DescribeGroups (15), versions 0 to 6; from 6 on a group that there is not is an error (KIP-1043).
func (p groupAdmin) describeGroups(ctx context.Context, r *kmsg.DescribeGroupsRequest) kmsg.Response {
	answer := kmsg.NewPtrDescribeGroupsResponse()
	room := allowance(maxGroupAnswerBytes)
	for _, id := range distinct(r.Groups, maxAskedGroups) {
		one := kmsg.NewDescribeGroupsResponseGroup()
		one.Group, one.AuthorizedOperations = id, notAsked
		d, err := groups.Description{}, p.listens()
		if err == nil {
			d, err = p.handler.cfg.Groups.Describe(ctx, id)
		}
		if err == nil {
			err = p.mayAll(d, auth.Listen)
		}
		if err == nil && !p.describe(&one, d, &room) {
			err = groups.ErrBusy
		}
		switch {
		case errors.Is(err, groups.ErrNotFound) && r.Version < 6:
			one.State = stateDead
		case err != nil:
			one.ErrorCode, one.ErrorMessage = p.explain(ctx, "DescribeGroups", err)
			one.State, one.Members = stateDead, nil
		case r.IncludeAuthorizedOperations:
			one.AuthorizedOperations = p.groupOperations(d)
		}
		answer.Groups = append(answer.Groups, one)
	}
	return answer
}

// groupOperations is the set of what may be done to a group by who may hear of it.
func (p groupAdmin) groupOperations(d groups.Description) int32 {
	if p.mayAll(d, auth.Manage) == nil {
		return 1<<opRead | 1<<opDescribe | 1<<opDelete
	}
	return 1<<opRead | 1<<opDescribe
}

// describe fills in a group; false: there is no room for it.
func (p groupAdmin) describe(to *kmsg.DescribeGroupsResponseGroup, d groups.Description, room *allowance) bool {
	to.State, to.ProtocolType, to.Protocol = d.State, d.Type, d.Protocol
	for _, m := range d.Members {
		one := kmsg.NewDescribeGroupsResponseGroupMember()
		one.MemberID, one.InstanceID, one.ClientID, one.ClientHost = m.ID, textPointer(m.Instance), m.Client, m.Host
		one.ProtocolMetadata, one.MemberAssignment = m.Metadata, m.Assignment
		if !room.take(512 + len(m.Metadata) + len(m.Assignment)) {
			return false
		}
		to.Members = append(to.Members, one)
	}
	return true
}

// mayAll refuses who has not the right to each hub that a group is about: those that its members subscribe to,
// and those in which it has offsets.
func (p groupAdmin) mayAll(d groups.Description, need auth.Rights) error {
	r := p.rights()
	hubs := slices.Clone(d.Topics)
	for _, log := range d.Logs {
		if name := broker.HubOf(p.handler.cfg.Broker, log); name != "" {
			hubs = append(hubs, name)
		}
	}
	if len(hubs) == 0 && !r.anywhere(need) {
		return groups.ErrRights
	}
	for _, hub := range hubs {
		if !r.allow(hub, need) {
			return groups.ErrRights
		}
	}
	return nil
}

// listGroups tells which groups this node coordinates; clients ask each node. Those are left out that there is
// no right to be told of.
//
// ListGroups (16), versions 0 to 5: with a choice of states from 4 on, and of kinds from 5 on.
func (p groupAdmin) listGroups(ctx context.Context, r *kmsg.ListGroupsRequest) kmsg.Response {
	answer := kmsg.NewPtrListGroupsResponse()
	all, err := []groups.Description(nil), p.listens()
	if err == nil {
		all, err = p.knownGroups(ctx)
	}
	if err != nil {
		answer.ErrorCode = p.fail(ctx, "ListGroups", err)
		return answer
	}
	wanted := func(filter []string, value string) bool {
		return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, value) })
	}
	for _, d := range all {
		if !wanted(r.StatesFilter, d.State) || !wanted(r.TypesFilter, d.Kind) || p.mayAll(d, auth.Listen) != nil {
			continue
		}
		one := kmsg.NewListGroupsResponseGroup()
		one.Group, one.ProtocolType, one.GroupState, one.GroupType = d.ID, d.Type, d.State, d.Kind
		answer.Groups = append(answer.Groups, one)
	}
	return answer
}

// knownGroups are those of this node, which clients ask one after the other; where they know one broker, those of all.
func (p groupAdmin) knownGroups(ctx context.Context) ([]groups.Description, error) {
	if p.lent == nil && p.handler.cfg.Elsewhere != nil && len(p.nodes()) == 1 {
		return groups.Operator{Coordinator: p.handler.cfg.Groups}.All(ctx)
	}
	return p.handler.cfg.Groups.List(ctx)
}

// deleteGroups deletes groups that have no members, with their offsets.
//
// DeleteGroups (42), versions 0 to 2.
func (p groupAdmin) deleteGroups(ctx context.Context, r *kmsg.DeleteGroupsRequest) kmsg.Response {
	answer := kmsg.NewPtrDeleteGroupsResponse()
	for _, id := range distinct(r.Groups, maxAskedGroups) {
		one := kmsg.NewDeleteGroupsResponseGroup()
		one.Group = id
		if err := p.deleteGroup(ctx, id); err != nil {
			one.ErrorCode, one.ErrorMessage = p.explain(ctx, "DeleteGroups", err)
		}
		answer.Groups = append(answer.Groups, one)
	}
	return answer
}

func (p groupAdmin) deleteGroup(ctx context.Context, id string) error {
	if !p.rights().anywhere(auth.Manage) {
		return groups.ErrRights
	}
	return p.handler.cfg.Groups.Delete(ctx, id, func(logs []string) error {
		return p.mayAll(groups.Description{Logs: logs}, auth.Manage)
	})
}
