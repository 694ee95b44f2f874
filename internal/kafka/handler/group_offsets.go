package handler

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/groups"
)

// groupOffsets answers those who commit offsets, and read them.
type groupOffsets struct{ *peer }

// maxGroupAnswerBytes is about what an answer about groups may have, since with names that are repeated a small request
// could ask for any amount. maxAskedGroups is how many groups a request may be about, and maxFoundGroups how many it may
// ask the nodes of, which is as many as there may be: some clients do so for all at once. Those beyond are left out of
// the answer: to refuse each by name would cost as much as to answer it.
const (
	maxGroupAnswerBytes = 16 << 20
	maxAskedGroups      = 1000
	maxFoundGroups      = groups.DefaultMaxGroups
)

var errAskedTooMuch = fmt.Errorf("%w: it asks for too much at once, ask for fewer topics", errInvalid)

// allowance is how many bytes an answer may still have.
type allowance int

// take reports whether so many bytes more are allowed.
func (a *allowance) take(bytes int) bool {
	*a -= allowance(bytes)
	return *a >= 0
}

// offsetCommit stores how far a group has come.
//
// OffsetCommit (8), versions 2 to 10: leader epochs from 6 on, static members from 7 on, topics by id from 10 on.
// How long offsets are kept is not the client's to say (versions 2 to 4 could). Where there is nothing to store, the
// group is not asked, since that would make it.
func (p groupOffsets) offsetCommit(ctx context.Context, r *kmsg.OffsetCommitRequest) kmsg.Response {
	answer := kmsg.NewPtrOffsetCommitResponse()
	positions := make(map[groups.Partition]groups.Position)
	// codes are where the answer of each partition goes that could be stored.
	codes := make(map[groups.Partition][]*int16)
	answer.Topics = make([]kmsg.OffsetCommitResponseTopic, len(r.Topics))
	refused := p.listens()
	for i, asked := range r.Topics {
		t := &answer.Topics[i]
		t.Topic, t.TopicID, t.Partitions = asked.Topic, asked.TopicID, make([]kmsg.OffsetCommitResponseTopicPartition, len(asked.Partitions))
		hub, log, missing := broker.Hub{}, "", refused
		if missing == nil {
			hub, log, missing = p.hubOf(ctx, topic{name: asked.Topic, id: asked.TopicID, byID: r.Version >= 10})
		}
		for j, part := range asked.Partitions {
			one := &t.Partitions[j]
			one.Partition = part.Partition
			err := missing
			if err == nil {
				err = partition(hub, part.Partition)
			}
			if err == nil && len(textOf(part.Metadata)) > groups.MaxMetadataBytes {
				err = groups.ErrMetadata
			}
			if err != nil {
				one.ErrorCode = p.fail(ctx, "OffsetCommit", err)
				continue
			}
			at := groups.Partition{Log: log, Number: part.Partition}
			position := groups.Position{Offset: part.Offset, Epoch: nowhere, Metadata: []byte(textOf(part.Metadata))}
			if r.Version >= 6 {
				position.Epoch = part.LeaderEpoch
			}
			positions[at], codes[at] = position, append(codes[at], &one.ErrorCode)
		}
	}
	if len(positions) == 0 {
		return answer
	}
	by := groups.Committer{Member: r.MemberID, Instance: textOf(r.InstanceID), Generation: r.Generation, May: p.may(auth.Listen)}
	failed, err := p.handler.cfg.Groups.Commit(ctx, r.Group, by, positions)
	for at, all := range codes {
		why := failed[at]
		if err != nil {
			why = err
		}
		if why != nil {
			code := p.fail(ctx, "OffsetCommit", why)
			for _, to := range all {
				*to = code
			}
		}
	}
	return answer
}

// hubOf finds the hub of a topic that may be listened to, and its log.
func (p *peer) hubOf(ctx context.Context, t topic) (broker.Hub, string, error) {
	hub, err := p.find(ctx, t, auth.Listen)
	if err != nil {
		return broker.Hub{}, "", err
	}
	log := broker.LogOf(p.handler.cfg.Broker, hub.ID)
	if log == "" { // it was deleted just now
		return broker.Hub{}, "", &broker.NotFoundError{Kind: broker.KindHub, Hub: hub.Name, Name: hub.Name}
	}
	return hub, log, nil
}

