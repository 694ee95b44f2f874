//go:build linux

package interop

import (
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// TestKafkaAdmin has franz-go's admin client see the producers of partitions, delete records, and look at a group that is
// in use; and the yard's own API shows that group as it does, and lets nobody change it meanwhile. // K1, K2, P6, P7
func TestKafkaAdmin(t *testing.T) {
	t.Parallel()
	const hub, group, events = "managed", "managers", 20
	y := startYard(t, layout{kafka: true, hubs: map[string]int{hub: 2}})
	ctx, cancel := context.WithTimeout(t.Context(), kafkaTime)
	defer cancel()
	k := kafkaTask{address: y.hostPort(t, "kafka"), hub: hub}
	producer := k.franz(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for i := range events {
		testkit.Must(t, producer.ProduceSync(ctx, &kgo.Record{Partition: int32(i % 2), Value: fmt.Append(nil, i)}).FirstErr())
	}
	adm := kadm.NewClient(producer)
	id, epoch, err := producer.ProducerID(ctx)
	testkit.Must(t, err)
	described := testkit.Value(adm.DescribeProducers(ctx, kadm.TopicsSet{hub: {0: {}, 1: {}}}))(t)
	for p := range int32(2) {
		one := described[hub].Partitions[p]
		testkit.Must(t, one.Err)
		testkit.MustEqual(t, len(one.ActiveProducers), 1, "producers of partition %d", p)
		for _, active := range one.ActiveProducers {
			testkit.That(t, active.ProducerID == id && active.ProducerEpoch == epoch && active.LastSequence == events/2-1, "it is %+v", active)
		}
	}
	t.Log("proved: the idempotent producers of partitions are described")

	before := kadm.Offsets{}
	before.AddOffset(hub, 0, 4, -1)
	deleted := testkit.Value(adm.DeleteRecords(ctx, before))(t)
	testkit.Must(t, deleted[hub][0].Err)
	testkit.Equal(t, deleted[hub][0].LowWatermark, int64(4))
	testkit.Eventually(t, "all nodes know where the partition begins", func() bool {
		starts := testkit.Value(adm.ListStartOffsets(ctx, hub))(t)
		return starts[hub][0].Offset == 4 && starts[hub][1].Offset == 0
	})
	t.Log("proved: records before an offset are deleted")

	member := k.franz(t, kgo.ConsumerGroup(group), kgo.ConsumeTopics(hub), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.ClientID("manager"))
	for came := 0; came < events-4; {
		fetches := member.PollFetches(ctx)
		testkit.Must(t, fetches.Err())
		came += fetches.NumRecords()
	}
	testkit.Must(t, member.CommitUncommittedOffsets(ctx))
	testkit.Must(t, producer.ProduceSync(ctx, &kgo.Record{Partition: 1, Value: []byte("more")}).FirstErr())
	lags := testkit.Value(adm.Lag(ctx, group))(t)
	testkit.Equal(t, lags[group].Lag.Total(), int64(1), "the lag by Kafka's client")

	client := testkit.Value(admin.New(admin.Config{Server: "http://" + y.hostPort(t, "http"), Policy: rootPolicy, Key: rootKey}))(t)
	defer client.Close()
	listed := testkit.Value(client.KafkaGroups(ctx, hub))(t)
	testkit.MustEqual(t, len(listed), 1, "groups of the hub")
	table := testkit.Value(client.KafkaGroup(ctx, hub, group))(t)
	testkit.That(t, table.State == "Stable" && table.LagEvents == 1 && len(table.Instances) == 1 && table.Instances[0].Client == "manager" && table.Instances[0].Partitions == 2, "it is %+v", table)
	for _, p := range table.Partitions {
		testkit.That(t, p.Owner == table.Instances[0].ID && *p.Committed == 10, "it is %+v", p)
	}
	_, err = client.MoveKafkaOffset(ctx, hub, group, "0", admin.Target{Earliest: true}, admin.MoveOptions{})
	testkit.That(t, err != nil, "offsets were moved while somebody is in the group")
	t.Log("proved: the API shows the group, and changes nothing while somebody is in it")
	member.Close()
	testkit.Eventually(t, "nobody is in the group", func() bool {
		_, err := client.MoveKafkaOffset(ctx, hub, group, "0", admin.Target{Earliest: true}, admin.MoveOptions{})
		return err == nil
	})
	again := k.franz(t, kgo.ConsumerGroup(group), kgo.ConsumeTopics(hub), kgo.DisableAutoCommit())
	for came := 0; came < 7; {
		fetches := again.PollFetches(ctx)
		testkit.Must(t, fetches.Err())
		came += fetches.NumRecords()
	}
	t.Log("proved: consumers go on where the API has moved the group to")
}
