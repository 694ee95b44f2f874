package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/spf13/cobra"
)

// otherNames are flags as other programs call them, with what they are here. The first that a command has is
// what was probably meant.
var otherNames = map[string][]string{
	"since":         {"from"},
	"limit":         {"max", "count"},
	"max":           {"count"},
	"count":         {"max"},
	"partition-key": {"key"},
	"json":          {"output=json"},
	"retries":       {"attempts"},
	"attempts":      {"retries"},
	"max-retries":   {"retries", "attempts"},
	"max-attempts":  {"attempts", "retries"},
	"batch":         {"max-events"},
	"batch-size":    {"max-events"},
	"follow":        {"watch"},
	"watch":         {"follow"},
	"url":           {"endpoint", "server"},
}

// otherName is what a flag of another program is called in this one; empty where the command has no such thing.
func otherName(cmd *cobra.Command, name string) string {
	for _, here := range otherNames[name] {
		flag, value, given := strings.Cut(here, "=")
		f := cmd.Flags().Lookup(flag)
		switch {
		case f == nil || f.Hidden:
		case given && f.Shorthand != "":
			return "-" + f.Shorthand + " " + value
		default:
			return "--" + flag
		}
	}
	return ""
}

// nearError is an error about a name that the yard does not have, with one that it has.
type nearError struct {
	error
	near string
}

func (e *nearError) Unwrap() error { return e.error }

// suggest adds what was probably meant to the error that there is nothing of a name. A yard that does not
// answer adds nothing.
func suggest(cmd *cobra.Command, client *admin.Client, args []string, err error) error {
	var problem *admin.Problem
	if !errors.As(err, &problem) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completionPatience)
	defer cancel()
	word, names := askedFor(cmd, args, problem)
	if names == nil || word == "" {
		return err
	}
	if near := config.DidYouMean(word, names(ctx, client)); near != "" && near != word {
		return &nearError{err, near}
	}
	return err
}

// askedFor is the name that the yard does not have, and the list of those of its kind.
func askedFor(cmd *cobra.Command, args []string, problem *admin.Problem) (word string, names nameList) {
	given := func(flag, argument string) string {
		if f := cmd.Flags().Lookup(flag); f != nil && f.Value.String() != "" {
			return f.Value.String()
		}
		named := func(name string) bool { return strings.Trim(name, "[]") == argument } // which may be left out
		if i := slices.IndexFunc(argumentsOf(cmd), named); i >= 0 && i < len(args) {
			return args[i]
		}
		return ""
	}
	switch topic := given("topic", "TOPIC"); problem.Kind() {
	case "topic-not-found":
		return topic, topicNames
	case "subscription-not-found":
		return given("", "SUBSCRIPTION"), subscriptionsOf(admin.SubscriptionRef{Topic: topic})
	case "function-not-found":
		return given("function", "NAME"), functionNames
	case "circuit-not-found":
		return given("", "FUNCTION"), circuitNames
	case "policy-not-found":
		return given("policy", "POLICY"), policiesOf(given("hub", ""))
	case "not-found": // a hub, or something in one, which is said in words alone
		hub := cmp.Or(given("source-hub", ""), given("hub", "HUB"))
		if strings.Contains(problem.Detail, fmt.Sprintf("consumer group %q", given("group", "GROUP"))) {
			return given("group", "GROUP"), groupsOf(hub)
		}
		if strings.Contains(problem.Detail, fmt.Sprintf("hub %q does not exist", hub)) {
			return hub, hubNames
		}
	}
	return "", nil
}
