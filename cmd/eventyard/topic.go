package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/spf13/cobra"
)

// topicCommands are those of `eventyard topic`.
type topicCommands struct{ *cli }

func (c topicCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "topic", Short: "Create, list, show and delete topics, publish to one"},
		c.create(), c.list(), c.show(), c.update(), c.key(),
		c.publish(), c.read(), c.delete())
}

const topicCreateHelp = `Create a topic: a place that events are published to, over HTTP, and from which each
subscription gets those it asked for. What is printed is what Event Grid's publishers need.
Its name has 3 to 50 letters, digits and '-'.

The schema says what is taken: eventgrid, cloudevents, or custom, which is any JSON objects; a
mapping file then says where they have what an envelope needs, as in
{"eventType":{"sourceField":"kind","defaultValue":"order"},"subject":{"sourceField":"path"}}.

A domain is a topic whose events each name a topic of the domain: in topic or, as CloudEvents, in
source. Subscriptions get all of them (--topic), or those of one topic (--domain-topic), which needs
not be made.`

func (c topicCommands) create() *cobra.Command {
	var request admin.TopicRequest
	cmd := &cobra.Command{
		Use:     "create TOPIC",
		Short:   "Create a topic",
		Long:    topicCreateHelp,
		Example: "  eventyard topic create orders\n  eventyard topic create readings --schema cloudevents\n  eventyard topic create shop --domain",
	}
	addDefinitionFlags(cmd, spec.Topic, spec.Create, &request)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.Topic, error) {
		request.Name = args[0]
		topic, err := client.CreateTopic(cmd.Context(), request)
		if isProblem(err, "topic-exists") {
			err = &advisedError{fmt.Sprintf("topic %q exists already", args[0]), "see what it is with: eventyard topic show " + args[0]}
		}
		return topic, err
	}, func(t admin.Topic) error { return c.printTopic("created", t) })
}

func (c topicCommands) printTopic(done string, t admin.Topic) error {
	fmt.Fprintf(c.stdout, "%s %s %s, which takes %s\n", done, topicKind(t), t.Name, schemaName(t.Schema))
	return c.printTopicAccess(t)
}

func topicKind(t admin.Topic) string {
	if t.Domain {
		return "domain"
	}
	return "topic"
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
		fmt.Fprintln(c.stdout, "keys      disabled: neither is valid until eventyard topic update "+t.Name+" --enable-keys")
	}
	return c.printf("key1      %s\nkey2      %s\n", t.Keys.Key1, t.Keys.Key2)
}

func (c topicCommands) list() *cobra.Command {
	return listingStats(c.cli, &cobra.Command{Use: "list", Short: "List all topics"}, func(stats bool) getter[[]admin.Topic] {
		return func(cmd *cobra.Command, client *admin.Client, _ []string) ([]admin.Topic, error) {
			if stats {
				return client.TopicsWithStats(cmd.Context())
			}
			return client.Topics(cmd.Context())
		}
	}, "",
		columns[admin.Topic]{[]string{"TOPIC", "SCHEMA", "SUBSCRIPTIONS", "EVENTS", "BYTES", "CREATED"}, func(t admin.Topic) []string {
			schema := t.Schema
			if t.Domain {
				schema += " (domain)"
			}
			return []string{t.Name, schema, strconv.Itoa(t.Subscriptions), thousands(t.Events), roughBytes(t.Bytes), showTime(t.Created)}
		}},
		columns[admin.Topic]{[]string{"TOPIC", "SUBSCRIPTIONS", "EVENTS", "BYTES", "PUBLISHED", "DELIVERED", "FAILED", "WAITING"}, func(t admin.Topic) []string {
			s := admin.TopicStats{}
			if t.Stats != nil {
				s = *t.Stats
			}
			return []string{t.Name, strconv.Itoa(t.Subscriptions), thousands(t.Events), roughBytes(t.Bytes), rate(s.Published), rate(s.Delivered), rate(s.Failed), figure(s.Waiting)}
		}})
}

