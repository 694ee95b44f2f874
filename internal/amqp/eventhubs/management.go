package eventhubs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
)

// What $management can be asked about.
const (
	typeHub       = "com.microsoft:eventhub"
	typePartition = "com.microsoft:partition"
)

// manage handles a request to $management: it describes a hub or a partition (H10). Rights are
// checked with each request, because a request may bring its own token.
func (p *peer) manage(ctx context.Context, q *request) reply {
	at := p.entity(address{node: nodeManagement, hub: strings.Trim(q.name, "/"), partition: q.partition})
	body, err := p.read(ctx, at, q)
	if err != nil {
		return p.failure(at, err)
	}
	return reply{status: 200, description: "OK", body: body}
}

func (p *peer) read(ctx context.Context, at entity, q *request) ([]byte, error) {
	if !strings.EqualFold(q.operation, "READ") || q.kind != typeHub && q.kind != typePartition {
		return nil, &amqp.Error{
			Condition: condNotImplemented,
			Description: fmt.Sprintf("$management does not know the operation '%s' for the type '%s': READ %s or %s.",
				shown(q.operation), shown(q.kind), typeHub, typePartition),
		}
	}
	if at.hub == "" {
		return nil, &amqp.Error{Condition: condArgument, Description: "The request names no hub."}
	}
	if err := p.mayManage(ctx, at, q); err != nil {
		return nil, err
	}
	if q.kind == typeHub {
		hub, err := p.handler.cfg.Broker.LookUp(ctx, at.hub)
		if err != nil {
			return nil, err
		}
		return appendHub(nil, hub), nil
	}
	info, err := p.handler.cfg.Broker.Partition(ctx, at.hub, q.partition)
	if err != nil {
		return nil, err
	}
	return appendPartition(nil, info), nil
}

// mayManage checks for a right to a hub; any will do. A request that brings a token is judged by
// that alone, whatever was put on the connection before and whatever is wrong with it: one whose key
// has been changed to a wrong one is refused, as it would be on a new connection.
func (p *peer) mayManage(ctx context.Context, at entity, q *request) error {
	wanted := auth.At(at.hub, wordManagement)
	allowed := p.rights.allow(wanted, 0)
	if q.hasToken {
		g, err := p.handler.cfg.Access.Token(p.from(ctx), q.token, "")
		if err != nil {
			return p.late(err)
		}
		allowed = g.Allows(wanted, 0, time.Now())
	}
	if !allowed {
		at.partition = ""
		return at.unauthorized(auth.Listen)
	}
	return nil
}

// appendHub writes the description of a hub. Every value has to be of exactly
// its type: some clients cast.
func appendHub(dst []byte, hub broker.Hub) []byte {
	dst, m := wire.BeginMap(dst)
	dst = wire.AppendString(wire.AppendString(dst, "name"), hub.Name)
	dst = wire.AppendString(wire.AppendString(dst, "type"), typeHub)
	dst = wire.AppendTimestamp(wire.AppendString(dst, "created_at"), hub.Created.UnixMilli())
	dst = wire.AppendInt(wire.AppendString(dst, "partition_count"), int32(hub.Partitions))
	dst = wire.AppendStringArray(wire.AppendString(dst, "partition_ids"), hub.PartitionIDs())
	// One: there is no other region. A client insists on the number.
	dst = wire.AppendInt(wire.AppendString(dst, "georeplication_factor"), 1)
	return wire.EndMap(dst, m, 6)
}

// appendPartition writes the description of a partition. Before the first event
// the numbers are -1 and the time is that of the year one, which is Go's zero time too.
func appendPartition(dst []byte, info broker.PartitionInfo) []byte {
	dst, m := wire.BeginMap(dst)
	dst = wire.AppendString(wire.AppendString(dst, "name"), info.Hub)
	dst = wire.AppendString(wire.AppendString(dst, "type"), typePartition)
	dst = wire.AppendString(wire.AppendString(dst, "partition"), info.ID)
	dst = wire.AppendLong(wire.AppendString(dst, "begin_sequence_number"), int64(info.First))
	dst = wire.AppendLong(wire.AppendString(dst, wire.AnnotationLastSequence), int64(info.Last))
	dst = wire.AppendString(wire.AppendString(dst, wire.AnnotationLastOffset), info.LastOffset)
	dst = wire.AppendTimestamp(wire.AppendString(dst, wire.AnnotationLastTime), info.LastTime.UnixMilli())
	dst = wire.AppendBool(wire.AppendString(dst, "is_partition_empty"), info.Empty)
	dst = wire.AppendTimestamp(wire.AppendString(dst, wire.AnnotationRetrieved), info.Retrieved.UnixMilli())
	return wire.EndMap(dst, m, 9)
}
