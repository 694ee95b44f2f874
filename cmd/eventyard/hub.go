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
		c.create(), c.list(), c.show(), c.density(), c.keys(), c.update(), c.delete())
}

func (c hubCommands) create() *cobra.Command {
	var request admin.HubRequest
	cmd := &cobra.Command{
		Use:     "create HUB",
		Short:   "Create a hub",
		Example: "  eventyard hub create orders --partitions 4 --retention-age 24h --retention-bytes 1GiB",
	}
	addDefinitionFlags(cmd, spec.Hub, spec.Create, &request)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.Hub, error) {
		request.Name = args[0]
		hub, err := client.CreateHub(cmd.Context(), request)
		if isProblem(err, "hub-exists") {
			err = &advisedError{fmt.Sprintf("hub %q exists already", args[0]), "see what it is with: eventyard hub show " + args[0]}
		}
		c.warnRetention(cmd, hub, err)
		return hub, err
	}, func(hub admin.Hub) error { return c.printHub("created", hub) })
}

// warnRetention tells who says that a partition keeps less than one event may have, most likely for want of a unit.
func (c hubCommands) warnRetention(cmd *cobra.Command, hub admin.Hub, err error) {
	const largestEvent = 1 << 20
	if kept := hub.Retention.Bytes; err == nil && cmd.Flags().Changed("retention-bytes") && kept > 0 && kept < largestEvent {
		c.warn([]string{fmt.Sprintf("a partition of hub %s is to keep %s bytes, and a single event may have more; a size with its unit is written like 10GiB", hub.Name, thousands(kept))})
	}
}

func (c hubCommands) printHub(done string, hub admin.Hub) error {
	return c.printf("%s hub %s with %s; events are kept: %s\n%s", done, hub.Name,
		counted(hub.Partitions, "partition"), showRetention(hub.Retention.Age, hub.Retention.Bytes),
		quotaRow(len("quota "), hub.Quota.Events, "events", hub.Quota.Bytes))
}

func (c hubCommands) list() *cobra.Command {
	return listingStats(c.cli, &cobra.Command{Use: "list", Short: "List all hubs"}, func(stats bool) getter[[]admin.Hub] {
		return func(cmd *cobra.Command, client *admin.Client, _ []string) ([]admin.Hub, error) {
			if stats {
				return client.HubsWithStats(cmd.Context())
			}
			return client.Hubs(cmd.Context())
		}
	}, "there are no hubs yet; create one with: eventyard hub create NAME",
		columns[admin.Hub]{[]string{"HUB", "PARTITIONS", "GROUPS", "KEPT", "CREATED"}, func(h admin.Hub) []string {
			return []string{h.Name, strconv.Itoa(h.Partitions), strconv.Itoa(len(h.Groups)),
				showRetention(h.Retention.Age, h.Retention.Bytes), showTime(h.Created)}
		}},
		columns[admin.Hub]{[]string{"HUB", "PARTITIONS", "EVENTS", "BYTES", "PUBLISHED", "BYTES IN", "READ", "SLOWEST GROUP"}, hubStatsRow})
}

func hubStatsRow(h admin.Hub) []string {
	s := admin.HubStats{}
	if h.Stats != nil {
		s = *h.Stats
	}
	behind := "-"
	if s.LagSeconds != nil && s.LagEvents != nil {
		behind = showSpan(inSeconds(*s.LagSeconds)) + ", " + counted(int64(*s.LagEvents), "event")
	}
	return []string{h.Name, strconv.Itoa(h.Partitions), thousands(s.Events), roughBytes(s.Bytes), rate(s.Published), byteRate(s.BytesIn), rate(s.Read), behind}
}

// shownHub is a hub with what its partitions hold.
type shownHub struct {
	admin.Hub
	Events   int64             `json:"events"`
	Contents []admin.Partition `json:"contents"`
}

