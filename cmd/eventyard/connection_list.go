package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

// connectionCommands are those of `eventyard connection`.
type connectionCommands struct{ *cli }

func (c connectionCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "connection", Short: "List who is connected"}, c.list())
}

const connectionListHelp = `List the connections of clients to all nodes of a yard: AMQP, also over WebSockets, Kafka and HTTP. HOLDER is
the policy, or the subject of the token, that was shown last. Links are known of AMQP, bytes of AMQP and Kafka,
requests of Kafka and HTTP.`

func (c connectionCommands) list() *cobra.Command {
	var most int
	cmd := &cobra.Command{
		Use: "list", Short: "List the connections of clients", Long: connectionListHelp,
		Example: "  eventyard connection list --max 1000 -o json",
	}
	cmd.Flags().IntVar(&most, "max", 100, "at most so many")
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, _ []string) (admin.Connections, error) {
		if most < 1 {
			return admin.Connections{}, usagef(cmd, "--max is at least 1")
		}
		return allConnections(cmd, client, most)
	}, func(all admin.Connections) error {
		err := printTable(c.cli, all.Connections, "nobody is connected", []string{"NODE", "PROTOCOL", "HOLDER", "ADDRESS", "SINCE", "LINKS", "RECEIVED", "SENT", "REQUESTS"}, connectionRow)
		if len(all.Unanswered) > 0 {
			fmt.Fprintf(c.stderr, "these nodes did not answer: %s\n", strings.Join(all.Unanswered, ", "))
		}
		if all.Next != "" {
			fmt.Fprintf(c.stderr, "these are %d of %d; --max shows more\n", len(all.Connections), all.Total)
		}
		return err
	})
}

// allConnections asks for pages until there are as many as wanted.
func allConnections(cmd *cobra.Command, client *admin.Client, most int) (all admin.Connections, err error) {
	found := []admin.Connection{}
	for {
		all, err = client.Connections(cmd.Context(), all.Next, most-len(found))
		if err != nil {
			return all, err
		}
		if found = append(found, all.Connections...); all.Next == "" || len(found) >= most {
			all.Connections = found
			return all, nil
		}
	}
}

func connectionRow(one admin.Connection) []string {
	links, received, sent, requests := thousands(one.Links), roughBytes(one.ReceivedBytes), roughBytes(one.SentBytes), thousands(one.Requests)
	switch one.Protocol {
	case admin.ProtocolHTTP:
		links, received, sent = "-", "-", "-"
	case admin.ProtocolKafka:
		links = "-"
	default:
		requests = "-"
	}
	return []string{one.Node, one.Protocol, cmp.Or(one.Holder, "-"), one.Address, showTime(one.Since), links, received, sent, requests}
}

// keyUses gives when each key was last used, by policy as the API names it in lower case; nothing where one
// may not see that.
func keyUses(cmd *cobra.Command, client *admin.Client) map[string]admin.KeyUse {
	uses := map[string]admin.KeyUse{}
	all, err := client.Connections(cmd.Context(), "", 1)
	if err != nil { // it takes Manage to the namespace, and a yard that knows of it
		return uses
	}
	for _, u := range all.Keys {
		uses[strings.ToLower(u.Policy)] = u
	}
	return uses
}
