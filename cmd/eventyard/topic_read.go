package main

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

const topicReadHelp = `Show the events that a topic holds, the oldest first: all that were published and that its retention has
not removed, whoever got them. It takes nothing from its subscriptions.`

// maxTopicEvents is how many the yard gives at once.
const maxTopicEvents = 1000

func (c topicCommands) read() *cobra.Command {
	var from string
	var most int
	cmd := &cobra.Command{
		Use: "read TOPIC", Short: "Show the events that a topic holds", Long: topicReadHelp,
		Example: "  eventyard topic read orders --max 10\n  eventyard topic read orders --from 2026-01-02T15:04:05Z -o json",
	}
	cmd.Flags().StringVar(&from, "from", "earliest", "`position` to begin at: earliest, latest, a number, after:NUMBER, a time or an age like 1h")
	cmd.Flags().IntVar(&most, "max", 100, "at most so many, up to 1,000")
	lacks(cmd, "follow", "this shows what the topic holds; what comes goes to subscriptions, and eventyard listen runs a webhook that prints it")
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.TopicEvents, error) {
		if most < 1 || most > maxTopicEvents {
			return admin.TopicEvents{}, usagef(cmd, "--max %d: give 1 to %s", most, thousands(maxTopicEvents))
		}
		begin, err := parseFrom(from, time.Now())
		if err != nil {
			return admin.TopicEvents{}, usagef(cmd, "--from: %w", err)
		}
		return client.ReadTopic(cmd.Context(), args[0], begin, most)
	}, func(page admin.TopicEvents) error {
		return printTable(c.cli, page.Events, "there are no events from there on", []string{"NUMBER", "PUBLISHED", "ID", "TYPE", "SUBJECT"}, topicEventRow)
	})
}

// topicEventRow reads what both schemas call by the same names, but for the type.
func topicEventRow(e admin.TopicEvent) []string {
	var said struct{ ID, Type, EventType, Subject string }
	_ = json.Unmarshal(e.Event, &said) // one of a custom schema may have none of them
	if said.Type == "" {
		said.Type = said.EventType
	}
	return []string{strconv.FormatInt(e.Sequence, 10), showTime(e.Enqueued), oneLine(said.ID), oneLine(said.Type), oneLine(said.Subject)}
}
