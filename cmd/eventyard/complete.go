package main

import (
	"context"
	"slices"
	"strconv"
	"strings"
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

// namesOf are the names that can stand where a line of usage has a word, and flagNamesOf those behind a
// flag. Some are names within what stands before.
var (
	namesOf = map[string]nameList{
		"HUB": hubNames, "TOPIC": topicNames, "SUBSCRIPTION": subscriptionNames, "NAME": functionNames, "FUNCTION": circuitNames,
	}
	flagNamesOf = map[string]nameList{
		"hub": hubNames, "source-hub": hubNames, "poison": hubNames, "topic": topicNames, "function": functionNames,
	}
	within = map[string]func(hub string) nameList{"GROUP": groupsOf, "PARTITION": partitionsOf, "POLICY": policiesOf}
)

// fixedWords are the words that a flag takes wherever it stands.
var fixedWords = map[string][]string{
	"schema": {"eventgrid", "cloudevents", "custom"}, "rights": {"send", "listen", "manage", "metrics"}, "sync": {"always", "interval", "os"},
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

// groupsOf, partitionsOf and policiesOf name those of a hub; policies without one are those of the namespace.
func groupsOf(hub string) nameList {
	return namesIn(func(client *admin.Client, ctx context.Context) ([]admin.Group, error) {
		return client.Groups(ctx, hub)
	}, func(g admin.Group) string { return g.Name })
}

func partitionsOf(hub string) nameList {
	return func(ctx context.Context, client *admin.Client) (ids []string) {
		h, _ := client.Hub(ctx, hub)
		for i := range h.Partitions {
			ids = append(ids, strconv.Itoa(i))
		}
		return ids
	}
}

func policiesOf(hub string) nameList {
	return namesIn(func(client *admin.Client, ctx context.Context) ([]admin.Policy, error) {
		return client.PoliciesWithoutKeys(ctx, hub)
	}, func(p admin.Policy) string { return p.Name })
}

// completeNames has the shell offer what the yard has, for arguments and flags of a command.
func (c *cli) completeNames(cmd *cobra.Command) {
	names := argumentsOf(cmd)
	known := func(name string) bool { return namesOf[name] != nil || within[name] != nil }
	if slices.ContainsFunc(names, known) {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return c.offerArgument(cmd, names, args)
		}
	}
	for name, list := range flagNamesOf {
		if cmd.Flags().Lookup(name) != nil {
			completeFlags(cmd, c.offer(list), name)
		}
	}
	for name, words := range fixedWords {
		if cmd.Flags().Lookup(name) != nil {
			completeFlags(cmd, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp), name)
		}
	}
	for _, name := range []string{"group", "partition", "policy"} {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return c.offered(cmd, within[strings.ToUpper(name)](hubOf(cmd, args)))
			})
		}
	}
}

// offerArgument offers what can stand behind args. What is yet to be created cannot be offered.
func (c *cli) offerArgument(cmd *cobra.Command, names, args []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) >= len(names) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	switch name := names[len(args)]; {
	case strings.HasPrefix(name, "FILE"):
		return nil, cobra.ShellCompDirectiveDefault
	case cmd.Name() == "create" && len(args) == len(names)-1:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case within[name] != nil:
		return c.offered(cmd, within[name](hubOf(cmd, args)))
	default:
		return c.offered(cmd, namesOf[name])
	}
}

// hubOf is the hub that a command is about: that of its flag, or its first argument.
func hubOf(cmd *cobra.Command, args []string) string {
	if flag := cmd.Flags().Lookup("hub"); flag != nil {
		return flag.Value.String()
	}
	if len(args) > 0 {
		return args[0]
	}
	return ""
}

// offer completes with names that the yard has.
func (c *cli) offer(list nameList) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return c.offered(cmd, list)
	}
}

func (c *cli) offered(cmd *cobra.Command, list nameList) ([]cobra.Completion, cobra.ShellCompDirective) {
	client, err := c.client(cmd)
	if err != nil || list == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	return list(ctx, client), cobra.ShellCompDirectiveNoFileComp
}

// completeFlags offers for flags what is offered for a first argument.
func completeFlags(cmd *cobra.Command, offer cobra.CompletionFunc, names ...string) {
	for _, name := range names {
		_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return offer(cmd, nil, begun)
		})
	}
}
