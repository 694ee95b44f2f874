package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

const subscriptionExplainHelp = `Say whether an event would match a subscription, and which condition of its filter decides: each is
shown with the value that it met. Nothing is published.

The event is JSON, as it is published to the subscription's topic; for a subscription of a hub it is
{"body": …} as eventyard read -o json prints it. Without EVENT it is read from the standard input.`

func (c subscriptionCommands) explain() *cobra.Command {
	var source sourceFlags
	cmd := &cobra.Command{
		Use:   "explain SUBSCRIPTION [EVENT]",
		Short: "Say whether an event would match, and by which condition not",
		Long:  subscriptionExplainHelp,
		Example: `  eventyard subscription explain billing '{"id":"1","subject":"/s","eventType":"order.placed","eventTime":"2026-01-31T12:00:00Z","data":{"total":42}}'
  eventyard read orders -n 1 -o json | eventyard subscription explain audit --source-hub orders`,
	}
	source.addTo(cmd)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.Explanation, error) {
		event, err := c.eventOf(args[1:])
		if err != nil {
			return admin.Explanation{}, err
		}
		if !json.Valid(event) {
			return admin.Explanation{}, usagef(cmd, "EVENT is not JSON: write it as it is published")
		}
		explained, err := client.Explain(cmd.Context(), source.which(args[0]), event)
		if err != nil {
			return explained, err
		}
		s, err := client.Subscription(cmd.Context(), source.which(args[0]), false)
		c.notePending(s) // what matches is not delivered yet
		return explained, err
	}, func(e admin.Explanation) error {
		fmt.Fprintf(c.stdout, "%s: %s\n", e.Subscription, e.Summary)
		if len(e.Conditions) == 0 {
			return nil
		}
		return printTable(c.cli, e.Conditions, "", findingHead, findingRow)
	})
}

// eventOf is the argument, or what is on the standard input.
func (c subscriptionCommands) eventOf(args []string) (json.RawMessage, error) {
	if len(args) > 0 {
		return json.RawMessage(args[0]), nil
	}
	text, err := io.ReadAll(io.LimitReader(c.stdin, maxInputBytes))
	if err != nil {
		return nil, fmt.Errorf("read the event: %w", err)
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return nil, &advisedError{"there is no event: neither an EVENT nor anything on the standard input",
			"give one as it is published, as an argument or through a pipe; eventyard topic read TOPIC -o json shows what they look like"}
	}
	return text, nil
}

var findingHead = []string{"CONDITION", "MET", "PASSES"}

func findingRow(f admin.Finding) []string {
	passes := "yes"
	if !f.Passes {
		passes = "no"
	}
	wants := cmp.Or(string(f.Value), string(f.Values))
	return []string{oneLine(f.Key + " " + f.Operator + " " + wants), shortened(oneLine(cmp.Or(string(f.Met), "-")), 80), passes}
}
