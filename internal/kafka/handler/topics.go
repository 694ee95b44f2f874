package handler

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
)

// admin answers those who make, change and delete hubs.
type admin struct{ *peer }

// createTopics makes hubs. However many replicas a client asks for, there are as many as the engine has.
//
// CreateTopics (19), versions 2 to 7.
func (p admin) createTopics(ctx context.Context, r *kmsg.CreateTopicsRequest) kmsg.Response {
	answer := kmsg.NewPtrCreateTopicsResponse()
	times := make(map[string]int)
	for _, asked := range r.Topics {
		times[auth.Fold(asked.Topic)]++
	}
	for _, asked := range r.Topics {
		t := kmsg.NewCreateTopicsResponseTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = asked.Topic, nowhere, nowhere
		hub, err := broker.Hub{}, errTopicRights
		switch {
		case times[auth.Fold(asked.Topic)] > 1:
			err = fmt.Errorf("%w: it names topic %.64q more than once", errInvalid, asked.Topic)
		case p.rights().everywhere(auth.Manage):
			hub, err = p.createTopic(ctx, asked, r.ValidateOnly)
		}
		if err != nil {
			t.ErrorCode, t.ErrorMessage = p.explain(ctx, "CreateTopics", err)
		} else {
			t.TopicID, t.NumPartitions, t.ReplicationFactor = hub.ID, int32(hub.Partitions), 1
			t.Configs = createdConfigs(hub)
		}
		answer.Topics = append(answer.Topics, t)
	}
	return answer
}

// createTopic makes one hub, or only says whether it could be.
func (p admin) createTopic(ctx context.Context, asked kmsg.CreateTopicsRequestTopic, validate bool) (broker.Hub, error) {
	changes := make([]configChange, 0, len(asked.Configs))
	for _, c := range asked.Configs {
		changes = append(changes, configChange{name: c.Name, value: c.Value})
	}
	wanted, err := applyConfigs(defaultSettings(), changes)
	if err != nil {
		return broker.Hub{}, err
	}
	cfg := broker.HubConfig{
		Name: asked.Topic, Age: &wanted.retention.Age, Bytes: &wanted.retention.Bytes,
		MaxFrameBytes: &wanted.frames.MaxBytes, AppendTime: &wanted.frames.AppendTime,
	}
	switch n := int(asked.NumPartitions); {
	case len(asked.ReplicaAssignment) > 0:
		cfg.Partitions = len(asked.ReplicaAssignment)
	case n == 0 || n < -1:
		return broker.Hub{}, fmt.Errorf("%w: %d, use 1 to %d, or -1 for %d", broker.ErrInvalidPartitionCount, n, broker.MaxPartitions, broker.DefaultPartitions)
	case n > 0:
		cfg.Partitions = n
	}
	if validate {
		return p.validateTopic(ctx, cfg, wanted)
	}
	return p.handler.cfg.Broker.CreateHub(ctx, cfg)
}

// validateTopic says what a hub would be.
func (p admin) validateTopic(ctx context.Context, cfg broker.HubConfig, wanted settings) (broker.Hub, error) {
	if err := cfg.Check(); err != nil {
		return broker.Hub{}, err
	}
	_, err := p.handler.cfg.Broker.LookUp(ctx, cfg.Name)
	if _, missing := errors.AsType[*broker.NotFoundError](err); !missing {
		if err == nil {
			err = fmt.Errorf("%w: choose another name, or delete the topic first", broker.ErrHubExists)
		}
		return broker.Hub{}, err
	}
	hub := broker.Hub{Name: cfg.Name, Partitions: cfg.Partitions, Retention: wanted.retention, Frames: wanted.frames}
	if hub.Partitions == 0 {
		hub.Partitions = broker.DefaultPartitions
	}
	return hub, nil
}

// deleteTopics deletes hubs, with their events and groups.
//
// DeleteTopics (20), versions 1 to 6; from 6 on by id as well.
func (p admin) deleteTopics(ctx context.Context, r *kmsg.DeleteTopicsRequest) kmsg.Response {
	answer := kmsg.NewPtrDeleteTopicsResponse()
	asked := r.Topics
	for _, name := range r.TopicNames {
		asked = append(asked, kmsg.DeleteTopicsRequestTopic{Topic: &name})
	}
	for _, a := range asked {
		t := kmsg.NewDeleteTopicsResponseTopic()
		t.Topic, t.TopicID = a.Topic, a.TopicID
		hub, err := p.find(ctx, topicOf(a.Topic, a.TopicID), auth.Manage)
		if err == nil {
			t.TopicID = hub.ID
			if t.Topic == nil {
				t.Topic = &hub.Name
			}
			err = p.deleteTopic(ctx, hub, a.Topic == nil)
		}
		if err != nil {
			t.ErrorCode, t.ErrorMessage = p.explain(ctx, "DeleteTopics", err)
		}
		answer.Topics = append(answer.Topics, t)
	}
	return answer
}

// deleteTopic deletes a hub. Who names it by its id means that very one, and none that has been made anew
// under its name since.
func (p admin) deleteTopic(ctx context.Context, hub broker.Hub, byID bool) error {
	if !byID {
		return p.handler.cfg.Broker.DeleteHub(ctx, hub.Name)
	}
	err := p.handler.cfg.Broker.DeleteByID(ctx, hub.ID)
	if _, missing := errors.AsType[*broker.NotFoundError](err); missing {
		return &unknownIDError{err}
	}
	return err
}

// createPartitions refuses: keys would move, and order would be lost.
//
// CreatePartitions (37), versions 0 to 3.
func (p admin) createPartitions(ctx context.Context, r *kmsg.CreatePartitionsRequest) kmsg.Response {
	answer := kmsg.NewPtrCreatePartitionsResponse()
	for _, asked := range r.Topics {
		t := kmsg.NewCreatePartitionsResponseTopic()
		t.Topic = asked.Topic
		hub, err := p.find(ctx, topic{name: asked.Topic}, auth.Manage)
		if err == nil {
			err = fmt.Errorf("%w: it has %d: create another topic with %d", broker.ErrPartitionsFixed, hub.Partitions, asked.Count)
		}
		t.ErrorCode, t.ErrorMessage = p.explain(ctx, "CreatePartitions", err)
		answer.Topics = append(answer.Topics, t)
	}
	return answer
}
