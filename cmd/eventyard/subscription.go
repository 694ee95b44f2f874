package main

import (
	"cmp"
	"fmt"
	"reflect"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/spf13/cobra"
)

// subscriptionCommands are those of `eventyard subscription`.
type subscriptionCommands struct{ *cli }

func (c subscriptionCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "subscription", Aliases: []string{"sub"}, Short: "Say who gets which events, and see how deliveries go"},
		c.create(), c.list(), c.show(), c.attempts(), c.explain(),
		c.update(), c.pause("pause", true), c.pause("resume", false), c.goOn(),
		c.probe(), c.makeKey(), c.rotate(), c.delete())
}

// sourceFlags say whose subscription is meant where its name alone does not.
type sourceFlags struct{ topic, hub, domainTopic string }

func (f *sourceFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.topic, "topic", "", "`name` of its topic, where several sources have a subscription of that name")
	cmd.Flags().StringVar(&f.hub, "source-hub", "", "`name` of its source hub, likewise")
	cmd.Flags().StringVar(&f.domainTopic, "domain-topic", "", "with --topic: `name` of its topic of that domain")
}

func (f *sourceFlags) which(name string) admin.SubscriptionRef {
	return admin.SubscriptionRef{Name: name, Topic: f.topic, Hub: f.hub, DomainTopic: f.domainTopic}
}

const subscriptionCreateHelp = `Subscribe an endpoint to the events of a topic (--topic) or of a hub (--source-hub). The name of a
subscription has 3 to 64 letters, digits and '-'.

The endpoint is a webhook (--endpoint), a hub of the yard (--hub), or clients that receive and
acknowledge by themselves (--pull). A webhook is asked first whether it agrees: by Event Grid's validation
event, or by CloudEvents' OPTIONS request. If it answers neither, somebody has to open the link that is
printed; --skip-validation trusts it.

Each event that matches is delivered at least once. What fails is tried again, for up to 24 hours; what
cannot be delivered goes to the place that --dead-letter names, or is dropped:

  yard              kept in the yard, to be listed and redriven with eventyard dead
  folder:DIR        and written to files there; DIR is inside the data folder
  blob:URL          and written to a blob container
  hub:NAME          and sent to a hub

Filters: KEY OPERATOR [VALUES], for instance
  --filter 'data.total NumberGreaterThan 100'
  --filter 'data.color StringIn red,blue'
  --filter 'subject StringContains /paid/'
  --filter 'data.coupon IsNotNull'`

func (c subscriptionCommands) create() *cobra.Command {
	var request admin.SubscriptionRequest
	cmd := &cobra.Command{
		Use:   "create SUBSCRIPTION",
		Short: "Create a subscription",
		Long:  subscriptionCreateHelp,
		Example: `  eventyard subscription create billing --topic orders --endpoint https://billing.example.com/hook
  eventyard subscription create large --topic orders --endpoint http://127.0.0.1:9000/ --filter 'data.total NumberGreaterThan 100' --dead-letter yard
  eventyard subscription create eu-billing --topic shop --domain-topic eu-west --endpoint http://127.0.0.1:9000/
  eventyard subscription create audit --source-hub orders --endpoint http://127.0.0.1:9000/ --max-events 100`,
	}
	addDefinitionFlags(cmd, spec.Subscription, spec.Create, &request)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.Subscription, error) {
		if err := checkTogether(cmd, spec.Subscription, spec.Create); err != nil {
			return admin.Subscription{}, err
		}
		request.Name = args[0]
		if request.Topic == "" && request.SourceHub == "" {
			return admin.Subscription{}, usagef(cmd, "where do the events come from? give --topic or --source-hub")
		}
		made, err := client.CreateSubscription(cmd.Context(), request)
		if isProblem(err, "subscription-exists") {
			err = &advisedError{fmt.Sprintf("subscription %q exists already", args[0]), "see what it is with: eventyard subscription show " + args[0]}
		}
		return made, err
	}, func(s admin.Subscription) error { return c.printMade("created", s) })
}

// printMade says what there is now, and what a person has to do about it.
func (c subscriptionCommands) printMade(done string, s admin.Subscription) error {
	fmt.Fprintf(c.stdout, "%s subscription %s: events of %s go to %s\n", done, s.Name, showSource(s), showTarget(s))
	for _, key := range s.Signing {
		if key.Text != "" {
			fmt.Fprintf(c.stdout, "receivers check signatures with %s\n", key.Text)
		}
	}
	if s.DeadLetter == "" && s.Pull == nil {
		fmt.Fprintf(c.stdout, "what cannot be delivered is dropped; to keep it: eventyard subscription update %s --dead-letter yard\n", s.Name)
	}
	c.sayPending(s)
	return nil
}

