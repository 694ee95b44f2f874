package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// completionPatience is how long a shell may hang on the Tab key.
const completionPatience = 500 * time.Millisecond

// completeHubs offers the hubs of the yard for the first argument.
func (c *cli) completeHubs(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	client, err := c.client(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	hubs, err := client.Hubs(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]cobra.Completion, len(hubs))
	for i, h := range hubs {
		names[i] = h.Name
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
