package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/spf13/cobra"
)

const scrubHelp = `Read everything that each NATS server keeps of the yard, compare it, and judge what is in it: that
all servers have the same messages, that their checksums are right, that the numbers of events
follow from them without a gap, and that the node has the entries in memory as the servers have
them. The yard serves meanwhile, and nothing is changed.

Each finding is printed as it is found, with what to do about it. The command ends with code 1
where there are some, or where something could not be looked at, as when a server is gone: that is
said on standard error as soon as it is known, and so is how far it is, every 10 s without a terminal.

It reads at most 32 MiB a second, over all servers, unless --rate says otherwise. Ctrl-C ends it. It
needs Manage to the namespace. Entries in memory are those of the node that is asked: ask
each node by --server to have all of them compared.`

func (c clusterCommands) scrub() *cobra.Command {
	var form output
	var rate quantity.Size
	cmd := &cobra.Command{
		Use: "scrub", Short: "Compare what each server keeps, and look for damage", Long: scrubHelp,
		Example: "  eventyard cluster scrub\n  eventyard cluster scrub --rate 100MB --server https://node-2:8443\n  eventyard cluster scrub -o json",
	}
	form.addTo(cmd)
	cmd.Flags().Var(&rate, "rate", "how many `bytes` are read in a second at most, such as 100MB (default 32MiB)")
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, _ []string) error {
		return c.runScrub(cmd.Context(), client, admin.ScrubRequest{Rate: int64(rate)}, form)
	})
}

func (c clusterCommands) runScrub(ctx context.Context, client *admin.Client, q admin.ScrubRequest, form output) error {
	found := []admin.ScrubFinding{}
	progress := newLongProgress(c.stderr)
	done, err := client.Scrub(ctx, q, func(l admin.ScrubLine) {
		switch {
		case l.Progress != nil:
			progress.show(func() string { return scrubProgress(*l.Progress) })
		case l.Warning != "":
			progress.clear()
			fmt.Fprintf(c.stderr, "%s %s\n", newPaint(c.stderr).yellow("warning:"), oneLine(l.Warning))
		case l.Finding != nil && form == asJSON:
			found = append(found, *l.Finding)
		case l.Finding != nil:
			progress.clear()
			c.showFinding(*l.Finding)
		}
	})
	progress.clear()
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case err != nil:
		return err
	}
	if form == asJSON {
		err = writeJSON(c.stdout, struct {
			admin.Scrub
			Found []admin.ScrubFinding `json:"found"`
		}{done, found})
	} else {
		err = c.showScrub(done)
	}
	if err == nil && (done.Findings > 0 || len(done.Problems) > 0) {
		err = errReported
	}
	return err
}

// scrubProgress says how far a scrub is, and whom it waits for.
func scrubProgress(p admin.ScrubProgress) string {
	if p.Streams == 0 {
		return "asking the servers what they keep"
	}
	return fmt.Sprintf("%d of %d streams, %s read", p.Done, p.Streams, roughBytes(p.Bytes)) + waitingFor(p.Waiting)
}

// waitingFor names the servers that are waited for, if there are some.
func waitingFor(servers []string) string {
	if len(servers) == 0 {
		return ""
	}
	return ", waiting for server " + oneLine(strings.Join(servers, ", "))
}

// showFinding prints what is wrong, where, and what to do.
func (c clusterCommands) showFinding(f admin.ScrubFinding) {
	var where []string
	switch {
	case f.Hub != "":
		where = append(where, "hub "+f.Hub)
	case f.Log != "":
		where = append(where, "log "+f.Log)
	}
	if f.Partition != "" {
		where = append(where, "partition "+f.Partition)
	}
	if f.FirstEvent != nil && f.LastEvent != nil {
		where = append(where, fromTo("event", *f.FirstEvent, *f.LastEvent))
	}
	if f.Entry != "" {
		where = append(where, "entry "+f.Entry)
	}
	if f.Blob != "" {
		where = append(where, "blob body "+f.Blob)
	}
	if f.Server != "" {
		where = append(where, "server "+f.Server)
	}
	where = append(where, "stream "+f.Stream)
	if f.FirstMessage > 0 {
		where = append(where, fromTo("message", f.FirstMessage, f.LastMessage))
	}
	fmt.Fprintf(c.stdout, "%s %s: %s\n  %s\n", newPaint(c.stdout).red(f.Kind+":"), oneLine(strings.Join(where, ", ")), oneLine(f.Detail), oneLine(f.Next))
}

