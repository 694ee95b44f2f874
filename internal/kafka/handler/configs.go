package handler

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/record"
)

// describeConfigs shows the settings of topics, and the few of nodes that clients ask for.
//
// DescribeConfigs (32), versions 1 to 4.
func (p admin) describeConfigs(ctx context.Context, r *kmsg.DescribeConfigsRequest) kmsg.Response {
	answer := kmsg.NewPtrDescribeConfigsResponse()
	type resource struct {
		kind kmsg.ConfigResourceType
		name string
	}
	seen := make(map[resource]bool, len(r.Resources)) // what is named twice is told of once
	for _, asked := range r.Resources {
		name := auth.Fold(asked.ResourceName)
		if asked.ResourceType != kmsg.ConfigResourceTypeTopic {
			name = "" // whatever its number, there is one broker
		}
		if seen[resource{asked.ResourceType, name}] {
			continue
		}
		seen[resource{asked.ResourceType, name}] = true
		one := kmsg.NewDescribeConfigsResponseResource()
		one.ResourceType, one.ResourceName = asked.ResourceType, asked.ResourceName
		all, err := p.configsOf(ctx, asked)
		if err != nil {
			one.ErrorCode, one.ErrorMessage = p.explain(ctx, "DescribeConfigs", err)
		}
		one.Configs = []kmsg.DescribeConfigsResponseResourceConfig{}
		for _, c := range all {
			if asked.ConfigNames != nil && !slices.Contains(asked.ConfigNames, c.Name) {
				continue
			}
			if !r.IncludeDocumentation {
				c.Documentation = nil
			}
			if !r.IncludeSynonyms {
				c.ConfigSynonyms = nil
			}
			one.Configs = append(one.Configs, c)
		}
		answer.Resources = append(answer.Resources, one)
	}
	return answer
}

func (p admin) configsOf(ctx context.Context, asked kmsg.DescribeConfigsRequestResource) ([]kmsg.DescribeConfigsResponseResourceConfig, error) {
	switch asked.ResourceType {
	case kmsg.ConfigResourceTypeTopic:
		hub, err := p.find(ctx, topic{name: asked.ResourceName}, anyRight)
		if err != nil {
			return nil, err
		}
		return topicConfigs(hub), nil
	case kmsg.ConfigResourceTypeBroker:
		if !p.rights().anywhere(anyRight) {
			return nil, errClusterRights
		}
		return p.brokerConfigs(), nil
	}
	return nil, fmt.Errorf("%w: settings of kind %d are not here, ask for those of topics", errInvalid, asked.ResourceType)
}

// topicConfigs are the settings of a hub.
func topicConfigs(hub broker.Hub) (all []kmsg.DescribeConfigsResponseResourceConfig) {
	present := settingsOf(hub)
	for i := range configs {
		row := &configs[i]
		c := describedConfig(row.name, row.kind, row.value(present), row.set == nil)
		if row.set != nil && row.value(present) != row.value(defaultSettings()) {
			c.Source, c.IsDefault = kmsg.ConfigSourceDynamicTopicConfig, false
			synonym := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
			synonym.Name, synonym.Value, synonym.Source = c.Name, c.Value, c.Source
			c.ConfigSynonyms = append(c.ConfigSynonyms, synonym)
		}
		if row.help != "" {
			c.Documentation = &row.help
		}
		all = append(all, c)
	}
	return all
}

// describedConfig is a setting that is as it is by default.
func describedConfig(name string, kind kmsg.ConfigType, value string, readOnly bool) kmsg.DescribeConfigsResponseResourceConfig {
	c := kmsg.NewDescribeConfigsResponseResourceConfig()
	c.Name, c.Value, c.ConfigType, c.ReadOnly = name, &value, kind, readOnly
	c.Source, c.IsDefault = kmsg.ConfigSourceDefaultConfig, true
	return c
}

// brokerConfigs are what clients ask nodes for.
func (p admin) brokerConfigs() (all []kmsg.DescribeConfigsResponseResourceConfig) {
	for _, row := range []struct {
		name  string
		kind  kmsg.ConfigType
		value string
	}{
		{"auto.create.topics.enable", kmsg.ConfigTypeBoolean, strconv.FormatBool(p.handler.cfg.Open || p.handler.cfg.AutoCreate)},
		{"default.replication.factor", kmsg.ConfigTypeInt, "1"},
		{"delete.topic.enable", kmsg.ConfigTypeBoolean, "true"},
		{"fetch.max.bytes", kmsg.ConfigTypeInt, strconv.Itoa(maxAnswerBytes)},
		{"log.cleanup.policy", kmsg.ConfigTypeList, policyDelete},
		{"log.retention.bytes", kmsg.ConfigTypeLong, "-1"},
		{"log.retention.ms", kmsg.ConfigTypeLong, orForever(broker.DefaultRetentionAge.Milliseconds())},
		{"message.max.bytes", kmsg.ConfigTypeInt, strconv.Itoa(record.MaxBatchBytes)},
		{"min.insync.replicas", kmsg.ConfigTypeInt, "1"},
		{"num.partitions", kmsg.ConfigTypeInt, strconv.Itoa(broker.DefaultPartitions)},
	} {
		all = append(all, describedConfig(row.name, row.kind, row.value, true))
	}
	return all
}