// sayPending says what a person has to do before anything is delivered.
func (c subscriptionCommands) sayPending(s admin.Subscription) {
	if s.State == statePending {
		fmt.Fprintf(c.stdout, "it is pending: the endpoint did not say that it agrees. To agree for it, open\n  %s\n", s.ValidationURL)
	}
}

// statePending is the state of a subscription whose endpoint has yet to agree.
const statePending = "pending"

// notePending names those that get nothing yet, beside what a command is about.
func (c *cli) notePending(all ...admin.Subscription) {
	for _, s := range all {
		if s.State == statePending {
			fmt.Fprintf(c.stderr, "%s is pending and gets nothing before its endpoint agrees. To agree for it, open\n  %s\n",
				s.Name, linkOf(s))
		}
	}
}

// pendingError is for what cannot be done before the endpoint agrees.
func pendingError(s admin.Subscription) error {
	return &advisedError{s.Name + " is pending and gets nothing before its endpoint agrees", "to agree for it, open " + linkOf(s)}
}

// linkOf is where a person agrees for an endpoint.
func linkOf(s admin.Subscription) string {
	return cmp.Or(s.ValidationURL, "the link of: eventyard subscription show "+s.Name)
}

// noteAllPending looks for those that get nothing yet: one, or (no name) all of a source, or of the yard. Where that cannot
// be seen nothing is said: it is beside what the command is about.
func (c *cli) noteAllPending(cmd *cobra.Command, client *admin.Client, which admin.SubscriptionRef) {
	var all []admin.Subscription
	var err error
	if which.Name == "" {
		all, err = client.Subscriptions(cmd.Context(), which)
	} else {
		all = make([]admin.Subscription, 1)
		all[0], err = client.Subscription(cmd.Context(), which, false)
	}
	if err == nil {
		c.notePending(all...)
	}
}

func (c subscriptionCommands) list() *cobra.Command {
	var source sourceFlags
	cmd := &cobra.Command{Use: "list", Short: "List subscriptions"}
	cmd.Flags().StringVar(&source.topic, "topic", "", "only those of the topic of this `name`")
	cmd.Flags().StringVar(&source.hub, "source-hub", "", "only those of the hub of this `name`")
	cmd.Flags().StringVar(&source.domainTopic, "domain-topic", "", "with --topic: only those of the topic of this `name` of that domain")
	return listingStats(c.cli, cmd, func(stats bool) getter[[]admin.Subscription] {
		return func(cmd *cobra.Command, client *admin.Client, _ []string) (all []admin.Subscription, err error) {
			if stats {
				all, err = client.SubscriptionsWithStats(cmd.Context(), source.which(""))
			} else {
				all, err = client.Subscriptions(cmd.Context(), source.which(""))
			}
			c.notePending(all...)
			return all, err
		}
	}, noSubscriptions+"TOPIC --endpoint URL", columns[admin.Subscription]{subscriptionHead, subscriptionRow},
		columns[admin.Subscription]{[]string{"SUBSCRIPTION", "SOURCE", "STATE", "ENDPOINT", "DELIVERED", "WAITING", "BEHIND", "DEAD LETTERS"}, subscriptionStatsRow})
}

func subscriptionStatsRow(s admin.Subscription) []string {
	row := []string{s.Name, showSource(s), s.State, "-", "-", "-", "-", "-"}
	if s.Stats != nil {
		waiting := int64(s.Stats.InFlight+s.Stats.Queued) + s.Stats.Parked
		for _, w := range s.Stats.Waiting {
			waiting += w.Events
		}
		row = append(row[:3], s.Stats.Endpoint.State, thousands(s.Stats.Delivered), thousands(waiting), thousands(s.Stats.Behind), "-")
	}
	if s.DeadLetters != nil {
		row[7] = thousands(s.DeadLetters.Kept)
	}
	return row
}

// noSubscriptions is what a list of none says, up to the topic.
const noSubscriptions = "there are no subscriptions yet; create one with: eventyard subscription create NAME --topic "

var subscriptionHead = []string{"SUBSCRIPTION", "SOURCE", "STATE", "TO", "DEAD LETTERS", "CREATED"}

func subscriptionRow(s admin.Subscription) []string {
	return []string{s.Name, showSource(s), s.State, oneLine(showTarget(s)), oneLine(cmp.Or(s.DeadLetter, noDeadLetters)), showTime(s.Created)}
}

// noDeadLetters stands where nobody said where dead letters go.
const noDeadLetters = "none (dropped)"

func showSource(s admin.Subscription) string {
	if s.SourceHub != "" {
		return "hub " + s.SourceHub
	}
	if s.DomainTopic != "" {
		return "topic " + s.DomainTopic + " of domain " + s.Topic
	}
	return "topic " + s.Topic
}