// offsetFetch tells how far groups have come. Where no topic is named it is about all that there is a right to.
//
// OffsetFetch (9), versions 1 to 10: for several groups from 8 on, topics by id from 10 on. Offsets in transactions
// that are not decided are left out, and with require_stable, from 7 on, their partitions are refused.
func (p groupOffsets) offsetFetch(ctx context.Context, r *kmsg.OffsetFetchRequest) kmsg.Response {
	answer := kmsg.NewPtrOffsetFetchResponse()
	room := allowance(maxGroupAnswerBytes)
	if r.Version >= 8 {
		seen := make(map[string]bool)
		for _, asked := range r.Groups {
			if seen[asked.Group] {
				continue // what is named twice is told of once
			}
			if len(seen) == maxAskedGroups {
				break
			}
			seen[asked.Group] = true
			answer.Groups = append(answer.Groups, p.fetchGroup(ctx, r, asked, &room))
		}
		return answer
	}
	asked := kmsg.NewOffsetFetchRequestGroup()
	asked.Group = r.Group
	if r.Topics != nil {
		asked.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
	}
	for _, t := range r.Topics {
		asked.Topics = append(asked.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: t.Topic, Partitions: t.Partitions})
	}
	g := p.fetchGroup(ctx, r, asked, &room)
	answer.ErrorCode = g.ErrorCode
	for _, t := range g.Topics {
		old := kmsg.NewOffsetFetchResponseTopic()
		old.Topic = t.Topic
		for _, part := range t.Partitions {
			old.Partitions = append(old.Partitions, kmsg.OffsetFetchResponseTopicPartition(part))
		}
		answer.Topics = append(answer.Topics, old)
	}
	if g.ErrorCode != codeNone && r.Version < 2 { // which has no code of the whole
		for _, t := range r.Topics {
			answer.Topics = append(answer.Topics, refusedTopic(t, g.ErrorCode))
		}
	}
	return answer
}

func refusedTopic(asked kmsg.OffsetFetchRequestTopic, code int16) kmsg.OffsetFetchResponseTopic {
	t := kmsg.NewOffsetFetchResponseTopic()
	t.Topic = asked.Topic
	for _, n := range asked.Partitions {
		one := kmsg.NewOffsetFetchResponseTopicPartition()
		one.Partition, one.Offset, one.LeaderEpoch, one.Metadata, one.ErrorCode = n, nowhere, nowhere, new(string), code
		t.Partitions = append(t.Partitions, one)
	}
	return t
}

// fetchGroup answers for one group.
func (p groupOffsets) fetchGroup(ctx context.Context, r *kmsg.OffsetFetchRequest, asked kmsg.OffsetFetchRequestGroup, room *allowance) kmsg.OffsetFetchResponseGroup {
	answer := kmsg.NewOffsetFetchResponseGroup()
	answer.Group, answer.Topics = asked.Group, []kmsg.OffsetFetchResponseGroupTopic{}
	version, topics, err := r.Version, asked.Topics, p.listens()
	if err == nil {
		err = p.handler.cfg.Groups.CheckFetch(ctx, asked.Group, textOf(asked.MemberID), asked.MemberEpoch)
	}
	var unstable map[groups.Partition]bool
	if err == nil {
		unstable, err = p.handler.cfg.Groups.Stages.Unstable(ctx, asked.Group)
	}
	if topics == nil && err == nil {
		topics, err = p.committedTopics(ctx, version, asked.Group)
	}
	read := make(map[string]map[int32]groups.Position) // by log: the same hub may be named many times
	for _, wanted := range topics {
		if err == nil && !room.take(64+len(wanted.Topic)) {
			err = errAskedTooMuch
		}
		if err != nil {
			break
		}
		t := kmsg.NewOffsetFetchResponseGroupTopic()
		t.Topic, t.TopicID = wanted.Topic, wanted.TopicID
		hub, log, missing := p.hubOf(ctx, topic{name: wanted.Topic, id: wanted.TopicID, byID: version >= 10})
		stored, known := read[log]
		if missing == nil && !known {
			stored, err = p.handler.cfg.Groups.Offsets(ctx, asked.Group, log)
			read[log] = stored
		}
		numbers := wanted.Partitions
		if asked.Topics == nil {
			for n := range stored {
				numbers = append(numbers, n)
			}
			slices.Sort(numbers)
		}
		for _, n := range numbers {
			one := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			one.Partition, one.Offset, one.LeaderEpoch, one.Metadata = n, nowhere, nowhere, new(string)
			why := missing
			if why == nil {
				why = partition(hub, n)
			}
			if position, found := stored[n]; found {
				one.Offset, one.LeaderEpoch, one.Metadata = position.Offset, position.Epoch, new(string(position.Metadata))
			}
			if why != nil {
				one.ErrorCode = p.fail(ctx, "OffsetFetch", why)
			} else if r.RequireStable && unstable[groups.Partition{Log: log, Number: n}] {
				one.Offset, one.LeaderEpoch, one.Metadata, one.ErrorCode = nowhere, nowhere, new(string), codeUnstable
			}
			if !room.take(64 + len(*one.Metadata)) {
				err = errAskedTooMuch
				break
			}
			t.Partitions = append(t.Partitions, one)
		}
		answer.Topics = append(answer.Topics, t)
	}
	if err != nil {
		answer.ErrorCode, answer.Topics = p.fail(ctx, "OffsetFetch", err), []kmsg.OffsetFetchResponseGroupTopic{}
	}
	return answer
}