// fromTo names one thing by its number, or several.
func fromTo(what string, first, last int64) string {
	if first == last {
		return what + " " + strconv.FormatInt(first, 10)
	}
	return fmt.Sprintf("%ss %d to %d", what, first, last)
}

func (c clusterCommands) showScrub(s admin.Scrub) error {
	came := "nothing is wrong"
	if s.Findings > 0 {
		came = counted(s.Findings, "finding")
	}
	for _, problem := range s.Problems {
		fmt.Fprintf(c.stderr, "%s %s\n", newPaint(c.stderr).yellow("not looked at:"), oneLine(problem))
	}
	of := "server"
	if len(s.Servers) != 1 {
		of += "s"
	}
	return c.printf("scrubbed by node %s: %s, %s (%s) of %s %s: %s\n", oneLine(s.Node), counted(s.Streams, "stream"),
		counted(s.Messages, "message"), roughBytes(s.Bytes), of, oneLine(strings.Join(s.Servers, ", ")), came)
}

const replicasHelp = `Change how many NATS servers keep each event: 1, 3 or 5. With 3, one server may be lost, with 5 two;
with 1 a lost server loses what it holds. There have to be that many servers in the cluster.

The yard serves meanwhile. Streams are changed one after the other, only while all are well, and
each is waited for until every server has all of it, which takes as long as copying the events.
Take a backup before. Ctrl-C ends it between two looks; the same command goes on from there.

New hubs get the new number at once, whatever --replicas their node was started with; change it
there, too, for the next start. It needs Manage to the namespace, and the yard's NATS user
has to be allowed to publish to $JS.API.STREAM.UPDATE.* meanwhile.`

func (c clusterCommands) replicas() *cobra.Command {
	var form output
	cmd := &cobra.Command{
		Use: "replicas REPLICAS", Short: "Change how many servers keep each event", Long: replicasHelp,
		Example: "  eventyard cluster replicas 3\n  eventyard cluster replicas 5 --yes -o json",
	}
	form.addTo(cmd)
	yes := addYesFlag(cmd)
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		number, err := strconv.Atoi(args[0])
		if err != nil || number != 1 && number != 3 && number != 5 {
			return usagef(cmd, "%q: there are 1, 3 or 5 replicas of each event", args[0])
		}
		status, err := client.Cluster(cmd.Context())
		if err != nil {
			return err
		}
		if status.Servers != nil && status.Servers.Replicas != number {
			if err := c.confirm(cmd, *yes, replicasQuestion(status.Servers.Replicas, number)); err != nil {
				return err
			}
		}
		return c.setReplicas(cmd.Context(), client, number, form)
	})
}

// replicasQuestion says what a change means.
func replicasQuestion(before, after int) string {
	switch {
	case after == 1:
		return fmt.Sprintf("with 1 replica instead of %d a lost server loses what it holds. Is there a backup, and is this what you want?", before)
	case after < before:
		return fmt.Sprintf("with %d replicas instead of %d only %d of the servers may be lost at once. Is there a backup, and is this what you want?", after, before, after/2)
	}
	return fmt.Sprintf("all events are copied to %d servers, stream by stream. Is there a backup, and should it begin?", after)
}

func (c clusterCommands) setReplicas(ctx context.Context, client *admin.Client, number int, form output) error {
	progress := newLongProgress(c.stderr)
	done, err := client.SetReplicas(ctx, admin.ReplicasRequest{Replicas: number, AllowFewer: true}, func(p admin.ReplicasProgress) {
		progress.show(func() string {
			text := fmt.Sprintf("%d of %d streams", p.Done, p.Streams) + waitingFor(p.Behind)
			if p.Lag > 0 {
				text += fmt.Sprintf(" (%s behind)", counted(p.Lag, "message"))
			}
			return text
		})
	})
	progress.clear()
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case err != nil:
		return err
	case form == asJSON:
		return writeJSON(c.stdout, done)
	}
	err = c.printf("%s of each event, before %d: %s of %d changed\n", counted(done.Replicas, "replica"), done.Before, counted(done.Changed, "stream"), done.Streams)
	if err == nil && done.Changed > 0 {
		err = c.printf("start nodes with --replicas %d from now on\n", done.Replicas)
	}
	return err
}
