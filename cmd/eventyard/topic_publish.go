package main

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/grid"
	"github.com/spf13/cobra"
)

const topicPublishHelp = `Publish one event to a topic, as a program would: at its endpoint, with its key. The data is JSON,
or text. For topics with a custom schema the data is the whole event. An event of a domain names one
of its topics: --domain-topic NAME.`

func (c topicCommands) publish() *cobra.Command {
	var event grid.Event
	var domainTopic string
	cmd := &cobra.Command{
		Use:     "publish TOPIC DATA",
		Short:   "Publish an event",
		Long:    topicPublishHelp,
		Example: `  eventyard topic publish orders '{"total":42}' --type order.placed --subject /shops/1`,
	}
	cmd.Flags().StringVar(&event.Type, "type", "eventyard.test", "the event's `type`")
	cmd.Flags().StringVar(&event.Subject, "subject", "/", "its `subject`")
	cmd.Flags().StringVar(&event.Source, "source", "/eventyard/cli", "its `source`, for CloudEvents")
	cmd.Flags().StringVar(&domainTopic, "domain-topic", "", "`name` of the topic of a domain that it is for")
	cmd.Flags().StringVar(&event.ID, "id", "", "its `id`; made if not given")
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (done published, err error) {
		topic, err := client.Topic(cmd.Context(), args[0])
		if err != nil {
			return done, err
		}
		switch {
		case topic.Schema != "custom" && event.Type == "":
			return done, usagef(cmd, "--type is empty, and every event has one: give it like order.placed")
		case topic.Schema == "custom":
		case topic.Domain && domainTopic == "":
			return done, usagef(cmd, "%s is a domain, whose events name one of its topics: give --domain-topic NAME", topic.Name)
		case !topic.Domain && domainTopic != "":
			return done, usagef(cmd, "%s is no domain: leave --domain-topic out", topic.Name)
		}
		if domainTopic != "" {
			event.Source = domainTopic
		}
		event.Data = asData(args[1])
		if text := strings.TrimSpace(args[1]); !json.Valid([]byte(text)) && strings.IndexAny(text, "{[") == 0 {
			c.warn([]string{"the data looks like JSON and is none, so it is published as text: " + jsonFault(json.Unmarshal([]byte(text), new(any)))})
		}
		c.warn(fileMeant(args[1], `"$(cat FILE)" gives what is in it`))
		if event.ID == "" && topic.Schema != "custom" {
			event.ID = strings.ToLower(rand.Text())
		}
		if err := c.publishTo(cmd, topic, event); err != nil {
			return done, err
		}
		c.noteAllPending(cmd, client, admin.SubscriptionRef{Topic: topic.Name}) // who tries out a webhook waits for this event
		return published{topic.Name, event.ID}, nil
	}, func(done published) error {
		if done.ID == "" { // it is the publisher's own affair
			return c.printf("published to %s\n", done.Topic)
		}
		return c.printf("published to %s, id %s\n", done.Topic, oneLine(done.ID))
	})
}

// published is what is told of an event that was: by its id it is found again.
type published struct {
	Topic string `json:"topic"`
	ID    string `json:"id,omitempty"`
}

// fileMeant warns of a text that names a file as flags do: texts are taken as they are.
func fileMeant(text, instead string) []string {
	name, named := strings.CutPrefix(text, "@")
	if !named {
		return nil
	}
	if _, err := os.Stat(name); err != nil {
		return nil
	}
	return []string{fmt.Sprintf("%q is sent as it is, and no file is read: %s", text, instead)}
}

// asData takes JSON as it is, and everything else as text.
func asData(text string) []byte {
	if json.Valid([]byte(text)) {
		return []byte(text)
	}
	quoted, _ := json.Marshal(text) // text always can be
	return quoted
}

// publishTo publishes at the listener that the command line speaks to already, so that what it
// trusts is trusted here too.
func (c topicCommands) publishTo(cmd *cobra.Command, topic admin.Topic, event grid.Event) error {
	if topic.DisableKeys {
		return &advisedError{fmt.Sprintf("the keys of topic %q are disabled", topic.Name), "publish with a bearer token or a policy of the yard, from a program, or take them again: eventyard topic update " + topic.Name + " --enable-keys"}
	}
	endpoint := strings.TrimSuffix(c.server, "/") + "/topics/" + topic.Name + "/api/events"
	if !strings.Contains(c.server, "://") {
		endpoint = "http://" + endpoint
	}
	cfg := grid.Config{Endpoint: endpoint, Key: topic.Keys.Key1}
	switch topic.Schema {
	case "cloudevents":
		cfg.Schema = grid.CloudEvents
	case "custom":
		cfg.Schema = grid.Custom
	default:
		if !topic.Domain {
			event.Source = "" // which the yard fills in
		}
	}
	trusted, err := c.authorities()
	if err != nil {
		return err
	}
	if trusted != nil {
		cfg.HTTPClient = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	}
	publisher, err := grid.NewClient(cfg)
	if err != nil {
		return err
	}
	return publisher.Publish(cmd.Context(), event)
}
