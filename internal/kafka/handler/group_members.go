package handler

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/kafka/groups"
	"github.com/eventyard/eventyard/internal/kafka/groups/classic"
	"github.com/eventyard/eventyard/internal/kafka/groups/member"
)

// groupMember answers those who are in groups, or want to be.
type groupMember struct {
	*peer
	client string // what it calls itself
	// hurried has a value when the memory of what is asked is needed by others (kafka.Writer.Hurried).
	hurried <-chan struct{}
}

// joinGroup has a client be in a group. The answer waits for the others, and holds up this connection only:
// clients have one for their group alone.
//
// JoinGroup (11), versions 0 to 9: rebalance time-outs from 1 on, ids for new members first from 4 on (KIP-394),
// static members from 5 on (KIP-345), assignments that stay as they are from 9 on (KIP-814).
func (p groupMember) joinGroup(ctx context.Context, r *kmsg.JoinGroupRequest) kmsg.Response {
	ctx, stop := p.whileThereIsRoom(ctx)
	defer stop()
	join := classic.Join{
		Member: r.MemberID, NewID: member.NewID(p.client), Instance: textOf(r.InstanceID), Client: p.client, Host: p.host(),
		Session:   time.Duration(r.SessionTimeoutMillis) * time.Millisecond,
		Rebalance: time.Duration(r.RebalanceTimeoutMillis) * time.Millisecond,
		Type:      r.ProtocolType, TwoSteps: r.Version >= 4, Skips: r.Version >= 9,
	}
	if r.Version == 0 {
		join.Rebalance = join.Session
	}
	// What the group keeps must not keep the request's body in memory, nor must the body stay while this waits.
	for _, protocol := range r.Protocols {
		join.Protocols = append(join.Protocols, classic.Protocol{Name: protocol.Name, Metadata: bytes.Clone(protocol.Metadata)})
	}
	r.Protocols = nil
	var joined classic.Joined
	err := p.listens()
	if err == nil {
		joined, err = p.handler.cfg.Groups.Join(ctx, r.Group, join, p.may(auth.Listen))
	}
	answer := kmsg.NewPtrJoinGroupResponse()
	answer.Generation, answer.MemberID, answer.LeaderID = joined.Generation, joined.Member, joined.Leader
	answer.SkipAssignment = joined.Skip
	if err != nil {
		answer.ErrorCode, answer.Generation = p.fail(ctx, "JoinGroup", err), -1
		if joined.Member == "" {
			answer.MemberID = r.MemberID
		}
		return answer
	}
	answer.ProtocolType, answer.Protocol = &joined.Type, &joined.Protocol
	for _, m := range joined.Members {
		one := kmsg.NewJoinGroupResponseMember()
		one.MemberID, one.InstanceID, one.ProtocolMetadata = m.ID, textPointer(m.Instance), m.Metadata
		answer.Members = append(answer.Members, one)
	}
	return answer
}

// syncGroup gives a member its assignment. The answer waits for the leader.
//
// SyncGroup (14), versions 0 to 5.
func (p groupMember) syncGroup(ctx context.Context, r *kmsg.SyncGroupRequest) kmsg.Response {
	ctx, stop := p.whileThereIsRoom(ctx)
	defer stop()
	sync := classic.Sync{
		Member: r.MemberID, Instance: textOf(r.InstanceID), Generation: r.Generation, Type: textOf(r.ProtocolType), Protocol: textOf(r.Protocol),
	}
	var synced classic.Synced
	err := p.listens()
	if err == nil {
		sync.Assignments, err = assignments(r.GroupAssignment)
		r.GroupAssignment = nil // with it the request's body, while this waits
	}
	if err == nil {
		synced, err = p.handler.cfg.Groups.Sync(ctx, r.Group, sync, p.may(auth.Listen))
	}
	answer := kmsg.NewPtrSyncGroupResponse()
	answer.MemberAssignment = []byte{}
	if err != nil {
		answer.ErrorCode = p.fail(ctx, "SyncGroup", err)
		return answer
	}
	answer.ProtocolType, answer.Protocol = &synced.Type, &synced.Protocol
	if synced.Assignment != nil {
		answer.MemberAssignment = synced.Assignment
	}
	return answer
}

