package admin

import (
	"context"
	"net/http"
)

// KafkaGroup is a group of Kafka's consumers. It is not the consumer group of a hub that has the same name: it spans
// hubs, and has positions of its own.
type KafkaGroup struct {
	Name string `json:"name"`
	// Kind is classic, or consumer where the yard assigns (KIP-848).
	Kind string `json:"kind"`
	// State is as Kafka names it: Empty, PreparingRebalance, CompletingRebalance, Stable, Reconciling.
	State string `json:"state"`
	// Type is what its members share out: consumer, or connect and the like; empty where nobody was ever in it.
	Type string `json:"type,omitempty"`
	// Protocol is how partitions are assigned.
	Protocol string `json:"protocol,omitempty"`
	// Generation is that of its members, or the group's epoch.
	Generation int `json:"generation"`
	// Members is how many are in it.
	Members int `json:"members"`
	// Hubs are those that its members subscribe to, or in which it has offsets.
	Hubs []string `json:"hubs"`
	// Node coordinates it.
	Node string `json:"node,omitempty"`
}

// KafkaGroupTable is a Kafka group with its members, and the partitions of one hub.
type KafkaGroupTable struct {
	KafkaGroup
	Hub        string           `json:"hub"`
	At         Time             `json:"at"`
	Instances  []KafkaMember    `json:"instances"`
	Partitions []KafkaPartition `json:"partitions"`
	// LagEvents is over all partitions whose lag is known.
	LagEvents int64 `json:"lagEvents"`
}

// KafkaMember is one of a Kafka group.
type KafkaMember struct {
	ID string `json:"id"`
	// Instance is the group.instance.id of a static member.
	Instance string `json:"instance,omitempty"`
	Client   string `json:"client,omitempty"`
	Host     string `json:"host,omitempty"`
	// Partitions is how many partitions of the hub it has.
	Partitions int `json:"partitions"`
}

// KafkaPartition is one row of the table.
type KafkaPartition struct {
	Partition string `json:"partition"`
	// Owner is the id of the member that has it, and Client what that calls itself; empty: nobody has it.
	Owner  string `json:"owner,omitempty"`
	Client string `json:"client,omitempty"`
	// Committed is the offset of the next event to be read; nil: nothing is committed.
	Committed *int64 `json:"committed,omitempty"`
	Updated   *Time  `json:"updated,omitempty"`
	First     int64  `json:"first"`
	Last      int64  `json:"last"`
	// LagEvents and LagSeconds are nil where nothing is committed.
	LagEvents  *int64   `json:"lagEvents,omitempty"`
	LagSeconds *float64 `json:"lagSeconds,omitempty"`
	// BeyondEnd: what is committed cannot be right.
	BeyondEnd bool `json:"beyondEnd,omitempty"`
}

// Where the positions of a KafkaCopy go.
const (
	ToKafka     = "kafka"
	ToProcessor = "processor"
)

// KafkaCopy copies positions between a Kafka group and a consumer group of a hub.
type KafkaCopy struct {
	// Group is the consumer group of the hub.
	Group string `json:"group"`
	// To is where they go: kafka or processor.
	To string `json:"to"`
	MoveOptions
}

// KafkaGroups lists the Kafka groups that are about a hub; with no hub all of them.
func (c *Client) KafkaGroups(ctx context.Context, hub string) ([]KafkaGroup, error) {
	path := []string{"kafka-groups"}
	if hub != "" {
		path = kafkaGroupsPath(hub)
	}
	return list[KafkaGroup](ctx, c, "groups", request{method: http.MethodGet, path: path})
}

// KafkaGroup tells who is in a Kafka group, and how far it is in a hub.
func (c *Client) KafkaGroup(ctx context.Context, hub, group string) (KafkaGroupTable, error) {
	return one[KafkaGroupTable](ctx, c, request{method: http.MethodGet, path: kafkaGroupsPath(hub, group)})
}

// DeleteKafkaGroup deletes a Kafka group that nobody is in, with its offsets in all hubs. The hub is one of these.
func (c *Client) DeleteKafkaGroup(ctx context.Context, hub, group string) error {
	return c.call(ctx, http.MethodDelete, kafkaGroupsPath(hub, group), nil, nil)
}

// ForgetKafkaOffsets deletes what a Kafka group that nobody is in has committed in a hub.
func (c *Client) ForgetKafkaOffsets(ctx context.Context, hub, group string) error {
	return c.call(ctx, http.MethodDelete, kafkaGroupsPath(hub, group, "offsets"), nil, nil)
}

// MoveKafkaOffset sets what a Kafka group that nobody is in has committed of a partition. The checkpoints that it gives
// name the last event that is done, whose number is one less than the offset.
func (c *Client) MoveKafkaOffset(ctx context.Context, hub, group, partition string, to Target, opt MoveOptions) (Moved, error) {
	path := kafkaGroupsPath(hub, group, "offsets", partition)
	return one[Moved](ctx, c, request{method: http.MethodPut, path: path, body: CheckpointMove{to, opt}})
}

// CopyKafkaOffsets copies positions between a Kafka group and a consumer group of the hub, all of them or none.
func (c *Client) CopyKafkaOffsets(ctx context.Context, hub, group string, q KafkaCopy) ([]Moved, error) {
	answer, err := one[MovedList](ctx, c, request{method: http.MethodPost, path: kafkaGroupsPath(hub, group, "copy"), body: q})
	return answer.Moved, err
}

func kafkaGroupsPath(hub string, more ...string) []string {
	return append([]string{"hubs", hub, "kafka-groups"}, more...)
}
