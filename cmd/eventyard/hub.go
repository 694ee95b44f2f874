package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/spf13/cobra"
)

// hubCommands are those of `eventyard hub`.
type hubCommands struct{ *cli }

func (c hubCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "hub", Short: "Create, list, show, change and delete hubs"},
		c.create(), c.list(), c.show(), c.update(), c.delete())
}

func (c hubCommands) create() *cobra.Command {
	var request admin.HubRequest
	var form output
	cmd := &cobra.Command{
		Use:     "create HUB",
		Short:   "Create a hub",
		Example: "  eventyard hub create orders --partitions 4 --retention-age 24h --retention-bytes 1GiB",
		Args:    wantArgs("HUB"),
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			request.Name = args[0]
			hub, err := client.CreateHub(cmd.Context(), request)
			if isProblem(err, "hub-exists") {
				return &advisedError{fmt.Sprintf("hub %q exists already", args[0]), "see what it is with: eventyard hub show " + args[0]}
			}
			if err != nil {
				return err
			}
			return c.printHub(form, "created", hub)
		}),
	}
	addDefinitionFlags(cmd, spec.Hub, spec.Create, &request)
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

func (c hubCommands) printHub(form output, done string, hub admin.Hub) error {
	if form == asJSON {
		return writeJSON(c.stdout, hub)
	}
	_, err := fmt.Fprintf(c.stdout, "%s hub %s with %s; events are kept: %s\n", done, hub.Name,
		counted(hub.Partitions, "partition"), showRetention(hub.Retention.Age, hub.Retention.Bytes))
	return err
}

func (c hubCommands) list() *cobra.Command {
	var form output
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all hubs",
		Args:  wantArgs(),
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, _ []string) error {
			hubs, err := client.Hubs(cmd.Context())
			if err != nil {
				return err
			}
			return c.printHubs(form, hubs)
		}),
	}
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

func (c hubCommands) printHubs(form output, hubs []admin.Hub) error {
	if form == asJSON {
		return writeJSON(c.stdout, append([]admin.Hub{}, hubs...))
	}
	if len(hubs) == 0 {
		fmt.Fprintln(c.stderr, "there are no hubs yet; create one with: eventyard hub create NAME")
		return nil
	}
	t := newTable(c.stdout, "HUB", "PARTITIONS", "GROUPS", "KEPT", "CREATED")
	for _, h := range hubs {
		t.row(h.Name, strconv.Itoa(h.Partitions), strconv.Itoa(len(h.Groups)),
			showRetention(h.Retention.Age, h.Retention.Bytes), showTime(h.Created))
	}
	return t.flush()
}

func (c hubCommands) show() *cobra.Command {
	var form output
	cmd := &cobra.Command{
		Use:               "show HUB",
		Short:             "Show a hub, its groups and what its partitions hold",
		Args:              wantArgs("HUB"),
		ValidArgsFunction: c.completeHubs,
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			hub, err := client.Hub(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			partitions, err := client.Partitions(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return c.showHub(form, hub, partitions)
		}),
	}
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

func (c hubCommands) showHub(form output, hub admin.Hub, partitions []admin.Partition) error {
	events, bytes := contents(partitions)
	if form == asJSON {
		return writeJSON(c.stdout, struct {
			admin.Hub
			Events   int64             `json:"events"`
			Contents []admin.Partition `json:"contents"`
		}{hub, events, partitions})
	}
	fmt.Fprintf(c.stdout, "hub         %s\ncreated     %s\nkept        %s\ngroups      %s\npartitions  %d\nevents      %s, %s\n\n",
		hub.Name, showTime(hub.Created), showRetention(hub.Retention.Age, hub.Retention.Bytes),
		strings.Join(hub.Groups, ", "), hub.Partitions, thousands(events), roughBytes(bytes))
	t := newTable(c.stdout, "PARTITION", "EVENTS", "FIRST", "LAST", "BYTES", "LAST ENQUEUED")
	for _, p := range partitions {
		first, last, enqueued := "-", "-", "-"
		if !p.Empty {
			first, last = thousands(p.First), thousands(p.Last)
		}
		if p.LastEnqueued != nil {
			enqueued = showTime(*p.LastEnqueued)
		}
		t.row(p.ID, thousands(p.Events()), first, last, roughBytes(p.Bytes), enqueued)
	}
	return t.flush()
}

// contents is how much all partitions hold together.
func contents(partitions []admin.Partition) (events, bytes int64) {
	for _, p := range partitions {
		events += p.Events()
		bytes += p.Bytes
	}
	return events, bytes
}

func (c hubCommands) update() *cobra.Command {
	var request admin.HubRequest
	var form output
	cmd := &cobra.Command{
		Use:               "update HUB",
		Short:             "Change how long a hub keeps its events",
		Example:           "  eventyard hub update orders --retention-age 30d",
		Args:              wantArgs("HUB"),
		ValidArgsFunction: c.completeHubs,
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			if request.Retention == nil {
				return usagef(cmd, "nothing to change: give --retention-age or --retention-bytes")
			}
			hub, err := client.UpdateHub(cmd.Context(), args[0], request)
			if err != nil {
				return err
			}
			return c.printHub(form, "changed", hub)
		}),
	}
	addDefinitionFlags(cmd, spec.Hub, spec.Update, &request)
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

func (c hubCommands) delete() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:               "delete HUB",
		Short:             "Delete a hub with all its events",
		Args:              wantArgs("HUB"),
		ValidArgsFunction: c.completeHubs,
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			partitions, err := client.Partitions(cmd.Context(), args[0])
			if isProblem(err, "not-found") {
				return &advisedError{fmt.Sprintf("hub %q does not exist, so there is nothing to delete", args[0]), "eventyard hub list shows the hubs there are"}
			}
			if err != nil {
				return err
			}
			events, _ := contents(partitions)
			users := functionsOf(cmd.Context(), client, args[0])
			question := fmt.Sprintf("Delete hub %s with its %s, for good?%s", args[0], counted(events, "event"), users)
			if err := c.confirm(cmd, yes, question); err != nil {
				return err
			}
			if err := client.DeleteHub(cmd.Context(), args[0]); err != nil {
				return err
			}
			if users != "" {
				fmt.Fprintf(c.stderr, "note:%s\n", users)
			}
			_, err = fmt.Fprintf(c.stdout, "deleted hub %s with its %s\n", args[0], counted(events, "event"))
			return err
		}),
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c.addClientFlags(cmd)
}

// functionsOf tells which functions need a hub, where that can be found out: who may not manage is not told.
func functionsOf(ctx context.Context, client *admin.Client, hub string) string {
	all, err := client.Functions(ctx)
	if err != nil {
		return ""
	}
	text := ""
	for _, f := range all {
		switch {
		case strings.EqualFold(f.Hub, hub):
			text += fmt.Sprintf(" Function %s gets its events.", f.Name)
		case strings.EqualFold(f.Poison, hub):
			text += fmt.Sprintf(" Function %s puts away into it what it cannot handle, and waits while it is not there.", f.Name)
		}
	}
	return text
}