func (c topicCommands) show() *cobra.Command {
	var form output
	cmd := &cobra.Command{Use: "show TOPIC", Short: "Show a topic, its endpoint and keys, and who subscribes"}
	form.addTo(cmd)
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
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
		fmt.Fprintf(c.stdout, "%-9s %s\nschema    %s\ncreated   %s\nevents    %s, %s\n%s", topicKind(topic), topic.Name, topic.Schema, showTime(topic.Created),
			thousands(topic.Events), roughBytes(topic.Bytes), quotaRow(10, topic.Quota.Events, "events", topic.Quota.Bytes))
		if len(topic.DomainTopics) > 0 {
			fmt.Fprintf(c.stdout, "topics    %s\n", strings.Join(topic.DomainTopics, ", "))
		}
		if err := c.printTopicAccess(topic); err != nil {
			return err
		}
		fmt.Fprintln(c.stdout)
		c.notePending(subscriptions...)
		return printTable(c.cli, subscriptions, noSubscriptions+topic.Name+" --endpoint URL", subscriptionHead, subscriptionRow)
	})
}

func (c topicCommands) update() *cobra.Command {
	var request admin.TopicRequest
	cmd := &cobra.Command{
		Use:     "update TOPIC",
		Short:   "Change a topic's mapping, its quota, or whether its keys are valid",
		Example: "  eventyard topic update orders --disable-keys\n  eventyard topic update orders --enable-keys",
	}
	addDefinitionFlags(cmd, spec.Topic, spec.Update, &request)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.Topic, error) {
		if given := cmd.Flags().Changed; given("disable-keys") && given("enable-keys") {
			return admin.Topic{}, usagef(cmd, "give --disable-keys or --enable-keys, not both")
		}
		if request.Mapping == nil && request.DisableKeys == nil && request.Quota == nil {
			return admin.Topic{}, usagef(cmd, "nothing to change: give --mapping, --disable-keys, --enable-keys, --quota-events or --quota-bytes")
		}
		return client.UpdateTopic(cmd.Context(), args[0], request)
	}, func(t admin.Topic) error { return c.printTopic("changed", t) })
}

func (c topicCommands) key() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:     "regenerate TOPIC",
		Short:   "Replace one of a topic's keys",
		Example: "  eventyard topic regenerate orders --key key2 --yes",
	}
	cmd.Flags().StringVar(&key, "key", "key1", "`key1` or key2; the other stays valid")
	yes := addYesFlag(cmd)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.Topic, error) {
		if !strings.EqualFold(key, "key1") && !strings.EqualFold(key, "key2") {
			return admin.Topic{}, usagef(cmd, "--key: %q is neither key1 nor key2", key)
		}
		if err := c.confirm(cmd, *yes, fmt.Sprintf("Replace %s of topic %s? Publishers that use the old one lose access.", key, args[0])); err != nil {
			return admin.Topic{}, err
		}
		return client.RegenerateTopicKey(cmd.Context(), args[0], key)
	}, func(t admin.Topic) error {
		return c.printf("key1  %s\nkey2  %s\n", t.Keys.Key1, t.Keys.Key2)
	})
}

func (c topicCommands) delete() *cobra.Command {
	return c.deleting(&cobra.Command{Use: "delete TOPIC", Short: "Delete a topic with its events and subscriptions"},
		func(cmd *cobra.Command, client *admin.Client, args []string) (deletion, error) {
			topic, err := client.Topic(cmd.Context(), args[0])
			return deletion{
				question: fmt.Sprintf("Delete topic %s with its %s and %s, for good?", topic.Name,
					counted(topic.Subscriptions, "subscription"), counted(topic.Events, "event")),
				do:   func() error { return client.DeleteTopic(cmd.Context(), topic.Name) },
				done: "deleted topic " + topic.Name,
			}, err
		})
}
