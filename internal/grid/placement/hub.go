package placement

import (
	"context"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// The hub whose partitions are the shards, and its group. The broker does not know them: there is no
// log, and nobody can list, read or delete them.
const (
	namespace = "yard"
	hubName   = "yard-shards"
	groupName = "$shards"
	// records is where the group's leases and presences are.
	records = broker.RecordsPrefix + hubName + "/" + groupName + "/"
)

// made is when the hub was made: checkpoints name their hub by it, so it is the same for ever.
var made = time.UnixMilli(0).UTC()

// emptyHub is the hub as processors see it.
type emptyHub struct{}

func (emptyHub) Namespace() string { return namespace }
func (emptyHub) Name() string      { return hubName }

func (emptyHub) Info(context.Context) (hub.Info, error) {
	return hub.Info{Name: hubName, Created: made, Partitions: theHub.PartitionIDs()}, nil
}

func (emptyHub) Partition(_ context.Context, id string) (hub.PartitionInfo, error) {
	return hub.PartitionInfo{Partition: id, First: -1, Last: -1, LastOffset: "-1", Empty: true}, nil
}

func (emptyHub) Open(context.Context, hub.ReadConfig) (hub.Reader, error) { return emptyReader{}, nil }

// emptyReader waits for ever.
type emptyReader struct{}

func (emptyReader) Next(ctx context.Context, dst []event.Event, _ int) ([]event.Event, error) {
	<-ctx.Done()
	return dst, context.Cause(ctx)
}

// Await lets a processor wait without a goroutine.
func (emptyReader) Await(ctx context.Context, wake func()) { context.AfterFunc(ctx, wake) }

func (emptyReader) LastEnqueued() (hub.LastEnqueued, bool) { return hub.LastEnqueued{}, false }
func (emptyReader) Close(context.Context) error            { return nil }

// directory is the hub as the group's registry sees it, instead of the broker.
type directory struct{}

var theHub = broker.Hub{Name: hubName, Partitions: shards.Count, Created: made}

func (directory) Namespace() string  { return namespace }
func (directory) Hubs() []broker.Hub { return []broker.Hub{theHub} }

func (directory) Groups(context.Context, string) ([]broker.Group, error) {
	return []broker.Group{{Name: groupName, Created: made}}, nil
}

func (directory) GroupRecords(context.Context, string, string) (broker.GroupRecords, error) {
	return broker.GroupRecords{Hub: theHub, Group: broker.Group{Name: groupName, Created: made}, Prefix: records}, nil
}

func (directory) GroupGone(context.Context, broker.GroupRecords) bool { return false }

func (directory) Partition(_ context.Context, _, partition string) (broker.PartitionInfo, error) {
	if n, err := strconv.Atoi(partition); err != nil || n < 0 || n >= shards.Count {
		return broker.PartitionInfo{}, &broker.NotFoundError{Kind: broker.KindPartition, Hub: hubName, Name: partition, Partitions: shards.Count}
	}
	return broker.PartitionInfo{Hub: hubName, ID: partition, First: -1, Last: -1, Empty: true, Retrieved: time.Now()}, nil
}

func (directory) Receivers(context.Context, string, string) ([]broker.ReceiverInfo, error) {
	return nil, nil
}

func (directory) Disconnect(context.Context, string, string, string) (int, error) { return 0, nil }

func (directory) Cursor(context.Context, string, string, string, eventlog.Position) (eventlog.Cursor, error) {
	return nil, &broker.NotFoundError{Kind: broker.KindHub, Hub: hubName, Name: hubName}
}
