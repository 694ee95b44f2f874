package main

import (
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

// status asks a yard for the certificates of all its nodes.
func (c certCommands) status() *cobra.Command {
	return printing(c.cli, &cobra.Command{
		Use: "status", Short: "Show the certificates that the nodes of a yard serve with",
		Long: "Show the certificates that the nodes of a yard serve with, and until when they are good. The yard is asked;\neventyard cert show looks into a data folder.",
	}, func(cmd *cobra.Command, client *admin.Client, _ []string) (admin.Certificates, error) {
		return client.Certificates(cmd.Context())
	}, func(all admin.Certificates) error {
		err := printTable(c.cli, all.Nodes, "", []string{"NODE", "NAMES", "ISSUER", "GOOD UNTIL", "SHA256"}, func(n admin.NodeCertificate) []string {
			if n.Certificate == nil {
				return []string{n.Node, "no listener with TLS", "", "", ""}
			}
			return []string{n.Node, strings.Join(n.Certificate.Names, ", "), oneLine(n.Certificate.Issuer), showTime(n.Certificate.Until), n.Certificate.SHA256}
		})
		if len(all.Unanswered) > 0 {
			fmt.Fprintf(c.stderr, "these nodes did not answer: %s\n", strings.Join(all.Unanswered, ", "))
		}
		return err
	})
}
