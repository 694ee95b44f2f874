package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/spf13/cobra"
)

// storageCommands are those of `eventyard storage`.
type storageCommands struct{ *cli }

func (c storageCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "storage", Short: "Show how the storage of a serving yard is, and check it"}, c.show(), c.check())
}

func (c storageCommands) show() *cobra.Command {
	return printing(c.cli, &cobra.Command{
		Use: "show", Short: "Show room, syncs and damage of all nodes, and the last check",
		Long: "Show the room that is left and for how many days, how syncs go, what damage was met, and the last\ncheck, of all nodes of a yard that serves. eventyard doctor looks into the folder of one that does not.",
	}, func(cmd *cobra.Command, client *admin.Client, _ []string) (admin.Storage, error) {
		return client.Storage(cmd.Context())
	}, func(s admin.Storage) error {
		head := []string{"NODE", "ENGINE", "FREE", "TOTAL", "DAYS LEFT", "SYNCS", "MEAN", "REFUSED", "FENCED", "DAMAGED", "CHECK"}
		err := printTable(c.cli, s.Nodes, "", head, storageRow)
		for _, n := range s.Nodes {
			if n.Check != nil {
				c.printProblems(*n.Check)
			}
		}
		if len(s.Unanswered) > 0 {
			fmt.Fprintf(c.stderr, "these nodes did not answer: %s\n", strings.Join(s.Unanswered, ", "))
		}
		return err
	})
}

func storageRow(n admin.NodeStorage) []string {
	size := func(bytes *int64) string {
		if bytes == nil {
			return "-"
		}
		return roughBytes(*bytes)
	}
	mean := "-"
	if n.Syncs > 0 {
		mean = showSpan(inSeconds(n.SyncSeconds / float64(n.Syncs)))
	}
	return []string{
		n.Node, n.Engine, size(n.FreeBytes), size(n.TotalBytes), daysText(n.DaysLeft), thousands(n.Syncs), mean, thousands(n.Refused), thousands(n.Fenced), thousands(n.Damaged), checkText(n.Check),
	}
}

// daysText says how many days are left, as well as that can be known.
func daysText(left *float64) string {
	switch {
	case left == nil:
		return "-"
	case *left > 365:
		return "over 365"
	case *left < 10:
		return strconv.FormatFloat(*left, 'f', 1, 64)
	}
	return strconv.FormatFloat(*left, 'f', 0, 64)
}

// checkText says how far a check is.
func checkText(s *admin.StorageCheck) string {
	switch {
	case s == nil:
		return "-"
	case s.Ended == nil:
		return fmt.Sprintf("%d of %d partitions", s.Partitions, s.TotalPartitions)
	case s.Failed != "":
		return "failed"
	case len(s.Problems) > 0:
		return counted(len(s.Problems)+s.MoreProblems, "problem")
	}
	return "sound at " + showTime(*s.Ended)
}

func (c storageCommands) printProblems(s admin.StorageCheck) {
	for _, problem := range s.Problems {
		fmt.Fprintln(c.stderr, oneLine(problem))
	}
	if s.MoreProblems > 0 {
		fmt.Fprintf(c.stderr, "and %s more\n", thousands(s.MoreProblems))
	}
	if s.Failed != "" {
		fmt.Fprintln(c.stderr, oneLine("the check ended before all was read: "+s.Failed))
	}
}

const storageCheckHelp = `Have the yard read all events that it keeps, while it serves, and report those that cannot be read. It does so in
the background and at a pace, and goes on when this command is interrupted; eventyard storage show tells how far it is. It
ends with code 1 if it finds a problem.

What each NATS server keeps is compared by eventyard cluster scrub; the data folder of a yard that is stopped is checked by
eventyard doctor --deep.`

// checkPoll is how often it is asked how far a check is.
const checkPoll = 500 * time.Millisecond

func (c storageCommands) check() *cobra.Command {
	var rate string
	var form output
	cmd := &cobra.Command{
		Use: "check", Short: "Read all events of a serving yard, and report damage", Long: storageCheckHelp,
		Example: "  eventyard storage check --rate 8MiB",
	}
	cmd.Flags().StringVar(&rate, "rate", "", "`bytes` a second that are read, such as 8MiB; empty: 32MiB")
	form.addTo(cmd)
	lacks(cmd, "data", "this asks a yard that serves; the data folder of one that is stopped is checked by eventyard doctor --data FOLDER --deep")
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, _ []string) error {
		var bytes int64
		if rate != "" {
			var err error
			if bytes, err = quantity.ParseSize(rate); err != nil || bytes < 1 {
				return usagef(cmd, "--rate: give bytes a second, such as 8MiB")
			}
		}
		begun, err := client.CheckStorage(cmd.Context(), admin.StorageCheckRequest{Rate: bytes})
		if err != nil {
			return err
		}
		done, err := c.await(cmd, client, begun)
		if err != nil {
			return err
		}
		if form == asJSON {
			err = writeJSON(c.stdout, done)
		} else {
			err = c.printf("read %s, %s, in %s: %s\n", counted(done.Events, "event"), roughBytes(done.Bytes), counted(done.Partitions, "partition"), checkText(&done))
		}
		c.printProblems(done)
		if err == nil && (len(done.Problems) > 0 || done.Failed != "") {
			return &advisedError{"the storage is not sound", "restore what is damaged from a backup; events outside of it can be read"}
		}
		return err
	})
}

// await asks until the check that was begun has ended. Of several nodes another may be asked than the one that
// does it, so that all are looked at.
func (c storageCommands) await(cmd *cobra.Command, client *admin.Client, begun admin.StorageCheck) (admin.StorageCheck, error) {
	for {
		all, err := client.Storage(cmd.Context())
		if err != nil {
			return begun, err
		}
		for _, n := range all.Nodes {
			if n.Check != nil && n.Check.Ended != nil && n.Check.Began.Equal(begun.Began.Time) {
				return *n.Check, nil
			}
		}
		if err := sleep.For(cmd.Context(), checkPoll, nil); err != nil {
			return begun, err
		}
	}
}