// committedTopics are the hubs in which a group has offsets, and that there is a right to.
func (p groupOffsets) committedTopics(ctx context.Context, version int16, group string) ([]kmsg.OffsetFetchRequestGroupTopic, error) {
	logs, err := p.handler.cfg.Groups.Logs(ctx, group)
	if err != nil {
		return nil, err
	}
	var topics []kmsg.OffsetFetchRequestGroupTopic
	for _, log := range logs {
		hub, err := p.handler.cfg.Broker.Hub(broker.HubOf(p.handler.cfg.Broker, log))
		if err == nil && p.rights().allow(hub.Name, auth.Listen) {
			topics = append(topics, kmsg.OffsetFetchRequestGroupTopic{Topic: hub.Name, TopicID: hub.ID})
		}
	}
	return topics, nil
}

// offsetDelete forgets how far a group has come in topics that its members do not subscribe to. As to see the group it
// needs Listen on each hub that the group is about.
//
// OffsetDelete (47), version 0.
func (p groupOffsets) offsetDelete(ctx context.Context, r *kmsg.OffsetDeleteRequest) kmsg.Response {
	answer := kmsg.NewPtrOffsetDeleteResponse()
	if err := p.listens(); err != nil {
		answer.ErrorCode = p.fail(ctx, "OffsetDelete", err)
		return answer
	}
	answer.Topics = make([]kmsg.OffsetDeleteResponseTopic, len(r.Topics))
	codes := make(map[groups.Partition][]*int16)
	var all []groups.Partition
	for i, asked := range r.Topics {
		t := &answer.Topics[i]
		t.Topic, t.Partitions = asked.Topic, make([]kmsg.OffsetDeleteResponseTopicPartition, len(asked.Partitions))
		hub, log, missing := p.hubOf(ctx, topic{name: asked.Topic})
		for j, part := range asked.Partitions {
			one := &t.Partitions[j]
			one.Partition = part.Partition
			err := missing
			if err == nil {
				err = partition(hub, part.Partition)
			}
			if err != nil {
				one.ErrorCode = p.fail(ctx, "OffsetDelete", err)
				continue
			}
			at := groups.Partition{Log: log, Number: part.Partition}
			all, codes[at] = append(all, at), append(codes[at], &one.ErrorCode)
		}
	}
	if len(all) == 0 && len(r.Topics) > 0 {
		return answer
	}
	d, err := p.handler.cfg.Groups.Describe(ctx, r.Group)
	if err == nil {
		err = groupAdmin(p).mayAll(d, auth.Listen)
	}
	var failed map[groups.Partition]error
	if err == nil {
		failed, err = p.handler.cfg.Groups.DeleteOffsets(ctx, r.Group, all)
	}
	if err != nil {
		answer.ErrorCode, answer.Topics = p.fail(ctx, "OffsetDelete", err), nil
		return answer
	}
	for at, why := range failed {
		code := p.fail(ctx, "OffsetDelete", why)
		for _, to := range codes[at] {
			*to = code
		}
	}
	return answer
}
