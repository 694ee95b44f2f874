package main

import (
	"context"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/spf13/cobra"
)

// nearError is an error about a name that the yard does not have, with one that it has.
type nearError struct {
	error
	near string
}

func (e *nearError) Unwrap() error { return e.error }

// suggest adds what was probably meant to the error that there is no such topic or subscription. A
// yard that does not answer adds nothing.
func suggest(cmd *cobra.Command, client *admin.Client, args []string, err error) error {
	topic := ""
	if flag := cmd.Flags().Lookup("topic"); flag != nil {
		topic = flag.Value.String()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completionPatience)
	defer cancel()
	word, names := "", []string(nil)
	switch {
	case isProblem(err, "topic-not-found"):
		word, names = topic, topicNames(ctx, client)
		if word == "" && len(args) > 0 {
			word = args[0]
		}
	case isProblem(err, "subscription-not-found") && len(args) > 0:
		word, names = args[0], subscriptionsOf(admin.SubscriptionRef{Topic: topic})(ctx, client)
	}
	if near := config.DidYouMean(word, names); near != "" {
		return &nearError{err, near}
	}
	return err
}
