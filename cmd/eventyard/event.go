package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

// eventCommands are those of `eventyard event`.
type eventCommands struct{ *cli }

func (c eventCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "event", Short: "Follow one event: who got it, who did not, and why"}, c.trace())
}

const eventTraceHelp = `Say what became of an event: who got it, who did not, and why. Of each subscription it shows whether the
event matches, and if not which condition it failed; each attempt with its answer; where it waits and
until when; its dead letter. Of a hub's event also which consumer groups have passed it, and for each
function the calls with it, what came of them and why, and whether it was put away as poison. Where the
event belongs to a trace it names that, and where its publisher says what it came from (data.cause, or a
correlation id) it names that, too.

ID is the id that its publisher gave, of an event of a topic. The newest 10,000 events of the topic are
looked at (--before goes on with older ones); without --topic all topics are. HUB/PARTITION/SEQUENCE is an
event of a hub, as eventyard read shows it.

It ends with 0 where everybody has the event who should, with 3 where somebody does not, or not yet,
and with 1 where there is no such event.

The last ten failed attempts of an event that is on its way survive a restart. That an event was
delivered, and when, is remembered for the newest 50 requests of a subscription, or fewer where there are
more than 1,000 subscriptions. Each node remembers the newest calls of its functions, 4,096 that went well
and 1,024 that did not, until it stops.`

func (c eventCommands) trace() *cobra.Command {
	var topic string
	var before int64
	cmd := &cobra.Command{
		Use:   "trace EVENTID",
		Short: "Say what became of an event",
		Long:  eventTraceHelp,
		Example: `  eventyard event trace 7c1d33e0 --topic orders
  eventyard event trace orders/3/1041`,
	}
	cmd.Flags().StringVarP(&topic, "topic", "t", "", "`name` of the topic it was published to (default: all are looked at)")
	cmd.Flags().Int64Var(&before, "before", 0, "with --topic: look at events before this `number`")
	var form output
	form.addTo(cmd)
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		if before < 0 || before > 0 && topic == "" {
			return usagef(cmd, "--before is a number of one topic: give --topic, too")
		}
		find := c.search
		if topic != "" {
			find = func(cmd *cobra.Command, client *admin.Client, id string) (admin.Journeys, error) {
				return client.EventJourney(cmd.Context(), topic, id, before)
			}
		}
		found, err := find(cmd, client, args[0])
		switch {
		case err != nil:
			return err
		case form == asJSON:
			err = writeJSON(c.stdout, found)
		default:
			err = c.printJourneys(found)
		}
		switch {
		case err != nil:
			return err
		case len(found.Events) == 0:
			return notFound(args[0], topic, found)
		case undelivered(found.Events):
			c.explainPending(cmd, client, found.Events)
			return errUndelivered
		}
		return nil
	})
}

// undelivered tells whether somebody who should have an event has it not: a subscription that it matches, or
// a function.
func undelivered(events []admin.Journey) bool {
	for _, j := range events {
		for _, to := range j.Subscriptions {
			if !slices.Contains([]string{"unmatched", "early", "late", "delivered", "settled"}, to.State) {
				return true
			}
		}
		for _, f := range j.Functions {
			if f.State != "handled" {
				return true
			}
		}
	}
	return false
}

// explainPending gives the links of subscriptions that wait for their endpoint's word.
func (c eventCommands) explainPending(cmd *cobra.Command, client *admin.Client, events []admin.Journey) {
	for _, j := range events {
		for _, to := range j.Subscriptions {
			if to.State != "inactive" {
				continue
			}
			which := admin.SubscriptionRef{Name: to.Subscription, Topic: j.Topic, Hub: j.Hub, DomainTopic: to.DomainTopic}
			c.noteAllPending(cmd, client, which)
		}
	}
}

// notFound says where an event is not, and where else to look.
func notFound(id, topic string, found admin.Journeys) error {
	next := "give the id that its publisher gave it or, of an event of a hub, HUB/PARTITION/SEQUENCE"
	if found.Looked.Before != nil && topic != "" {
		next = fmt.Sprintf("look at older ones with: eventyard event trace %s --topic %s --before %d", id, topic, *found.Looked.Before)
	}
	return &advisedError{oneLineEach(found.Summary), next}
}

// search follows an event that may be of a hub or of any topic.
func (c eventCommands) search(cmd *cobra.Command, client *admin.Client, name string) (admin.Journeys, error) {
	var notThere error // what it names is not in its hub
	if hub, partition, sequence, ok := hubPosition(name); ok {
		found, err := client.HubEventJourney(cmd.Context(), hub, partition, sequence)
		var problem *admin.Problem
		if err == nil || !errors.As(err, &problem) || problem.Status != 404 {
			return found, err
		} // else it may be an id with slashes
		notThere = err
	}
	topics, err := client.Topics(cmd.Context())
	if err != nil {
		return admin.Journeys{}, err
	}
	all := admin.Journeys{Events: []admin.Journey{}}
	var not []string
	for _, t := range topics {
		found, err := client.EventJourney(cmd.Context(), t.Name, name, 0)
		if err != nil {
			return all, err
		}
		all.Events, all.Looked.Events = append(all.Events, found.Events...), all.Looked.Events+found.Looked.Events
		if len(found.Events) == 0 {
			not = append(not, found.Summary)
		}
	}
	if len(all.Events) == 0 && notThere != nil {
		return all, notThere
	}
	switch len(all.Events) {
	case 0:
		all.Summary = fmt.Sprintf("no event has the id %s\n  %s", name, strings.Join(not, "\n  "))
	case 1:
		all.Summary = all.Events[0].Summary
	default:
		all.Summary = fmt.Sprintf("%d events have the id %s", len(all.Events), name)
	}
	return all, nil
}

