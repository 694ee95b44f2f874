package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

const deadRedriveHelp = `Deliver dead letters again, to this subscription and nobody else: all of them, those that the flags choose, or
those whose numbers are given. They get new attempts and a new time to live. A letter that was redriven already is left
out unless --redriven is given; one that came back too often (3 times) needs --force.`

func (c deadCommands) redrive() *cobra.Command {
	var flags choiceFlags
	var request admin.RedriveRequest
	cmd := &cobra.Command{
		Use:   "redrive SUBSCRIPTION [NUMBER...]",
		Short: "Deliver dead letters again, to this subscription only",
		Long:  deadRedriveHelp,
		Example: `  eventyard dead redrive billing --since 2h --dry-run
  eventyard dead redrive billing 17 18`,
	}
	cmd.Flags().Float64Var(&request.Rate, "rate", 0, "events a second at most (default 1000)")
	cmd.Flags().BoolVar(&request.Force, "force", false, "those too that came back too often")
	cmd.Flags().BoolVar(&request.DryRun, "dry-run", false, "only count them")
	flags.addTo(cmd)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (done admin.Redriven, err error) {
		if request.DeadLetterChoice, err = flags.choose(cmd, client, args); err != nil {
			return done, err
		}
		if chosen := len(request.Numbers); chosen > 0 && !request.Redriven {
			request.Numbers = slices.DeleteFunc(request.Numbers, func(n int64) bool { return flags.redriven[n] })
			if skipped := chosen - len(request.Numbers); skipped > 0 {
				fmt.Fprintf(c.stderr, "%s of those asked for had been redriven already: --redriven means them, too\n", counted(skipped, "dead letter"))
			}
			if len(request.Numbers) == 0 { // which would mean all
				return admin.Redriven{DryRun: request.DryRun}, nil
			}
		}
		c.noteAllPending(cmd, client, flags.source.which(args[0]))
		done, err = c.redriveAll(cmd, client, flags.source.which(args[0]), request)
		if err == nil && done.Redriven == 0 && done.Skipped == 0 {
			c.hintRedriven(cmd, client, flags.source.which(args[0]), request.DeadLetterChoice)
		}
		return done, err
	}, func(done admin.Redriven) error {
		word := "redrove"
		if done.DryRun {
			word = "would redrive"
		}
		fmt.Fprintf(c.stdout, "%s %s\n", word, counted(done.Redriven, "event"))
		if done.Skipped > 0 {
			fmt.Fprintf(c.stderr, "%s came back too often: fix the receiver, then use --force\n", counted(done.Skipped, "event"))
		}
		return nil
	})
}

// choose reads which letters are meant. Numbers that no letter has are an error: nothing is done
// then.
func (f *choiceFlags) choose(cmd *cobra.Command, client *admin.Client, args []string) (admin.DeadLetterChoice, error) {
	choice := f.choice
	f.redriven = map[int64]bool{}
	if err := f.check(cmd); err != nil {
		return choice, err
	}
	for _, arg := range args[1:] {
		n, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return choice, usagef(cmd, "%q is no number of a dead letter", arg)
		}
		choice.Numbers = append(choice.Numbers, n)
	}
	for _, n := range choice.Numbers {
		letter, err := client.DeadLetter(cmd.Context(), f.source.which(args[0]), n)
		if isProblem(err, "dead-letter-not-found") {
			return choice, &advisedError{fmt.Sprintf("there is no dead letter %d of %s", n, args[0]), "eventyard dead list " + args[0] + " --redriven shows all of them"}
		}
		if err != nil {
			return choice, err
		}
		if letter.Redriven != nil {
			f.redriven[n] = true
		}
	}
	return choice, nil
}

// hintRedriven tells whoever found no letter that there are some which were redriven.
func (c deadCommands) hintRedriven(cmd *cobra.Command, client *admin.Client, which admin.SubscriptionRef, choice admin.DeadLetterChoice) {
	if choice.Redriven || len(choice.Numbers) > 0 {
		return
	}
	choice.Redriven = true
	if page, err := client.DeadLetters(cmd.Context(), which, choice, 0, 1); err == nil && len(page.Letters) > 0 {
		fmt.Fprintln(c.stderr, "those that there are were redriven already: --redriven means them, too")
	}
}

// redriveAll asks again and again, from where the yard ended, and shows how far it is. What dies of
// it meanwhile is left out.
func (c deadCommands) redriveAll(cmd *cobra.Command, client *admin.Client, which admin.SubscriptionRef, r admin.RedriveRequest) (total admin.Redriven, err error) {
	bar := newProgress(c.stderr)
	defer bar.clear()
	pace := newPace(r)
	for {
		r.Max = pace.most
		done, err := client.Redrive(cmd.Context(), which, r)
		if err != nil {
			return total, err
		}
		total.Redriven += done.Redriven
		total.Skipped += done.Skipped
		total.DryRun = done.DryRun
		if done.Next == 0 {
			return total, nil
		}
		r.From, r.Until = done.Next, done.Until
		if err := pace.rest(cmd.Context(), done.Redriven); err != nil {
			return total, err
		}
		bar.show(func() string { return counted(total.Redriven, "event") + " redriven" })
	}
}

// pace keeps to a rate from one request to the next: each asks for a second's worth.
type pace struct {
	most int // zero: as the yard likes
	rate float64
	next time.Time
}

func newPace(r admin.RedriveRequest) *pace {
	p := &pace{next: time.Now()}
	if r.Rate > 0 && !r.DryRun {
		p.rate, p.most = r.Rate, max(1, int(r.Rate))
	}
	return p
}

// rest waits until as many events as went out may have gone out. The error is that of ctx.
func (p *pace) rest(ctx context.Context, events int) error {
	if p.rate == 0 {
		return nil
	}
	p.next = p.next.Add(time.Duration(float64(events) / p.rate * float64(time.Second)))
	select {
	case <-ctx.Done():
		return errInterrupted
	case <-time.After(time.Until(p.next)):
		return nil
	}
}
