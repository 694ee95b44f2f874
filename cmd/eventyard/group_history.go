package main

import (
	"fmt"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

const groupHistoryHelp = `Show who owned the partitions of a group when, of the last quarter of an hour or of --span, and what else
happened to the group: instances that came and went, checkpoints that were moved. It is made of what the
yard keeps of its activity.`

func (c groupCommands) history() *cobra.Command {
	var span string
	cmd := &cobra.Command{
		Use: "history HUB GROUP", Short: "Show who owned which partition when", Long: groupHistoryHelp,
		Example: "  eventyard group history orders billing --span 2h",
	}
	cmd.Flags().StringVar(&span, "span", "", "how far to look back, a `duration` such as 2h; empty: 15m")
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.GroupHistory, error) {
		return client.GroupHistory(cmd.Context(), args[0], args[1], span)
	}, c.printHistory)
}

func (c groupCommands) printHistory(h admin.GroupHistory) error {
	err := printTable(c.cli, h.Spans, "nobody owned a partition", []string{"PARTITION", "OWNER", "FROM", "TO"}, func(s admin.OwnershipSpan) []string {
		return []string{s.Partition, s.Owner, showTime(s.From), showTime(s.To)}
	})
	if err == nil && len(h.Changes) > 0 {
		if err = c.printf("\n"); err == nil {
			err = printTable(c.cli, h.Changes, "", []string{"AT", "KIND", "OBJECT", "BY", ""}, activityRow)
		}
	}
	if h.Incomplete {
		fmt.Fprintln(c.stderr, "more has happened than was looked at: ask for a shorter span")
	}
	return err
}

const groupForgetHelp = `Forget an instance of a group that is dead: its presence is removed, and nothing else. What it owned stays in
its name until others take it; eventyard group release gives that up at once.

An instance that has shown itself within a minute is alive, and stays.`

func (c groupCommands) forget() *cobra.Command {
	return c.deleting(&cobra.Command{
		Use: "forget HUB GROUP INSTANCE", Short: "Forget an instance that is dead", Long: groupForgetHelp,
		Example: "  eventyard group forget orders billing worker-3",
	},
		func(cmd *cobra.Command, client *admin.Client, args []string) (deletion, error) {
			which := fmt.Sprintf("instance %s of group %s of hub %s", args[2], args[1], args[0])
			return deletion{
				question: "Forget " + which + "?",
				do:       func() error { return client.ForgetInstance(cmd.Context(), args[0], args[1], args[2]) },
				done:     "forgot " + which,
			}, nil
		})
}