// hubPosition reads HUB/PARTITION/SEQUENCE; a hub's name may have slashes itself.
func hubPosition(name string) (hub, partition string, sequence int64, ok bool) {
	parts := strings.Split(name, "/")
	if len(parts) < 3 {
		return "", "", 0, false
	}
	n := len(parts)
	_, err := strconv.ParseUint(parts[n-2], 10, 16)
	sequence, bad := strconv.ParseInt(parts[n-1], 10, 64)
	return strings.Join(parts[:n-2], "/"), parts[n-2], sequence, err == nil && bad == nil && sequence >= 0
}

func (c eventCommands) printJourneys(all admin.Journeys) error {
	if len(all.Events) > 1 {
		fmt.Fprintln(c.stdout, oneLine(all.Summary)+"\n")
	}
	for i, j := range all.Events {
		if i > 0 {
			fmt.Fprintln(c.stdout)
		}
		fmt.Fprintln(c.stdout, oneLine(verdict(j.Summary)))
		if j.TraceID != "" {
			fmt.Fprintln(c.stdout, "trace "+oneLine(strings.TrimSpace(j.TraceID+" "+j.TraceURL)))
		}
		if j.Cause != nil {
			fmt.Fprintln(c.stdout, oneLine(causeWords(j.Cause)))
		}
		if err := c.printJourney(j); err != nil {
			return err
		}
	}
	return nil
}

// verdict is the answer of a summary, without its reasons, which are printed beneath it one by one.
func verdict(summary string) string {
	const published = ", published to "
	at := max(strings.Index(summary, published), 0) // an id before it may be anything
	answer, _, _ := strings.Cut(summary[at:], "; ")
	return summary[:at] + answer
}

func oneLineEach(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		indent := lines[i][:len(lines[i])-len(strings.TrimLeft(lines[i], " "))]
		lines[i] = indent + oneLine(strings.TrimLeft(lines[i], " "))
	}
	return strings.Join(lines, "\n")
}

func (c eventCommands) printJourney(j admin.Journey) error {
	for _, to := range j.Subscriptions {
		fmt.Fprintf(c.stdout, "\nsubscription %s: %s\n", to.Subscription, oneLine(to.Summary))
		for _, f := range to.Conditions {
			if !f.Passes {
				row := findingRow(f)
				fmt.Fprintf(c.stdout, "  does not pass: %s, met %s\n", row[0], row[1])
			}
		}
		if len(to.Tries) == 0 {
			continue
		}
		if err := printTable(c.cli, to.Tries, "", []string{"  TIME", "STATUS", "OUTCOME", "TOOK", "ANSWER"}, tryRow); err != nil {
			return err
		}
	}
	for _, g := range j.Groups {
		fmt.Fprintf(c.stdout, "\ngroup %s: %s\n", g.Group, groupWords[g.State])
	}
	for _, g := range j.KafkaGroups {
		fmt.Fprintf(c.stdout, "\nKafka group %s: %s\n", oneLine(g.Group), groupWords[g.State])
	}
	for _, f := range j.Functions {
		fmt.Fprintf(c.stdout, "\nfunction %s: %s\n", f.Function, oneLine(f.Summary))
		if len(f.Missing) > 0 {
			fmt.Fprintf(c.stdout, "  its calls are not known of: %s\n", oneLine(strings.Join(f.Missing, ", ")))
		}
		if f.KnownSince != nil && f.KnownSince.After(j.Published) {
			fmt.Fprintf(c.stdout, "  calls before %s are not remembered\n", showTime(*f.KnownSince))
		}
		if len(f.Calls) == 0 {
			continue
		}
		if err := printTable(c.cli, f.Calls, "", []string{"  TIME", "ATTEMPT", "OUTCOME", "TOOK", "EVENTS", "ERROR"}, callRow); err != nil {
			return err
		}
	}
	if j.Omitted > 0 {
		fmt.Fprintf(c.stdout, "\n%s more are left out\n", counted(j.Omitted, "subscription"))
	}
	return nil
}

func callRow(call admin.JourneyCall) []string {
	return []string{"  " + showTime(call.Time), strconv.Itoa(call.Attempt), call.Outcome, showTook(call.Took), strconv.Itoa(call.Events), shortened(oneLine(call.Error), 80)}
}

// causeWords is what an event came from.
func causeWords(cause *admin.JourneyCause) string {
	words := fmt.Sprintf("cause %s, by its %s", cause.Text, cause.By)
	switch {
	case cause.Hub == "":
		return words
	case cause.Published == nil:
		return words + ": that event is not kept any more"
	}
	return words + ", published " + showTime(*cause.Published)
}

var groupWords = map[string]string{
	"past": "it has handled the event", "before": "it has not come to the event yet", "unknown": "it has no checkpoint in the yard",
}

func tryRow(t admin.JourneyTry) []string {
	status, outcome := "-", t.Outcome
	if t.Status != 0 {
		status = strconv.Itoa(t.Status)
	}
	if t.Probe {
		outcome += " (probe)"
	}
	return []string{"  " + showTime(t.Time), status, outcome, showTook(t.Took), shortened(oneLine(t.Said), 80)}
}
