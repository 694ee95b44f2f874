package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

const nodeManagement = "$management"

// Info is what a hub says about itself.
type Info struct {
	Name       string
	Created    time.Time
	Partitions []string
}

// Info asks for the hub's partitions and creation time.
func (h *Hub) Info(ctx context.Context) (Info, error) {
	fields, err := h.ask(ctx, map[string]any{"type": "com.microsoft:eventhub"})
	if err != nil {
		return Info{}, fmt.Errorf("ask for hub %s: %w", h.name, err)
	}
	info := Info{Name: text(fields["name"])}
	info.Created, _ = fields["created_at"].(time.Time)
	ids, _ := fields["partition_ids"].(wire.Array)
	for _, id := range ids.Values {
		info.Partitions = append(info.Partitions, text(id))
	}
	if len(info.Partitions) == 0 {
		return Info{}, fmt.Errorf("ask for hub %s: %w", h.name, errIncomplete)
	}
	return info, nil
}

// errIncomplete: what a hub always has is not in its reply.
var errIncomplete = errors.New("the hub's reply is not complete")

// PartitionInfo is what a partition holds.
type PartitionInfo struct {
	Partition    string
	First, Last  int64 // sequence numbers; Last is -1 before the first event
	LastOffset   string
	LastEnqueued time.Time
	Empty        bool
}

// Partition asks for what a partition holds.
func (h *Hub) Partition(ctx context.Context, id string) (PartitionInfo, error) {
	fields, err := h.ask(ctx, map[string]any{"type": "com.microsoft:partition", "partition": id})
	if err != nil {
		return PartitionInfo{}, fmt.Errorf("ask for partition %s/%s: %w", h.name, id, err)
	}
	info := PartitionInfo{Partition: text(fields["partition"]), LastOffset: text(fields["last_enqueued_offset"])}
	info.LastEnqueued, _ = fields["last_enqueued_time_utc"].(time.Time)
	info.Empty, _ = fields["is_partition_empty"].(bool)
	var first, last bool
	info.First, first = fields["begin_sequence_number"].(int64)
	info.Last, last = fields["last_enqueued_sequence_number"].(int64)
	if !first || !last {
		return PartitionInfo{}, fmt.Errorf("ask for partition %s/%s: %w", h.name, id, errIncomplete)
	}
	return info, nil
}

// ask reads from the management node.
func (h *Hub) ask(ctx context.Context, properties map[string]any) (fields map[string]any, err error) {
	if err := h.named(); err != nil {
		return nil, err
	}
	properties["operation"], properties["name"] = "READ", h.name
	audience := h.client.at.audience(h.name + "/" + nodeManagement)
	err = h.client.retry(ctx, asking, func(ctx context.Context) error {
		conn, err := h.client.connect(ctx)
		if err != nil {
			return err
		}
		if err := conn.keep(ctx, audience); err != nil {
			return err
		}
		// The official clients also show the token with each request.
		t, err := h.client.tokens.get(ctx, audience)
		if err != nil {
			return err
		}
		properties["security_token"] = t.text
		r, err := conn.ask(ctx, nodeManagement, &amqp.Message{ApplicationProperties: properties})
		if err == nil {
			fields, err = r.fields()
		}
		return err
	})
	return fields, err
}
