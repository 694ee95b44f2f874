package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/caller"
)

// Where one broker stands for several nodes, a client reaches any of them, and cannot turn to the one that its group
// belongs to. The node that it has reached asks that one then, and gives its answer back: with the request goes what the
// client has shown, which is judged there as it would be by its own listener. There is never a second hop.

// Elsewhere asks the node that a group belongs to, and gives what Forwarded has answered there. It may be called by many
// goroutines at once. After an error the request may have been done, or not.
type Elsewhere func(ctx context.Context, group string, body []byte) ([]byte, error)

const (
	// maxForwardedWaits is how many requests of this node's clients wait elsewhere for the others of their groups. Each
	// takes one of the places that a node has for requests of others.
	maxForwardedWaits = 64
	// maxWaitsHere is how many requests of other nodes wait here so: half of all places, however many nodes ask. The others
	// stay for what is answered at once, such as the heartbeats of those who wait.
	maxWaitsHere = 128
	// forwardTime is how long another node may take, and forwardWait where the members of a group wait for each other.
	forwardTime = 20 * time.Second
	forwardWait = 4 * time.Minute
)

// forwarded is what goes before the request that is passed on, on a line of its own.
type forwarded struct {
	// Shown is the client's grant; absent: nobody is asked who he is.
	Shown   json.RawMessage `json:"shown,omitempty"`
	Client  string          `json:"client"`
	Host    string          `json:"host"`
	Key     int16           `json:"key"`
	Version int16           `json:"version"`
}

// forwarder answers those whose group belongs to a node that they cannot reach.
type forwarder struct{ *peer }

// outOfReach: clients of this connection know one broker, and the group belongs to another node.
func (p forwarder) outOfReach(group string) bool {
	cfg := p.handler.cfg
	return p.lent == nil && cfg.Elsewhere != nil && cfg.Coordinator != nil && !cfg.Coordinator(group).Self && len(p.nodes()) == 1
}

// elsewhere has requests about groups answered by the nodes that these belong to; nil: it is for this node to answer.
// Requests about several groups are divided.
func (p forwarder) elsewhere(ctx context.Context, m groupMember, request kmsg.Request) kmsg.Response {
	if p.lent != nil || p.handler.cfg.Elsewhere == nil {
		return nil
	}
	switch r := request.(type) {
	case *kmsg.JoinGroupRequest:
		return p.forward(ctx, m, r.Group, r, true)
	case *kmsg.SyncGroupRequest:
		return p.forward(ctx, m, r.Group, r, true)
	case *kmsg.HeartbeatRequest:
		return p.forward(ctx, m, r.Group, r, false)
	case *kmsg.LeaveGroupRequest:
		return p.forward(ctx, m, r.Group, r, false)
	case *kmsg.ConsumerGroupHeartbeatRequest:
		return p.forward(ctx, m, r.Group, r, false)
	case *kmsg.OffsetCommitRequest:
		return p.forward(ctx, m, r.Group, r, false)
	case *kmsg.TxnOffsetCommitRequest:
		return p.forward(ctx, m, r.Group, r, false)
	case *kmsg.OffsetDeleteRequest:
		return p.forward(ctx, m, r.Group, r, false)
	case *kmsg.OffsetFetchRequest:
		return p.fetchElsewhere(ctx, m, r)
	case *kmsg.DescribeGroupsRequest:
		if len(r.Groups) == 1 {
			return p.forward(ctx, m, r.Groups[0], r, false)
		}
		all := kmsg.NewPtrDescribeGroupsResponse()
		for _, id := range distinct(r.Groups, maxAskedGroups) {
			one := *r
			one.Groups = []string{id}
			all.Groups = append(all.Groups, p.answerGroup(ctx, m, &one).(*kmsg.DescribeGroupsResponse).Groups...)
		}
		return all
	case *kmsg.ConsumerGroupDescribeRequest:
		if len(r.Groups) == 1 {
			return p.forward(ctx, m, r.Groups[0], r, false)
		}
		all := kmsg.NewPtrConsumerGroupDescribeResponse()
		for _, id := range distinct(r.Groups, maxAskedGroups) {
			one := *r
			one.Groups = []string{id}
			all.Groups = append(all.Groups, p.answerGroup(ctx, m, &one).(*kmsg.ConsumerGroupDescribeResponse).Groups...)
		}
		return all
	case *kmsg.DeleteGroupsRequest:
		if len(r.Groups) == 1 {
			return p.forward(ctx, m, r.Groups[0], r, false)
		}
		all := kmsg.NewPtrDeleteGroupsResponse()
		for _, id := range distinct(r.Groups, maxAskedGroups) {
			one := *r
			one.Groups = []string{id}
			all.Groups = append(all.Groups, p.answerGroup(ctx, m, &one).(*kmsg.DeleteGroupsResponse).Groups...)
		}
		return all
	}
	return nil
}

