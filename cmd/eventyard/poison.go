package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

// poisonCommands are those of `eventyard poison`.
type poisonCommands struct{ *cli }

func (c poisonCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "poison", Short: "List, show and redrive the events that functions could not handle"},
		c.list(), c.show(), c.redrive())
}

func (c poisonCommands) list() *cobra.Command {
	var query admin.PoisonQuery
	var hub string
	cmd := &cobra.Command{
		Use:   "list HUB",
		Short: "List the poison events in a hub, the newest first",
		Long: `List the poison events in a hub, the newest first: it is a hub as any other, of any size, and is read from its
end. (Dead letters are numbered, and listed from the oldest on.)`,
		Example: `  eventyard poison list billing-poison
  eventyard poison list billing-poison --since 2h -o json`,
	}
	cmd.Flags().StringVar(&query.Function, "function", "", "only of the function of this `name`")
	cmd.Flags().StringVar(&query.Source, "source", "", "only of events of this `hub`")
	cmd.Flags().StringVar(&query.Since, "since", "", "only those put away since this `time`, like 2026-01-31T18:00:00Z, or so long ago, like 2h")
	cmd.Flags().StringVar(&query.Until, "until", "", "only those put away before this `time`")
	cmd.Flags().BoolVar(&query.Redriven, "redriven", false, "those too that were redriven already")
	cmd.Flags().IntVar(&query.Max, "max", 100, "at most so many, up to "+strconv.Itoa(maxPoisonListed)+"; 0: as many as that")
	completeFlags(cmd, c.offer(hubNames), "source")
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) ([]admin.PoisonEvent, error) {
		if query.Max < 0 || query.Max > maxPoisonListed {
			return nil, usagef(cmd, "--max %d: give 1 to %d, or 0 for all of these", query.Max, maxPoisonListed)
		}
		query.Max = cmp.Or(query.Max, maxPoisonListed)
		hub = args[0]
		all, err := client.Poison(cmd.Context(), hub, query)
		return append([]admin.PoisonEvent{}, all...), ofFunction(cmd, client, hub, err)
	}, func(all []admin.PoisonEvent) error { return c.printPoison(hub, all, query.Max) })
}

// ofFunction names the hub that was meant, where there is none of the name and a function has it.
func ofFunction(cmd *cobra.Command, client *admin.Client, name string, err error) error {
	if !isProblem(err, "not-found") {
		return err
	}
	f, unknown := client.Function(cmd.Context(), name)
	if unknown != nil {
		return err
	}
	return &advisedError{fmt.Sprintf("%s is a function, and no hub", name), "its poison events are in " + f.Poison + ": eventyard poison list " + f.Poison}
}

// maxPoisonListed is the most that the yard lists.
const maxPoisonListed = 1000

func (c poisonCommands) printPoison(hub string, all []admin.PoisonEvent, most int) error {
	err := printTable(c.cli, all, "there are no poison events here; --redriven lists those that were redriven, too",
		[]string{"ID", "PUT AWAY", "ATTEMPTS", "REDRIVEN", "REASON"}, func(e admin.PoisonEvent) []string {
			redriven := "-"
			if e.Redriven {
				redriven = "yes"
			}
			return []string{oneLine(e.ID), showTimeIfAny(e.Poisoned), strconv.Itoa(e.Attempts), redriven, oneLine(shortened(e.Reason, 80))}
		})
	if err != nil || len(all) == 0 {
		return err
	}
	switch len(all) {
	case maxPoisonListed:
		fmt.Fprintln(c.stderr, "there may be more: --since and --function choose among them")
	case most:
		fmt.Fprintf(c.stderr, "there may be more: --max %d lists more of them\n", maxPoisonListed)
	}
	fmt.Fprintf(c.stderr, "one with its event: eventyard poison show %s ID\n", hub)
	return nil
}

func (c poisonCommands) show() *cobra.Command {
	var form output
	cmd := &cobra.Command{Use: "show HUB ID", Short: "Show a poison event with its original, as JSON"}
	form.addTo(cmd) // it is always JSON, and -o json is what people type
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		found, err := client.Poison(cmd.Context(), args[0], admin.PoisonQuery{ID: args[1]})
		if isProblem(err, "poison-not-found") {
			return &advisedError{fmt.Sprintf("there is no poison event %s in hub %s", args[1], args[0]), "eventyard poison list " + args[0] + " --redriven shows all of them"}
		}
		if err != nil {
			return err
		}
		if len(found) != 1 {
			return fmt.Errorf("the yard gave %d poison events for one id", len(found))
		}
		return writeJSON(c.stdout, found[0])
	})
}