// assignments are those that a leader gives, by member, as copies: they are kept for longer than the request's body. More
// than any group can store is refused here, since whether it comes from the leader is known only later.
func assignments(all []kmsg.SyncGroupRequestGroupAssignment) (map[string][]byte, error) {
	given, size := make(map[string][]byte), 0
	for _, a := range all {
		if size += len(a.MemberID) + len(a.MemberAssignment); size > member.MaxBytes || len(given) >= member.MaxMembers {
			return nil, fmt.Errorf("%w: the assignments are too large to be stored", member.ErrTooMany)
		}
		given[a.MemberID] = bytes.Clone(a.MemberAssignment)
	}
	return given, nil
}

// heartbeat notes that a member is there, and tells it whether it has to join again.
//
// Heartbeat (12), versions 0 to 4.
func (p groupMember) heartbeat(ctx context.Context, r *kmsg.HeartbeatRequest) kmsg.Response {
	answer := kmsg.NewPtrHeartbeatResponse()
	err := p.listens()
	if err == nil {
		err = p.handler.cfg.Groups.Heartbeat(ctx, r.Group, r.MemberID, textOf(r.InstanceID), r.Generation, p.may(auth.Listen))
	}
	if err != nil {
		answer.ErrorCode = p.fail(ctx, "Heartbeat", err)
	}
	return answer
}

// leaveGroup takes members out of a group: the one that asks or, by an operator, static ones.
//
// LeaveGroup (13), versions 0 to 5; from 3 on for several at once.
func (p groupMember) leaveGroup(ctx context.Context, r *kmsg.LeaveGroupRequest) kmsg.Response {
	answer := kmsg.NewPtrLeaveGroupResponse()
	asked := r.Members
	if r.Version < 3 {
		asked = []kmsg.LeaveGroupRequestMember{{MemberID: r.MemberID}}
	}
	leaving := make([]classic.Leaver, 0, len(asked))
	for _, m := range asked {
		leaving = append(leaving, classic.Leaver{Member: m.MemberID, Instance: textOf(m.InstanceID)})
	}
	var each []error
	err := p.listens()
	if err == nil && len(leaving) > member.MaxMembers {
		err = errInvalid
	}
	if err == nil {
		each, err = p.handler.cfg.Groups.Leave(ctx, r.Group, leaving, p.may(auth.Listen))
	}
	if err != nil {
		answer.ErrorCode = p.fail(ctx, "LeaveGroup", err)
		return answer
	}
	for i, err := range each {
		one := kmsg.NewLeaveGroupResponseMember()
		one.MemberID, one.InstanceID = asked[i].MemberID, asked[i].InstanceID
		if err != nil {
			one.ErrorCode = p.fail(ctx, "LeaveGroup", err)
		}
		answer.Members = append(answer.Members, one)
	}
	if r.Version < 3 {
		answer.ErrorCode, answer.Members = answer.Members[0].ErrorCode, nil
	}
	return answer
}

// listens refuses those who may listen to no hub at all. Which hubs a group concerns is looked at later.
func (p *peer) listens() error {
	if p.rights().anywhere(auth.Listen) {
		return nil
	}
	return groups.ErrRights
}

// may judges a right to hubs as it is now.
func (p *peer) may(need auth.Rights) func(hub string) bool {
	r := p.rights()
	return func(hub string) bool { return r.allow(hub, need) }
}

// whileThereIsRoom gives a context for who waits for the others of a group. It ends with the connection, when no more
// requests are taken, and when memory is scarce: the client is told to find its coordinator again, and asks anew.
func (p groupMember) whileThereIsRoom(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	if p.conn == nil { // its own node sees to it
		return ctx, cancel
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel()
		select {
		case <-p.conn.Draining():
		case <-p.hurried:
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel()
		watching.Wait()
	}
}

// host is where the client comes from, as Kafka shows it.
func (p *peer) host() string {
	if p.lent != nil {
		return p.from
	}
	host, _, err := net.SplitHostPort(p.conn.RemoteAddr().String())
	if err != nil {
		host = p.conn.RemoteAddr().String()
	}
	return "/" + host
}

// textOf is a text that may be missing, and textPointer one that is missing where it is empty.
func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func textPointer(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