// fetchElsewhere is elsewhere for OffsetFetch, which is about several groups from version 8 on.
func (p forwarder) fetchElsewhere(ctx context.Context, m groupMember, r *kmsg.OffsetFetchRequest) kmsg.Response {
	switch {
	case r.Version < 8:
		return p.forward(ctx, m, r.Group, r, false)
	case len(r.Groups) == 1:
		return p.forward(ctx, m, r.Groups[0].Group, r, false)
	}
	all := kmsg.NewPtrOffsetFetchResponse()
	seen := make(map[string]bool)
	for _, asked := range r.Groups {
		if seen[asked.Group] || len(seen) == maxAskedGroups {
			continue
		}
		seen[asked.Group] = true
		one := *r
		one.Groups = []kmsg.OffsetFetchRequestGroup{asked}
		all.Groups = append(all.Groups, p.answerGroup(ctx, m, &one).(*kmsg.OffsetFetchResponse).Groups...)
	}
	return all
}

// forward has another node answer; nil where it is for this one to, or where nobody answers: then the client hears that
// this is not its group's node, and asks again. waits: the answer may wait for other members of the group.
func (p forwarder) forward(ctx context.Context, m groupMember, group string, r kmsg.Request, waits bool) kmsg.Response {
	if !p.outOfReach(group) {
		return nil
	}
	limit := forwardTime
	if waits {
		select {
		case p.handler.forwarding <- struct{}{}:
			defer func() { <-p.handler.forwarding }()
		default:
			return nil
		}
		var stop func()
		ctx, stop = m.whileThereIsRoom(ctx)
		defer stop()
		limit = forwardWait
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	head := forwarded{Client: m.client, Host: p.host(), Key: r.Key(), Version: r.GetVersion()}
	if rights := p.rights(); !rights.open {
		if head.Shown = (caller.Caller{Grant: rights.grant}).EncodeWhole(); head.Shown == nil {
			return nil
		}
	}
	body, err := json.Marshal(head)
	if err != nil {
		return nil
	}
	answer := r.ResponseKind()
	raw, err := p.handler.cfg.Elsewhere(ctx, group, r.AppendTo(append(body, '\n')))
	if err == nil && len(raw) == 0 {
		err = errors.New("the node has no answer")
	}
	if err == nil {
		err = answer.ReadFrom(raw)
	}
	if err != nil {
		p.log.Debug("the node of a Kafka group does not answer", "group", group, "error", err)
		return nil
	}
	return answer
}

// Forwarded answers a request about a group that another node has passed on, with the rights that its client has here.
// Where it is none that makes sense the answer is empty.
func (h *Handler) Forwarded(ctx context.Context, body []byte) ([]byte, error) {
	line, rest, found := bytes.Cut(body, []byte{'\n'})
	var head forwarded
	if !found || json.Unmarshal(line, &head) != nil {
		return nil, nil
	}
	request := kmsg.RequestForKey(head.Key)
	if request == nil || head.Version < 0 || head.Version > request.MaxVersion() {
		return nil, nil
	}
	request.SetVersion(head.Version)
	if request.ReadFrom(rest) != nil {
		return nil, nil
	}
	lent, err := h.lend(ctx, head.Shown)
	if err != nil {
		return nil, fmt.Errorf("a Kafka client at another node: %w", err)
	}
	switch request.(type) {
	case *kmsg.JoinGroupRequest, *kmsg.SyncGroupRequest:
		select {
		case h.waitingHere <- struct{}{}:
			defer func() { <-h.waitingHere }()
		default: // without an answer the client asks again
			return nil, nil
		}
	}
	p := &peer{handler: h, log: h.cfg.Log, lent: &lent, from: head.Host}
	answer := p.answerGroup(p.asks(ctx), groupMember{peer: p, client: head.Client}, request)
	if answer == nil {
		return nil, nil
	}
	answer.SetVersion(head.Version)
	return answer.AppendTo(nil), nil
}

// lend gives the rights of a client of another node, as they are here.
func (h *Handler) lend(ctx context.Context, shown []byte) (rights, error) {
	if len(shown) == 0 {
		if h.cfg.Open {
			return rights{open: true}, nil
		}
		return rights{}, auth.ErrTooFewRights
	}
	c, err := caller.Decode(shown)
	if err != nil {
		return rights{}, err
	}
	g, err := h.cfg.Access.Adopt(ctx, c.Grant)
	return rights{grant: g}, err
}
