package main

import (
	"fmt"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/spf13/cobra"
)

const connectionStringHelp = `Print what the official Azure Event Hubs clients are configured with, in any language:
where the yard is, a policy, its key and, with --hub, the hub. It holds a secret; give
each program a policy of its own, with no more rights than it needs.

While every listener of a yard is on loopback, the well-known key of the official emulator is
valid for everything there, and clients that use it get it here: the same connection string
that serve prints. --policy and --secondary ask for the yard's own keys.

For a listener without TLS it says UseDevelopmentEmulator=true, which makes these clients
do without. With --tls it leads to the listener with TLS: its certificate has to
be trusted, see eventyard cert export.

With --blob it prints what the Azure Blob Storage clients take, for the yard's own blob
endpoint: the checkpoint stores of these libraries work with it in place of a storage
account. Its key is the blob account's own and opens all blobs, and nothing else; with
--container it holds no key but a signature that is valid for one container.`

// connectionCommand is `eventyard connection-string`.
type connectionCommand struct{ *cli }

func (c connectionCommand) command() *cobra.Command {
	var query admin.ConnectionStringQuery
	var secondary, tls bool
	cmd := &cobra.Command{
		Use:   "connection-string",
		Short: "Print what clients are configured with",
		Long:  connectionStringHelp,
		Example: `  eventyard connection-string --hub orders
  eventyard connection-string --hub orders --policy till --tls
  eventyard connection-string --blob
  eventyard connection-string --blob --container checkpoints --expires 30d`,
	}
	cmd.Flags().StringVar(&query.Policy, "policy", auth.RootPolicy, "`name` of the policy, the hub's or the namespace's")
	cmd.Flags().BoolVar(&secondary, "secondary", false, "with the secondary key, not the primary one")
	cmd.Flags().BoolVar(&tls, "tls", false, "for the listener with TLS; --tls=false for the one without (default: what fits the yard)")
	cmd.Flags().BoolVar(&query.Blob, "blob", false, "for blob storage clients and their checkpoint stores")
	cmd.Flags().StringVar(&query.Container, "container", "", "with --blob: for this `container` alone")
	cmd.Flags().StringVar(&query.Permissions, "permissions", "", "with --container: `some` of r(ead), c(reate), w(rite), d(elete) and l(ist) (default rcwdl)")
	cmd.Flags().StringVar(&query.Expires, "expires", "", "with --container: how long it is valid, a `duration` (default 90d)")
	c.addHubFlag(cmd, &query.Hub)
	cmd.Flags().Lookup("hub").Usage = "the `hub` that the client uses"
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, _ []string) (shown shownConnection, err error) {
		if query.Container == "" && query.Permissions+query.Expires != "" || query.Container != "" && !query.Blob {
			return shown, usagef(cmd, "--container needs --blob, --permissions and --expires need --container")
		}
		query.Key = keyName(secondary)
		if cmd.Flags().Changed("tls") {
			query.TLS = &tls
		}
		shown.ConnectionString, err = client.ConnectionString(cmd.Context(), query)
		if err == nil && !query.Blob && !secondary && !cmd.Flags().Changed("policy") {
			shown.ConnectionString, err = c.withKnownKey(shown.ConnectionString)
		}
		return shown, err
	}, func(shown shownConnection) error { return c.printf("%s\n", shown.ConnectionString) })
}

type shownConnection struct {
	ConnectionString string `json:"connectionString"`
}

// withKnownKey gives the well-known key in place of the root policy's own to whoever was
// let in by it, which tells that it is good.
func (c connectionCommand) withKnownKey(text string) (string, error) {
	own, _, err := c.givenConnectionString()
	if err != nil {
		return "", err
	}
	if used, err := auth.ParseConnectionString(own); own != "" && (err != nil || used.Key != auth.DevelopmentKey) {
		return text, nil
	}
	given, err := auth.ParseConnectionString(text)
	if err != nil {
		return "", fmt.Errorf("read the yard's answer: %w", err)
	}
	given.Key = auth.DevelopmentKey
	return given.String(), nil
}
