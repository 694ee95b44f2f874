package main

import (
	"context"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

// completionPatience is how long a shell may hang on the Tab key.
const completionPatience = 500 * time.Millisecond

// nameList gives the names of what the yard has; none where it does not answer.
type nameList func(context.Context, *admin.Client) []string

var (
	hubNames          = namesIn((*admin.Client).Hubs, func(h admin.Hub) string { return h.Name })
	topicNames        = namesIn((*admin.Client).Topics, func(t admin.Topic) string { return t.Name })
	subscriptionNames = subscriptionsOf(admin.SubscriptionRef{})
	functionNames     = namesIn((*admin.Client).Functions, func(f admin.Function) string { return f.Name })
	circuitNames      = namesIn((*admin.Client).Circuits, func(one admin.Circuit) string { return one.Function })
)

// namesOf are the names that can stand where a line of usage has a word.
var namesOf = map[string]nameList{
	"HUB": hubNames, "TOPIC": topicNames, "SUBSCRIPTION": subscriptionNames, "NAME": functionNames, "FUNCTION": circuitNames,
}

func namesIn[T any](list func(*admin.Client, context.Context) ([]T, error), name func(T) string) nameList {
	return func(ctx context.Context, client *admin.Client) (names []string) {
		all, _ := list(client, ctx)
		for _, one := range all {
			names = append(names, name(one))
		}
		return names
	}
}

// subscriptionsOf names the subscriptions of a source, or all.
func subscriptionsOf(source admin.SubscriptionRef) nameList {
	return namesIn(func(client *admin.Client, ctx context.Context) ([]admin.Subscription, error) {
		return client.Subscriptions(ctx, source)
	}, func(s admin.Subscription) string { return s.Name })
}

// offer completes a first argument with names that the yard has.
func (c *cli) offer(list nameList) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
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
		return list(ctx, client), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlags offers for flags what is offered for a first argument.
func completeFlags(cmd *cobra.Command, offer cobra.CompletionFunc, names ...string) {
	for _, name := range names {
		_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return offer(cmd, nil, begun)
		})
	}
}