func (c hubCommands) show() *cobra.Command {
	rates := false
	cmd := printing(c.cli, &cobra.Command{Use: "show HUB", Short: "Show a hub, its groups and what its partitions hold"},
		func(cmd *cobra.Command, client *admin.Client, args []string) (shown shownHub, err error) {
			if shown.Hub, err = client.Hub(cmd.Context(), args[0]); err != nil {
				return shown, err
			}
			if rates {
				var page admin.PartitionPage
				page, err = client.PartitionRates(cmd.Context(), args[0], admin.PageQuery{})
				shown.Contents = page.Partitions
			} else {
				shown.Contents, err = client.Partitions(cmd.Context(), args[0])
			}
			shown.Events, _ = contents(shown.Contents)
			if err == nil { // and not with each send, which programs and pipes do by the thousand
				c.noteAllPending(cmd, client, admin.SubscriptionRef{Hub: shown.Name})
			}
			return shown, err
		}, func(hub shownHub) error {
			_, bytes := contents(hub.Contents)
			fmt.Fprintf(c.stdout, "hub         %s\ncreated     %s\nkept        %s\ngroups      %s\npartitions  %d\nevents      %s, %s\n%s\n",
				hub.Name, showTime(hub.Created), showRetention(hub.Retention.Age, hub.Retention.Bytes),
				strings.Join(hub.Groups, ", "), hub.Partitions, thousands(hub.Events), roughBytes(bytes), quotaRow(12, hub.Quota.Events, "events", hub.Quota.Bytes))
			head := []string{"PARTITION", "EVENTS", "FIRST", "LAST", "BYTES", "LAST ENQUEUED"}
			if rates {
				head = append(head, "PUBLISHED")
			}
			return printTable(c.cli, hub.Contents, "", head, func(p admin.Partition) []string {
				first, last := "-", "-"
				if !p.Empty {
					first, last = thousands(p.First), thousands(p.Last)
				}
				row := []string{p.ID, thousands(p.Events()), first, last, roughBytes(p.Bytes), showTimeIfAny(p.LastEnqueued)}
				if rates {
					row = append(row, rate(p.Published))
				}
				return row
			})
		})
	cmd.Flags().BoolVar(&rates, "rates", false, "also say how many events came to each partition in a second, over the last minute")
	return cmd
}

// contents is how much all partitions hold together.
func contents(partitions []admin.Partition) (events, bytes int64) {
	for _, p := range partitions {
		events += p.Events()
		bytes += p.Bytes
	}
	return events, bytes
}

// partitionsFixed is for who wants more of them later: keys would be in other partitions, out of their order.
const partitionsFixed = "the number of partitions is fixed when a hub is created; create another hub with as many as you need, and copy the events: eventyard read HUB -o json | eventyard send OTHER --json"

func (c hubCommands) update() *cobra.Command {
	var request admin.HubRequest
	cmd := &cobra.Command{
		Use:     "update HUB",
		Short:   "Change how long a hub keeps its events, and its quota",
		Example: "  eventyard hub update orders --retention-age 30d",
	}
	addDefinitionFlags(cmd, spec.Hub, spec.Update, &request)
	lacks(cmd, "partitions", partitionsFixed)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.Hub, error) {
		if request.Retention == nil && request.Quota == nil {
			return admin.Hub{}, usagef(cmd, "nothing to change: give --retention-age, --retention-bytes, --quota-events or --quota-bytes")
		}
		hub, err := client.UpdateHub(cmd.Context(), args[0], request)
		c.warnRetention(cmd, hub, err)
		return hub, err
	}, func(hub admin.Hub) error { return c.printHub("changed", hub) })
}

func (c hubCommands) delete() *cobra.Command {
	return c.deleting(&cobra.Command{Use: "delete HUB", Short: "Delete a hub with all its events"},
		func(cmd *cobra.Command, client *admin.Client, args []string) (deletion, error) {
			partitions, err := client.Partitions(cmd.Context(), args[0])
			if isProblem(err, "not-found") {
				return deletion{}, &advisedError{fmt.Sprintf("hub %q does not exist, so there is nothing to delete", args[0]), "eventyard hub list shows the hubs there are"}
			}
			if err != nil {
				return deletion{}, err
			}
			events, _ := contents(partitions)
			which := fmt.Sprintf("hub %s with its %s", args[0], counted(events, "event"))
			users := functionsOf(cmd.Context(), client, args[0])
			return deletion{
				question: "Delete " + which + ", for good?" + users,
				do: func() error {
					err := client.DeleteHub(cmd.Context(), args[0])
					if err == nil && users != "" {
						fmt.Fprintf(c.stderr, "note:%s\n", users)
					}
					return err
				},
				done: "deleted " + which,
			}, nil
		})
}

// functionsOf tells which functions need a hub, where that can be found out: who may not manage is
// not told.
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
