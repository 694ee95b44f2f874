package main

import (
	"fmt"
	"strconv"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/spf13/cobra"
)

// topicCommands are those of `eventyard topic`.
type topicCommands struct{ *cli }

func (c topicCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "topic", Short: "Create, list, show and delete topics, publish to one"},
		c.create(), c.list(), c.show(), c.update(), c.key(),
		c.publish(), c.delete())
}

const topicCreateHelp = `Create a topic: a place that events are published to, over HTTP, and from which each
subscription gets those it asked for. What is printed is what Event Grid's publishers need.
Its name has 3 to 50 letters, digits and '-'.

The schema says what is taken: eventgrid, cloudevents, or custom, which is any JSON objects; a
mapping file then says where they have what an envelope needs, as in
{"eventType":{"sourceField":"kind","defaultValue":"order"},"subject":{"sourceField":"path"}}.`

func (c topicCommands) create() *cobra.Command {
	var request admin.TopicRequest
	var form output
	cmd := &cobra.Command{
		Use:     "create TOPIC",
		Short:   "Create a topic",
		Long:    topicCreateHelp,
		Example: "  eventyard topic create orders\n  eventyard topic create readings --schema cloudevents",
		Args:    wantArgs("TOPIC"),
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			request.Name = args[0]
			topic, err := client.CreateTopic(cmd.Context(), request)
			if isProblem(err, "topic-exists") {
				return &advisedError{fmt.Sprintf("topic %q exists already", args[0]), "see what it is with: eventyard topic show " + args[0]}
			}
			if err != nil {
				return err
			}
			return c.printTopic(form, "created", topic)
		}),
	}
	addDefinitionFlags(cmd, spec.Topic, spec.Create, &request)
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

func (c topicCommands) printTopic(form output, done string, t admin.Topic) error {
	if form == asJSON {
		return writeJSON(c.stdout, t)
	}
	fmt.Fprintf(c.stdout, "%s topic %s, which takes %s\n", done, t.Name, schemaName(t.Schema))
	return c.printTopicAccess(t)
}

// schemaName is how people call a schema.
func schemaName(kind string) string {
	switch kind {
	case "eventgrid":
		return "events of Event Grid's schema"
	case "cloudevents":
		return "CloudEvents 1.0"
	}
	return "JSON of its own schema"
}

func (c topicCommands) printTopicAccess(t admin.Topic) error {
	fmt.Fprintf(c.stdout, "endpoint  %s\n", t.Endpoint)
	if t.SecureEndpoint != "" {
		fmt.Fprintf(c.stdout, "          %s\n", t.SecureEndpoint)
	}
	if t.Keys == nil {
		return nil
	}
	if t.DisableKeys {
		fmt.Fprintln(c.stdout, "keys      disabled: neither is good until eventyard topic update "+t.Name+" --enable-keys")
	}
	_, err := fmt.Fprintf(c.stdout, "key1      %s\nkey2      %s\n", t.Keys.Key1, t.Keys.Key2)
	return err
}

func (c topicCommands) list() *cobra.Command {
	var form output
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all topics",
		Args:  wantArgs(),
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, _ []string) error {
			topics, err := client.Topics(cmd.Context())
			if err != nil {
				return err
			}
			if form == asJSON {
				return writeJSON(c.stdout, append([]admin.Topic{}, topics...))
			}
			t := newTable(c.stdout, "TOPIC", "SCHEMA", "SUBSCRIPTIONS", "EVENTS", "BYTES", "CREATED")
			for _, topic := range topics {
				t.row(topic.Name, topic.Schema, strconv.Itoa(topic.Subscriptions), thousands(topic.Events), roughBytes(topic.Bytes), showTime(topic.Created))
			}
			return t.flush()
		}),
	}
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

func (c topicCommands) show() *cobra.Command {
	var form output
	cmd := &cobra.Command{
		Use:               "show TOPIC",
		Short:             "Show a topic, its endpoint and keys, and who subscribes",
		Args:              wantArgs("TOPIC"),
		ValidArgsFunction: c.completeTopics,
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			topic, err := client.Topic(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if form == asJSON {
				return writeJSON(c.stdout, topic)
			}
			subscriptions, err := client.Subscriptions(cmd.Context(), admin.SubscriptionRef{Topic: topic.Name})
			if err != nil {
				return err
			}
			fmt.Fprintf(c.stdout, "topic     %s\nschema    %s\ncreated   %s\nevents    %s, %s\n", topic.Name, topic.Schema, showTime(topic.Created),
				thousands(topic.Events), roughBytes(topic.Bytes))
			if err := c.printTopicAccess(topic); err != nil {
				return err
			}
			fmt.Fprintln(c.stdout)
			return c.printSubscriptions(subscriptions, "eventyard subscription create NAME --topic "+topic.Name+" --endpoint URL")
		}),
	}
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

func (c topicCommands) update() *cobra.Command {
	var request admin.TopicRequest
	var form output
	cmd := &cobra.Command{
		Use:               "update TOPIC",
		Short:             "Change a topic's mapping, or whether its keys are good",
		Example:           "  eventyard topic update orders --disable-keys\n  eventyard topic update orders --enable-keys",
		Args:              wantArgs("TOPIC"),
		ValidArgsFunction: c.completeTopics,
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			if given := cmd.Flags().Changed; given("disable-keys") && given("enable-keys") {
				return usagef(cmd, "give --disable-keys or --enable-keys, not both")
			}
			if request.Mapping == nil && request.DisableKeys == nil {
				return usagef(cmd, "nothing to change: give --mapping, --disable-keys or --enable-keys")
			}
			topic, err := client.UpdateTopic(cmd.Context(), args[0], request)
			if err != nil {
				return err
			}
			return c.printTopic(form, "changed", topic)
		}),
	}
	addDefinitionFlags(cmd, spec.Topic, spec.Update, &request)
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

func (c topicCommands) key() *cobra.Command {
	var key string
	var form output
	cmd := &cobra.Command{
		Use:               "regenerate TOPIC",
		Short:             "Make one of a topic's keys anew",
		Example:           "  eventyard topic regenerate orders --key key2",
		Args:              wantArgs("TOPIC"),
		ValidArgsFunction: c.completeTopics,
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			topic, err := client.RegenerateTopicKey(cmd.Context(), args[0], key)
			if err != nil {
				return err
			}
			if form == asJSON {
				return writeJSON(c.stdout, topic)
			}
			_, err = fmt.Fprintf(c.stdout, "key1  %s\nkey2  %s\n", topic.Keys.Key1, topic.Keys.Key2)
			return err
		}),
	}
	cmd.Flags().StringVar(&key, "key", "key1", "`key1` or key2; the other goes on being good")
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

func (c topicCommands) delete() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:               "delete TOPIC",
		Short:             "Delete a topic with its events and subscriptions",
		Args:              wantArgs("TOPIC"),
		ValidArgsFunction: c.completeTopics,
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			topic, err := client.Topic(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			question := fmt.Sprintf("Delete topic %s with its %s and %s, for good?", topic.Name,
				counted(topic.Subscriptions, "subscription"), counted(topic.Events, "event"))
			if err := c.confirm(cmd, yes, question); err != nil {
				return err
			}
			if err := client.DeleteTopic(cmd.Context(), topic.Name); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.stdout, "deleted topic %s\n", topic.Name)
			return err
		}),
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c.addClientFlags(cmd)
}
