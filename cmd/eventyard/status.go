package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

const statusHelp = `Show how the yard is: first what somebody should look at, each with the command that helps, then what it
does now. With a token that is not for the whole namespace it is of the hubs that the token reaches.`

func (c *cli) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Show how the yard is, and what needs you", Long: statusHelp,
		Example: "  eventyard status\n  eventyard status -o json",
	}
	return printing(c, cmd, func(cmd *cobra.Command, client *admin.Client, _ []string) (admin.Overview, error) {
		o, err := client.Overview(cmd.Context())
		if slices.ContainsFunc(o.Needs, func(n admin.Need) bool { return n.Kind == "validation-pending" }) {
			c.noteAllPending(cmd, client, admin.SubscriptionRef{})
		}
		return o, err
	}, c.printStatus)
}

func (c *cli) printStatus(o admin.Overview) error {
	if len(o.Needs) == 0 {
		fmt.Fprintln(c.stdout, "Nothing needs you.")
	}
	for _, n := range o.Needs {
		since := ""
		if n.Since != nil {
			since = " (since " + showAgo(time.Now(), n.Since.Time) + ")"
		}
		severity := newPaint(c.stdout).state(n.Severity) + strings.Repeat(" ", max(0, 7-len(n.Severity)))
		fmt.Fprintf(c.stdout, "%s  %s%s\n         %s: %s\n", severity, oneLine(n.Sentence), since, n.Action, oneLine(n.Command))
	}
	fmt.Fprintf(c.stdout, "\n%s\n", statusTotals(o))
	t := newTable(c.stdout, "PUBLISHED", "BYTES IN", "READ", "DELIVERED", "FAILED", "CALLS", "WAITING")
	t.row(rate(o.Rates.Published), byteRate(o.Rates.Bytes), rate(o.Rates.Read), rate(o.Rates.Delivered), rate(o.Rates.Failed), rate(o.Rates.Calls), figure(o.Rates.Waiting))
	if err := t.flush(); err != nil {
		return err
	}
	if lag := o.WorstLag; lag != nil {
		fmt.Fprintf(c.stdout, "slowest group: %s of hub %s, %s behind, %s\n", oneLine(lag.Group), oneLine(lag.Hub),
			showSpan(inSeconds(lag.Seconds)), counted(lag.Events, "event"))
	}
	c.printMissing(o.Missing)
	return nil
}

func statusTotals(o admin.Overview) string {
	parts := []string{counted(o.Totals.Hubs, "hub") + " with " + counted(o.Totals.Partitions, "partition")}
	if o.Whole {
		parts = append(parts, counted(o.Totals.Topics, "topic"), counted(o.Totals.Subscriptions, "subscription"),
			counted(o.Totals.Functions, "function"), counted(o.Totals.Nodes, "node"))
	}
	return oneLine(o.Namespace) + ": " + strings.Join(parts, ", ")
}

// figure, rate and byteRate write "-" for what is not known.
func figure(v *float64) string {
	if v == nil {
		return "-"
	}
	return roughNumber(*v)
}

func rate(v *float64) string {
	if v == nil {
		return "-"
	}
	return roughNumber(*v) + "/s"
}

func byteRate(v *float64) string {
	if v == nil {
		return "-"
	}
	return roughBytes(int64(*v)) + "/s"
}