func showTarget(s admin.Subscription) string {
	switch {
	case s.Hub != "":
		return "hub " + s.Hub
	case s.Pull != nil:
		return "clients that pull them"
	}
	return s.Endpoint
}

func (c subscriptionCommands) update() *cobra.Command {
	var request admin.SubscriptionRequest
	cmd := &cobra.Command{
		Use:   "update SUBSCRIPTION",
		Short: "Change a subscription; what is not given stays",
		Example: `  eventyard subscription update billing --endpoint https://billing.example.com/v2/hook
  eventyard subscription update billing --ttl 2h --filter ''    takes all filters away`,
	}
	addDefinitionFlags(cmd, spec.Subscription, spec.Update, &request)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.Subscription, error) {
		if err := checkTogether(cmd, spec.Subscription, spec.Update); err != nil {
			return admin.Subscription{}, err
		}
		which := admin.SubscriptionRef{Name: args[0], Topic: request.Topic, Hub: request.SourceHub, DomainTopic: request.DomainTopic}
		request.Topic, request.SourceHub, request.DomainTopic = "", "", ""
		if reflect.DeepEqual(request, admin.SubscriptionRequest{}) {
			return admin.Subscription{}, usagef(cmd, "nothing to change: give what is to be different, like --ttl 2h")
		}
		return client.UpdateSubscription(cmd.Context(), which, request)
	}, func(s admin.Subscription) error { return c.printMade("changed", s) })
}

// pause stops deliveries by an operator's word, or lets them go on.
func (c subscriptionCommands) pause(word string, paused bool) *cobra.Command {
	var source sourceFlags
	cmd := &cobra.Command{Use: word + " SUBSCRIPTION", Short: "Let events wait (their time to live runs on)"}
	done := "paused"
	if !paused {
		cmd.Short, done = "Resume deliveries after a pause", "resumed"
	}
	source.addTo(cmd)
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		s, err := client.UpdateSubscription(cmd.Context(), source.which(args[0]), admin.SubscriptionRequest{Paused: &paused})
		if err != nil {
			return err
		}
		if s.State == statePending && !paused {
			fmt.Fprintf(c.stdout, "subscription %s gets nothing yet, and is not paused\n", args[0])
		} else {
			fmt.Fprintf(c.stdout, "%s subscription %s\n", done, args[0])
		}
		c.sayPending(s)
		return nil
	})
}

// goOn is resume under its former name.
func (c subscriptionCommands) goOn() *cobra.Command {
	cmd := c.pause("continue", false)
	run := cmd.RunE
	cmd.Hidden = true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		fmt.Fprintln(c.stderr, "continue is now called resume: eventyard subscription resume "+args[0])
		return run(cmd, args)
	}
	return cmd
}

func (c subscriptionCommands) probe() *cobra.Command {
	var source sourceFlags
	cmd := &cobra.Command{Use: "probe SUBSCRIPTION", Short: "End the probation of its endpoint now: the next event decides whether it is healthy"}
	source.addTo(cmd)
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		before, err := client.Subscription(cmd.Context(), source.which(args[0]), false)
		if err != nil {
			return err
		}
		if before.State == statePending {
			return pendingError(before)
		}
		if err := client.ProbeSubscription(cmd.Context(), source.which(args[0])); err != nil {
			return err
		}
		return c.printf("%s\n", showProbed(before))
	})
}

// showProbed tells what came of it, from how it was before.
func showProbed(before admin.Subscription) string {
	if before.Pull != nil {
		return "nothing had to be ended: " + before.Name + " has no endpoint, its clients receive by themselves"
	}
	state := "healthy"
	if before.Stats != nil {
		state = before.Stats.Endpoint.State
	}
	text := "the endpoint of " + before.Name + " gets events again: its probation is over"
	if state != "probation" && state != "probing" {
		text = "the endpoint of " + before.Name + " was not on probation (it is " + state + "): nothing had to be ended"
	}
	if before.State == "paused" {
		text += "; the subscription is paused, which ends with: eventyard subscription resume " + before.Name
	}
	return text
}

func (c subscriptionCommands) delete() *cobra.Command {
	var source sourceFlags
	cmd := &cobra.Command{Use: "delete SUBSCRIPTION", Short: "Delete a subscription with what waits for it"}
	source.addTo(cmd)
	return c.deleting(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (deletion, error) {
		s, err := client.Subscription(cmd.Context(), source.which(args[0]), false)
		return deletion{
			question: fmt.Sprintf("Delete subscription %s of %s with what waits for it and its dead letters in the yard, for good?", s.Name, showSource(s)),
			do: func() error {
				return client.DeleteSubscription(cmd.Context(), admin.SubscriptionRef{Name: s.Name, Topic: s.Topic, Hub: s.SourceHub, DomainTopic: s.DomainTopic})
			},
			done: "deleted subscription " + s.Name,
		}, err
	})
}
