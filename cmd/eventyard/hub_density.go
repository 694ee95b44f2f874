package main

import (
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

// maxBuckets is how many the yard gives.
const maxBuckets = 500

func (c hubCommands) density() *cobra.Command {
	var q admin.DensityQuery
	cmd := &cobra.Command{
		Use:     "density HUB",
		Short:   "Show how many events were enqueued when",
		Example: "  eventyard hub density orders --from 24h --buckets 24",
	}
	f := cmd.Flags()
	f.StringVar(&q.From, "from", "", "a `time`, or how long ago (default: the oldest event)")
	f.StringVar(&q.To, "to", "", "a `time`, or how long ago (default: now)")
	f.IntVar(&q.Buckets, "buckets", 24, "into how many equally long parts the time is divided")
	f.StringVarP(&q.Partition, "partition", "p", "", "`ids` of partitions, separated by commas (default all)")
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.Density, error) {
		if q.Buckets < 1 || q.Buckets > maxBuckets {
			return admin.Density{}, usagef(cmd, "--buckets %d: give 1 to %d", q.Buckets, maxBuckets)
		}
		return client.Density(cmd.Context(), args[0], q)
	}, func(d admin.Density) error {
		most := int64(1)
		for _, b := range d.Buckets {
			most = max(most, b.Events)
		}
		return printTable(c.cli, d.Buckets, "", []string{"FROM", "EVENTS", ""}, func(b admin.DensityBucket) []string {
			return []string{showTime(b.From), thousands(b.Events), strings.Repeat("#", int(40*b.Events/most))}
		})
	})
}
