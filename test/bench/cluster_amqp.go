package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

// measureClusterAMQP sends batches through a node that is a process of its own, and publishes as
// many bytes plainly.
func measureClusterAMQP(ctx context.Context, b *bench) error {
	return b.withServers(ctx, func(servers *natsServers) (err error) {
		plain, err := dialPlain(ctx, servers)
		if err != nil {
			return err
		}
		defer plain.close()
		node, err := b.startNode(ctx, servers, "node-1")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, node.stop()) }()
		for _, streams := range b.streamCounts() {
			b.progress("amqp: batches of 100 x 1 KiB to 16 partitions in %s", inStreams(streams))
			s := spread{streams, partitions, frameWriters, batchEvents, 1}
			r, err := b.alternate(ctx, limit{period: b.period},
				plain.publishes("JetStream: messages of 100 KiB", s),
				node.sends("AMQP: batches of 100, encoded beforehand", s),
				node.produces("AMQP: batches of 100 by azeventhubs", s))
			if err != nil {
				return err
			}
			b.besidePlain("AMQP, batches of 100, "+inStreams(streams), r[1], r[0], atLeast(0.8))
			b.report.goal("the same by azeventhubs, which encodes each event", r[2].rate().Over(r[0].rate()), "×", target{})
			b.report.timings(fmt.Sprintf("Batches of 100 × 1 KiB over AMQP, %d senders, 16 partitions in %s", s.senders, inStreams(streams)), r)
		}
		return nil
	})
}

// produces has Event Hubs' own producers do the same, which fill each batch anew.
func (n *yardNode) produces(name string, s spread) contender {
	return contender{name, func(ctx context.Context, _ string, lim limit) (t tally, err error) {
		hub, err := n.newHub(ctx, s)
		if err != nil {
			return tally{}, err
		}
		defer func() { err = errors.Join(err, n.admin.DeleteHub(context.WithoutCancel(ctx), hub)) }()
		producers := make([]*azeventhubs.ProducerClient, amqpConnections)
		for i := range producers {
			if producers[i], err = azeventhubs.NewProducerClientFromConnectionString(n.connectionString(), hub, nil); err != nil {
				return tally{}, err
			}
			defer func() { err = errors.Join(err, producers[i].Close(context.WithoutCancel(ctx))) }()
		}
		bodies := s.bodies()
		return driveTimed(ctx, lim, s.job(func(ctx context.Context, w int) error {
			return sendBatch(ctx, producers[w%amqpConnections], fmt.Sprint(s.partition(w)), bodies[w])
		}))
	}}
}
