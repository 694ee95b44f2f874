package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/spf13/cobra"
)

// deadCommands are those of `eventyard dead`.
type deadCommands struct{ *cli }

func (c deadCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "dead", Aliases: []string{"dead-letter"}, Short: "List, show, redrive and purge what could not be delivered"},
		c.list(), c.show(), c.redrive(), c.purge())
}

// choiceFlags say which dead letters are meant.
type choiceFlags struct {
	source sourceFlags
	choice admin.DeadLetterChoice
	// redriven are those of the numbers given that were redriven before.
	redriven map[int64]bool
}

func (f *choiceFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.choice.EventID, "event", "", "only the event of this `id`")
	flags.StringVar(&f.choice.EventType, "type", "", "only events of this `type`")
	flags.StringVar(&f.choice.Reason, "reason", "", "only with this `reason`: "+strings.Join(deadReasons, ", "))
	flags.StringVar(&f.choice.Outcome, "outcome", "", "only with this last `outcome`, like NotFound")
	flags.StringVar(&f.choice.Since, "since", "", "only those that died since this `time`, like 2026-01-31T18:00:00Z, or so long ago, like 2h")
	flags.StringVar(&f.choice.Until, "until", "", "only those that died before this `time`")
	flags.BoolVar(&f.choice.Redriven, "redriven", false, "those too that were redriven already")
	f.source.addTo(cmd)
}

// deadReasons are all there are.
var deadReasons = []string{retry.ReasonAttempts, retry.ReasonAge, retry.ReasonRefused, retry.ReasonHops}

// check refuses a reason that no letter has.
func (f *choiceFlags) check(cmd *cobra.Command) error {
	reason := f.choice.Reason
	if reason == "" || slices.ContainsFunc(deadReasons, func(r string) bool { return strings.EqualFold(r, reason) }) {
		return nil
	}
	return usagef(cmd, "--reason: no dead letter has %q; the reasons are %s", reason, strings.Join(deadReasons, ", "))
}

func (c deadCommands) list() *cobra.Command {
	var flags choiceFlags
	var more bool
	var most int
	cmd := &cobra.Command{Use: "list SUBSCRIPTION", Short: "List dead letters, the oldest first"}
	cmd.Flags().IntVar(&most, "max", 100, "at most so many; 0: all")
	flags.addTo(cmd)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (letters []admin.DeadLetter, err error) {
		if err := flags.check(cmd); err != nil {
			return nil, err
		}
		if most < 0 {
			return nil, usagef(cmd, "--max %d: give 1 or more, or 0 for all of them", most)
		}
		if letters, more, err = listDead(cmd, client, flags.source.which(args[0]), flags.choice, most); err == nil {
			c.noteAllPending(cmd, client, flags.source.which(args[0])) // which is why there are none
		}
		return letters, err
	}, func(letters []admin.DeadLetter) error {
		head := []string{"NUMBER", "DIED", "EVENT", "TYPE", "REASON", "ATTEMPTS", "LAST", "WRITTEN TO", "REDRIVEN"}
		if err := printTable(c.cli, letters, "there are no dead letters here; --redriven lists those that were redriven, too", head, deadRow); err != nil {
			return err
		}
		if more {
			fmt.Fprintln(c.stderr, "there are more: --max 0 lists all of them")
		}
		return nil
	})
}

func deadRow(l admin.DeadLetter) []string {
	last := l.Outcome
	if l.Status != 0 {
		last = strconv.Itoa(l.Status) + " " + last
	}
	file := l.Written[strings.LastIndexAny(l.Written, `/\`)+1:] // without where it is
	return []string{strconv.FormatInt(l.Number, 10), showTime(l.Died), oneLine(l.EventID), oneLine(l.EventType), l.Reason,
		strconv.Itoa(l.Attempts), last, oneLine(cmp.Or(file, "-")), showTimeIfAny(l.Redriven)}
}

// deadPage is how many letters are asked for at once.
const deadPage = 1000

// listDead asks page by page. It also tells whether there are more.
func listDead(cmd *cobra.Command, client *admin.Client, which admin.SubscriptionRef, choice admin.DeadLetterChoice, most int) (all []admin.DeadLetter, more bool, err error) {
	all = []admin.DeadLetter{}
	var from int64
	for {
		want := deadPage
		if most > 0 {
			want = min(want, most+1-len(all)) // one more, to see whether there is one
		}
		page, err := client.DeadLetters(cmd.Context(), which, choice, from, want)
		if err != nil {
			return nil, false, err
		}
		all = append(all, page.Letters...)
		if most > 0 && len(all) > most {
			return all[:most], true, nil
		}
		if from = page.Next; from == 0 {
			return all, false, nil
		}
	}
}

func (c deadCommands) show() *cobra.Command {
	var source sourceFlags
	var form output
	cmd := &cobra.Command{Use: "show SUBSCRIPTION NUMBER", Short: "Show a dead letter with its event, as JSON"}
	form.addTo(cmd) // it is always JSON, and -o json is what people type
	source.addTo(cmd)
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		number, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil {
			return usagef(cmd, "%q is no number: eventyard dead list %s shows them", args[1], args[0])
		}
		letter, err := client.DeadLetter(cmd.Context(), source.which(args[0]), number)
		if err != nil {
			return err
		}
		return writeJSON(c.stdout, letter)
	})
}

func (c deadCommands) purge() *cobra.Command {
	var flags choiceFlags
	cmd := &cobra.Command{Use: "purge SUBSCRIPTION [NUMBER...]", Short: "Delete dead letters permanently"}
	yes := addYesFlag(cmd)
	flags.addTo(cmd)
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		choice, err := flags.choose(cmd, client, args)
		if err != nil {
			return err
		}
		question := "Permanently delete the chosen dead letters of " + args[0] + "? What was written to their target stays there."
		if choice.All() {
			question = "Permanently delete all dead letters of " + args[0] + " that were not redriven? What was written to their target stays there."
		}
		if err := c.confirm(cmd, *yes, question); err != nil {
			return err
		}
		n, err := client.Purge(cmd.Context(), flags.source.which(args[0]), choice)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.stdout, "purged %s\n", counted(n, "dead letter"))
		if n == 0 {
			c.hintRedriven(cmd, client, flags.source.which(args[0]), choice)
		}
		return nil
	})
}
