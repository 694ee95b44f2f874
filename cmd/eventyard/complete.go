package main

import (
	"context"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

// completionPatience is how long a shell may hang on the Tab key.
const completionPatience = 500 * time.Millisecond

// completeHubs offers the hubs of the yard for the first argument.
func (c *cli) completeHubs(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.completeFirst(cmd, args, func(ctx context.Context, client *admin.Client) (names []string, err error) {
		hubs, err := client.Hubs(ctx)
		for _, h := range hubs {
			names = append(names, h.Name)
		}
		return names, err
	})
}

func (c *cli) completeTopics(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.completeFirst(cmd, args, func(ctx context.Context, client *admin.Client) ([]string, error) {
		return topicNames(ctx, client), nil
	})
}

func (c *cli) completeSubscriptions(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.completeFirst(cmd, args, func(ctx context.Context, client *admin.Client) ([]string, error) {
		return subscriptionNames(ctx, client, admin.SubscriptionRef{}), nil
	})
}

func (c *cli) completeFunctions(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.completeFirst(cmd, args, func(ctx context.Context, client *admin.Client) (names []string, err error) {
		all, err := client.Functions(ctx)
		for _, f := range all {
			names = append(names, f.Name)
		}
		return names, err
	})
}

func (c *cli) completeCircuits(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.completeFirst(cmd, args, func(ctx context.Context, client *admin.Client) (names []string, err error) {
		all, err := client.Circuits(ctx)
		for _, one := range all {
			names = append(names, one.Function)
		}
		return names, err
	})
}

// completeFirst offers names that the yard has for the first argument. A yard that does not
// answer offers none.
func (c *cli) completeFirst(cmd *cobra.Command, args []string, ask func(context.Context, *admin.Client) ([]string, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
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
	names, _ := ask(ctx, client)
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completer offers what may stand somewhere.
type completer = func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective)

// completeFlags offers for flags what is offered for a first argument.
func completeFlags(cmd *cobra.Command, offer completer, names ...string) {
	for _, name := range names {
		_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return offer(cmd, nil, begun)
		})
	}
}