// createdConfigs are the settings of a hub as its maker is shown them.
func createdConfigs(hub broker.Hub) []kmsg.CreateTopicsResponseTopicConfig {
	all := []kmsg.CreateTopicsResponseTopicConfig{}
	for _, c := range topicConfigs(hub) {
		one := kmsg.NewCreateTopicsResponseTopicConfig()
		one.Name, one.Value, one.ReadOnly, one.Source = c.Name, c.Value, c.ReadOnly, int8(c.Source)
		all = append(all, one)
	}
	return all
}

// alterConfigs changes the settings of topics; what is not named becomes the default.
//
// AlterConfigs (33), versions 0 to 2.
func (p admin) alterConfigs(ctx context.Context, r *kmsg.AlterConfigsRequest) kmsg.Response {
	answer := kmsg.NewPtrAlterConfigsResponse()
	for _, asked := range r.Resources {
		one := kmsg.NewAlterConfigsResponseResource()
		one.ResourceType, one.ResourceName = asked.ResourceType, asked.ResourceName
		changes := make([]configChange, 0, len(asked.Configs))
		for _, c := range asked.Configs {
			changes = append(changes, configChange{c.Name, c.Value})
		}
		reset := func(broker.Hub) settings { return defaultSettings() }
		if err := p.alter(ctx, asked.ResourceType, asked.ResourceName, reset, changes, r.ValidateOnly); err != nil {
			one.ErrorCode, one.ErrorMessage = p.explain(ctx, "AlterConfigs", err)
		}
		answer.Resources = append(answer.Resources, one)
	}
	return answer
}

// changeConfigs changes single settings of topics.
//
// IncrementalAlterConfigs (44), versions 0 to 1. There are no lists to append to.
func (p admin) changeConfigs(ctx context.Context, r *kmsg.IncrementalAlterConfigsRequest) kmsg.Response {
	answer := kmsg.NewPtrIncrementalAlterConfigsResponse()
	for _, asked := range r.Resources {
		one := kmsg.NewIncrementalAlterConfigsResponseResource()
		one.ResourceType, one.ResourceName = asked.ResourceType, asked.ResourceName
		changes, err := incremental(asked.Configs)
		if err == nil {
			err = p.alter(ctx, asked.ResourceType, asked.ResourceName, settingsOf, changes, r.ValidateOnly)
		}
		if err != nil {
			one.ErrorCode, one.ErrorMessage = p.explain(ctx, "IncrementalAlterConfigs", err)
		}
		answer.Resources = append(answer.Resources, one)
	}
	return answer
}

func incremental(asked []kmsg.IncrementalAlterConfigsRequestResourceConfig) ([]configChange, error) {
	changes := make([]configChange, 0, len(asked))
	for _, c := range asked {
		change := configChange{c.Name, c.Value}
		switch {
		case c.Op == kmsg.IncrementalAlterConfigOpDelete:
			change.value = nil
		case c.Op != kmsg.IncrementalAlterConfigOpSet || c.Value == nil:
			return nil, fmt.Errorf("%w: %.64s can be set and unset only, say what it is to be", errConfig, c.Name)
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// alter changes a hub's settings from what base says they are.
func (p admin) alter(ctx context.Context, kind kmsg.ConfigResourceType, name string, base func(broker.Hub) settings, changes []configChange, validate bool) error {
	if kind != kmsg.ConfigResourceTypeTopic {
		return fmt.Errorf("%w: only settings of topics can be changed here", errInvalid)
	}
	hub, err := p.find(ctx, topic{name: name}, auth.Manage)
	if err != nil {
		return err
	}
	wanted, err := applyConfigs(base(hub), changes)
	if err != nil || validate {
		return err
	}
	var change broker.HubChange // of what is another: somebody may change the rest at the same time
	if wanted.retention.Age != hub.Retention.Age {
		change.Age = &wanted.retention.Age
	}
	if wanted.retention.Bytes != hub.Retention.Bytes {
		change.Bytes = &wanted.retention.Bytes
	}
	if wanted.frames.MaxBytes != hub.Frames.MaxBytes {
		change.MaxFrameBytes = &wanted.frames.MaxBytes
	}
	if wanted.frames.AppendTime != hub.Frames.AppendTime {
		change.AppendTime = &wanted.frames.AppendTime
	}
	_, err = p.handler.cfg.Broker.UpdateHub(ctx, hub.Name, change)
	return err
}
