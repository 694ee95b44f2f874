package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

// activityCommand is `eventyard activity`.
type activityCommand struct{ *cli }

const activityHelp = `Show what has changed in a yard, by whom and when, the newest last: definitions and keys, owners of
partitions, instances that came and went, checkpoints that were moved, probation, circuits, nodes, the
disk, backups. A yard keeps it for 7 days, and 32 MiB of it.

A kind is what happened, such as hub.created, or a family of kinds, such as hub. An object is a path of
the API, such as hubs/orders/groups/billing, and stands for all that is in it.

With --watch each change is shown as it comes.`

func (c activityCommand) command() *cobra.Command {
	var form output
	var watch bool
	var query admin.ActivityQuery
	cmd := &cobra.Command{
		Use:   "activity",
		Short: "Show what has changed, by whom and when",
		Long:  activityHelp,
		Example: `  eventyard activity --since 2h
  eventyard activity --kind key,policy --by till
  eventyard activity --hub orders --watch
  eventyard activity --object topics/shop -o json`,
	}
	cmd.Flags().StringSliceVar(&query.Kinds, "kind", nil, "only of these `kinds`, or families of kinds")
	cmd.Flags().StringVar(&query.Object, "object", "", "only of this `path`, and of what is in it")
	cmd.Flags().StringVar(&query.Hub, "hub", "", "only of this `hub`, for which the right to manage it is enough")
	cmd.Flags().StringVar(&query.By, "by", "", "only what this `policy`, or the subject of this token, did")
	cmd.Flags().StringVar(&query.Since, "since", "", "only since this `time`, like 2026-01-31T18:00:00Z, or so long ago, like 2h")
	cmd.Flags().StringVar(&query.Until, "until", "", "only until this `time`, or so long ago")
	cmd.Flags().IntVar(&query.Limit, "max", 100, "at most so many")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show what comes, until interrupted")
	lacks(cmd, "follow", "did you mean --watch?")
	form.addTo(cmd)
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, _ []string) error {
		if query.Limit < 1 {
			return usagef(cmd, "--max is at least 1")
		}
		if watch {
			return c.watch(cmd, client, form, query)
		}
		found, err := c.find(cmd, client, query)
		if err != nil {
			return err
		}
		if form == asJSON {
			return writeJSON(c.stdout, found)
		}
		return printTable(c.cli, found, "nothing of that has changed, as far as the yard knows", []string{"AT", "KIND", "OBJECT", "BY", ""}, activityRow)
	})
}

// find asks for pages until there are as many as wanted, and gives them with the newest last.
func (c activityCommand) find(cmd *cobra.Command, client *admin.Client, query admin.ActivityQuery) ([]admin.Activity, error) {
	found, most := []admin.Activity{}, query.Limit
	for {
		query.Limit = most - len(found)
		page, err := client.Activity(cmd.Context(), query)
		if err != nil {
			return nil, err
		}
		found = append(found, page.Activity...)
		if query.Before = page.Next; page.Next == 0 || len(found) >= most {
			slices.Reverse(found)
			return found, nil
		}
	}
}

func (c activityCommand) watch(cmd *cobra.Command, client *admin.Client, form output, query admin.ActivityQuery) error {
	for a, err := range client.WatchActivity(cmd.Context(), query, c.noticeLoss) {
		switch {
		case cmd.Context().Err() != nil:
			return nil // Ctrl-C is how it ends
		case err != nil:
			return err
		case form == asJSON:
			err = writeJSON(c.stdout, a)
		default:
			err = c.printf("%s\n", strings.TrimSpace(strings.Join(activityRow(a), "  ")))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// noticeLoss tells a person that a watch was lost, or is back.
func (c *cli) noticeLoss(n admin.Notice) {
	if n.Lost != nil {
		fmt.Fprintf(c.stderr, "the yard is gone (%v); waiting for it\n", n.Lost)
	} else {
		fmt.Fprintln(c.stderr, "the yard is back")
	}
}

func activityRow(a admin.Activity) []string {
	by := a.By
	if by == "" {
		by = "-"
	}
	if a.Address != "" {
		by += " (" + a.Address + ")"
	}
	return []string{showTime(a.At), a.Kind, a.Object, by, oneLine(activityDetail(a))}
}

// activityDetail says more of a change.
func activityDetail(a admin.Activity) string {
	var said []string
	for _, m := range a.Moves {
		said = append(said, fmt.Sprintf("%s: %s → %s", strings.Join(m.Partitions, ","), orNobody(m.From), orNobody(m.To)))
	}
	if len(a.Fields) > 0 {
		said = append(said, strings.Join(a.Fields, ", "))
	}
	if a.Count > 0 && len(a.Moves) == 0 {
		said = append(said, strconv.Itoa(a.Count))
	}
	if a.Detail != "" {
		said = append(said, a.Detail)
	}
	return strings.Join(said, "; ")
}

func orNobody(owner string) string {
	if owner == "" {
		return "nobody"
	}
	return owner
}
