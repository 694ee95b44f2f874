package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/spf13/cobra"
)

const hubKeysHelp = `Show which partition keys most events of a hub have at present, and how much of their partition that is.
One key that is busy is why a partition has more than its share: equal keys go to one partition.

The yard counts keys while somebody asks for them, and a minute longer. Where it has counted nothing yet this
waits for a while, and asks again. A count is never too low; it may be too high by as many events as ERROR says.`

func (c hubCommands) keys() *cobra.Command {
	var q admin.BusyKeysQuery
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "keys HUB", Short: "Show which partition keys are busiest", Long: hubKeysHelp,
		Example: "  eventyard hub keys orders --partition 7",
	}
	f := cmd.Flags()
	f.StringVarP(&q.Partition, "partition", "p", "", "`ids` of partitions, separated by commas (default all)")
	f.IntVar(&q.Limit, "max", 16, "at most so many")
	addDuration(f, &wait, "wait", 5*time.Second, "how long to wait where nothing was counted yet")
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.BusyKeys, error) {
		if q.Limit < 1 {
			return admin.BusyKeys{}, usagef(cmd, "--max is at least 1")
		}
		return countedKeys(cmd, client, args[0], q, wait)
	}, c.printKeys)
}

// countedKeys asks for keys, and once more where counting begins only now.
func countedKeys(cmd *cobra.Command, client *admin.Client, hub string, q admin.BusyKeysQuery, wait time.Duration) (admin.BusyKeys, error) {
	found, err := client.BusyKeys(cmd.Context(), hub, q)
	if err != nil || found.Events > 0 || wait <= 0 {
		return found, err
	}
	if err := sleep.For(cmd.Context(), wait, nil); err != nil {
		return found, err
	}
	return client.BusyKeys(cmd.Context(), hub, q)
}

func (c hubCommands) printKeys(found admin.BusyKeys) error {
	err := printTable(c.cli, found.Keys, "no event with a key was counted since "+showTime(found.Since),
		[]string{"PARTITION", "KEY", "EVENTS", "ERROR", "SHARE"}, func(k admin.BusyKey) []string {
			return []string{k.Partition, shortened(oneLine(k.Key), 60), thousands(k.Events), thousands(k.Error), strconv.FormatFloat(100*k.Share, 'f', 1, 64) + " %"}
		})
	if len(found.Unanswered) > 0 {
		fmt.Fprintf(c.stderr, "these nodes did not answer: %s\n", strings.Join(found.Unanswered, ", "))
	}
	if err != nil || len(found.Keys) == 0 {
		return err
	}
	return c.printf("\n%s counted since %s, %s of them with a key; SHARE is that of a key in its partition\n",
		counted(found.Events, "event"), showTime(found.Since), thousands(found.Keyed))
}