const poisonRedriveHelp = `Publish poison events again to the hub they came from: all that were not redriven yet, or those whose ids
are given. They go to the partition of their key, or the one they were in. Functions of another name
pass over them; other readers of that hub see them a second time. An event that was redriven three times
already needs --force. Without --rate they go as fast as the hub takes them, whose quotas hold: no endpoint of somebody
else's has to be spared, as with dead letters.

Anybody with Send on a poison hub chooses which hub the events there name. Where they name several,
--source says which is meant.`

func (c poisonCommands) redrive() *cobra.Command {
	var request admin.PoisonRedriveRequest
	var form output
	cmd := &cobra.Command{
		Use:   "redrive HUB [ID...]",
		Short: "Publish poison events again to the hub they came from",
		Long:  poisonRedriveHelp,
		Example: `  eventyard poison redrive billing-poison --dry-run
  eventyard poison redrive billing-poison
  eventyard poison redrive billing-poison billing/orders/3/1841
  eventyard poison redrive billing-poison --source orders`,
	}
	cmd.Flags().StringVar(&request.Function, "function", "", "only of the function of this `name`")
	cmd.Flags().StringVar(&request.Source, "source", "", "only of events of this `hub`, where they go; needed where they name several")
	cmd.Flags().StringVar(&request.Since, "since", "", "only those put away since this `time`, or so long ago, like 2h")
	cmd.Flags().StringVar(&request.Until, "until", "", "only those put away before this `time`")
	cmd.Flags().BoolVar(&request.Redriven, "redriven", false, "those too that were redriven already; needs ids")
	cmd.Flags().BoolVar(&request.DryRun, "dry-run", false, "only count them")
	cmd.Flags().BoolVar(&request.Force, "force", false, "those too that were redriven too often")
	cmd.Flags().IntVar(&request.Rate, "rate", 0, "`events` a second at most; 0: no limit")
	completeFlags(cmd, c.offer(hubNames), "source")
	form.addTo(cmd)
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		request.IDs = args[1:]
		done, err := c.redrivePoison(cmd, client, args[0], request)
		if err != nil {
			if done.Redriven > 0 {
				fmt.Fprintf(c.stderr, "redrove %s to hub %s before this\n", counted(done.Redriven, "event"), oneLine(done.Hub))
			}
			return adviseSource(err, args[0])
		}
		return c.printPoisonRedriven(form, args, done)
	})
}

// adviseSource says what to do about events of several hubs.
func adviseSource(err error, hub string) error {
	var p *admin.Problem
	if isProblem(err, "several-source-hubs") && errors.As(err, &p) {
		return &advisedError{p.Detail, "say which is meant, like: eventyard poison redrive " + hub + " --source HUB"}
	}
	return err
}

// redrivePoison asks again and again, and shows how far it is. What was redriven is left out the
// next time, so those that were redriven already can only be asked for by their ids; what failed
// fails again, so that the last answer tells of all. The hub that the first went to is asked for
// from then on.
func (c poisonCommands) redrivePoison(cmd *cobra.Command, client *admin.Client, hub string, r admin.PoisonRedriveRequest) (total admin.PoisonRedriven, err error) {
	if r.Redriven && len(r.IDs) == 0 {
		return total, usagef(cmd, "--redriven needs the ids of the events that are meant")
	}
	bar := newProgress(c.stderr)
	defer bar.clear()
	for {
		done, err := client.RedrivePoison(cmd.Context(), hub, r)
		if err != nil {
			return total, err
		}
		total.Redriven += done.Redriven
		total.Failed, total.Errors, total.Hub, total.DryRun = done.Failed, done.Errors, cmp.Or(total.Hub, done.Hub), done.DryRun
		if !done.More {
			return total, nil
		}
		r.Source = total.Hub
		bar.show(func() string { return counted(total.Redriven, "event") + " redriven" })
	}
}

// printPoisonRedriven also tells of ids, which stand behind the hub in args, that were asked for in
// vain.
func (c poisonCommands) printPoisonRedriven(form output, args []string, done admin.PoisonRedriven) error {
	if form == asJSON {
		if err := writeJSON(c.stdout, done); err != nil {
			return err
		}
	} else {
		line := "redrove "
		if done.DryRun {
			line = "would redrive "
		}
		line += counted(done.Redriven, "event")
		if done.Hub != "" {
			line += " to hub " + done.Hub
		}
		fmt.Fprintln(c.stdout, oneLine(line))
	}
	for _, text := range done.Errors {
		fmt.Fprintln(c.stderr, oneLine(text))
	}
	if done.Failed > 0 {
		return &advisedError{counted(done.Failed, "event") + " could not be redriven", "eventyard poison list " + args[0] + " shows what is left"}
	}
	asked := slices.Compact(slices.Sorted(slices.Values(args[1:])))
	if missing := len(asked) - done.Redriven; missing > 0 {
		return &advisedError{counted(missing, "event") + " of those asked for could not be found, or had been redriven already",
			"eventyard poison list " + args[0] + " --redriven shows all; --redriven redrives again"}
	}
	return nil
}
