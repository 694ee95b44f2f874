package console

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/admin"
)

var createSubscription = action{
	path: base + "new/subscription", calls: []string{"POST /api/v1/subscriptions"},
	sheet: func(v *visit) (*sheet, error) {
		topics, err := v.api.Topics(v.ctx)
		if err != nil {
			return nil, err
		}
		hubs, err := v.api.Hubs(v.ctx)
		if err != nil {
			return nil, err
		}
		source := field{Name: "source", Label: "Events of", Kind: "select", Value: v.value("source", "")}
		for _, t := range topics {
			source.Options = append(source.Options, option{"topics/" + t.Name, "topic " + t.Name})
		}
		for _, h := range hubs {
			source.Options = append(source.Options, option{"hubs/" + h.Name, "hub " + h.Name})
		}
		name, from := orWord(v.value("name", ""), "NAME"), []string{"--topic", "TOPIC"}
		if topic, ok := strings.CutPrefix(source.Value, "topics/"); ok {
			from[1] = topic
		} else if hub, ok := strings.CutPrefix(source.Value, "hubs/"); ok {
			from = []string{"--source-hub", hub}
		}
		return &sheet{
			Title: "Subscribe to a topic or a hub", About: "The endpoint is asked first whether it agrees.", Back: at("topics"),
			Fields: slices.Concat([]field{{Name: "name", Label: "Name", Kind: "text", Value: v.value("name", ""), Placeholder: "billing"}, source}, deliveryFields(v, admin.Subscription{}), []field{
				{Name: "hub", Label: "Or deliver to a hub of the yard", Kind: "text", Value: v.value("hub", ""), Hint: "In place of an endpoint.", Optional: true},
				{Name: "pull", Label: "Or clients receive", Kind: "select", Value: v.value("pull", "no"), Options: yesNo, Hint: "In place of an endpoint."},
			}),
			Buttons: []button{{"Subscribe", "main", act}}, Command: command(slices.Concat([]string{"subscription", "create", name}, from, []string{"--endpoint", "URL"})...),
		}, nil
	},
	do: func(v *visit) (outcome, error) {
		r, err := v.delivery(admin.Subscription{})
		if err != nil {
			return outcome{}, err
		}
		r.Name, r.Hub = strings.TrimSpace(v.r.PostFormValue("name")), v.filled("hub")
		if v.r.PostFormValue("pull") == "yes" {
			r.Pull = &admin.Pull{}
		}
		kind, from, _ := strings.Cut(v.r.PostFormValue("source"), "/")
		if r.Topic = from; kind == "hubs" {
			r.Topic, r.SourceHub = "", from
		}
		s, err := v.api.CreateSubscription(v.ctx, r)
		return outcome{to: subscriptionPath(refOf(s)), done: "created"}, err
	},
}

// filterOf is a subscription's filter, as the API shows it.
type filterOf struct {
	Types    []string          `json:"includedEventTypes"`
	Begins   string            `json:"subjectBeginsWith"`
	Ends     string            `json:"subjectEndsWith"`
	Advanced []json.RawMessage `json:"advancedFilters"`
}

// deliveryFields are what can be said of a delivery here; the command line can say more.
func deliveryFields(v *visit, s admin.Subscription) []field {
	fields := deliveryOf(s)
	for i := range fields {
		fields[i].Value = v.value(fields[i].Name, fields[i].Value)
	}
	return fields
}

// deliveryOf is a subscription's delivery as its form has it.
func deliveryOf(s admin.Subscription) []field {
	optional := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	var f filterOf
	_ = json.Unmarshal(s.Filter, &f) // one without a filter has none
	var conditions []string
	for _, c := range f.Advanced {
		conditions = append(conditions, string(c))
	}
	return []field{
		{Name: "endpoint", Label: "Endpoint", Kind: "text", Value: s.Endpoint, Placeholder: "https://hooks.example.com/billing"},
		{Name: "types", Label: "Types of events", Kind: "text", Value: strings.Join(f.Types, ", "), Placeholder: "order.placed, order.paid", Hint: "Empty: all.", Optional: true},
		{Name: "begins", Label: "Their subject begins with", Kind: "text", Value: f.Begins, Placeholder: "/orders/", Optional: true},
		{Name: "ends", Label: "Their subject ends with", Kind: "text", Value: f.Ends, Placeholder: ".jpg", Optional: true},
		{Name: "filters", Label: "Conditions, one a line", Kind: "area", Value: strings.Join(conditions, "\n"), Placeholder: "data.total NumberGreaterThan 100", Hint: "All have to be met.", Optional: true},
		{Name: "attempts", Label: "Attempts for each event", Kind: "number", Value: optional(s.Retry.Attempts), Optional: true},
		{Name: "ttl", Label: "Time to live", Kind: "text", Value: s.Retry.TTL, Placeholder: "24h", Optional: true},
		{Name: "concurrency", Label: "Requests at once", Kind: "number", Value: optional(s.Concurrency), Optional: true},
		{Name: "orderBy", Label: "In order by", Kind: "text", Value: s.OrderBy, Placeholder: "subject", Hint: "Events with the same value of this path go one after another.", Optional: true},
		{Name: "deadLetter", Label: "Dead letters go to", Kind: "text", Value: s.DeadLetter, Placeholder: "yard", Hint: "yard, folder:DIR, blob:URL or hub:NAME.", Optional: true},
	}
}

// delivery is what a form says that differs from the subscription. A text that is emptied is none, or as usual; the
// endpoint and numbers stay as they are.
func (v *visit) delivery(s admin.Subscription) (r admin.SubscriptionRequest, err error) {
	texts := map[string]**string{"endpoint": &r.Endpoint, "ttl": &r.TTL, "orderBy": &r.OrderBy, "deadLetter": &r.DeadLetter, "begins": &r.SubjectBeginsWith, "ends": &r.SubjectEndsWith}
	numbers := map[string]**int{"attempts": &r.Attempts, "concurrency": &r.Concurrency}
	if err := v.r.ParseForm(); err != nil {
		return r, err
	}
	for _, one := range deliveryOf(s) {
		value := strings.TrimSpace(strings.ReplaceAll(v.r.PostFormValue(one.Name), "\r\n", "\n"))
		if !v.r.PostForm.Has(one.Name) || value == one.Value {
			continue
		}
		switch {
		case one.Name == "types":
			r.Types = append([]string{}, words(value)...) // none is said as none
		case one.Name == "filters":
			r.Filters = []admin.Filter{}
			for line := range strings.Lines(value) {
				if line = strings.TrimSpace(line); line != "" {
					r.Filters = append(r.Filters, admin.Filter(line))
				}
			}
		case numbers[one.Name] != nil:
			if *numbers[one.Name], err = v.integer(one.Name); err != nil {
				return r, err
			}
		case value != "" || one.Name != "endpoint":
			*texts[one.Name] = &value
		}
	}
	return r, nil
}

var changeSubscription = action{
	path: ofSubscription + "/edit", calls: []string{"PATCH /api/v1/subscriptions/{subscription}"},
	sheet: func(v *visit) (*sheet, error) {
		s, err := v.api.Subscription(v.ctx, v.ref(), false)
		if err != nil {
			return nil, err
		}
		return &sheet{
			Title: "Change " + s.Name, About: "Try its filter on an event before and after: the page of the subscription has that beside its filter. The command line can change more.", Back: subscriptionPath(v.ref()), Fields: deliveryFields(v, s),
			Buttons: []button{{"Save", "main", act}}, Command: command("subscription", "update", s.Name),
		}, nil
	},
	do: func(v *visit) (outcome, error) {
		s, err := v.api.Subscription(v.ctx, v.ref(), false)
		if err != nil {
			return outcome{}, err
		}
		r, err := v.delivery(s)
		if err != nil {
			return outcome{}, err
		}
		_, err = v.api.UpdateSubscription(v.ctx, v.ref(), r)
		return outcome{to: subscriptionPath(v.ref()), done: "changed"}, err
	},
}

var deleteSubscription = action{
	path: ofSubscription + "/delete", calls: []string{"DELETE /api/v1/subscriptions/{subscription}"},
	sheet: func(v *visit) (*sheet, error) {
		s, err := v.api.Subscription(v.ctx, v.ref(), false)
		if err != nil {
			return nil, err
		}
		row := newSubscriptionRow(s, 0)
		about := fmt.Sprintf("%s for it and %s are deleted with it. This cannot be undone.", plural(row.Waiting, "event that waits", "events that wait"), plural(row.Dead, "dead letter", "dead letters"))
		return deletion("subscription", s.Name, about, subscriptionPath(v.ref()), command("subscription", "delete", s.Name)), nil
	},
	do: func(v *visit) (outcome, error) {
		if err := v.typed(v.name("subscription")); err != nil {
			return outcome{}, err
		}
		return outcome{to: at("topics"), done: "deleted"}, v.api.DeleteSubscription(v.ctx, v.ref())
	},
}

// What is done to a subscription by a button alone.
var (
	probeSubscription = action{
		path: ofSubscription + "/probe", calls: []string{"POST /api/v1/subscriptions/{subscription}/probe"},
		do: func(v *visit) (outcome, error) {
			return outcome{to: subscriptionPath(v.ref()), done: "probed"}, v.api.ProbeSubscription(v.ctx, v.ref())
		},
	}
	pauseSubscription = action{
		path: ofSubscription + "/pause", calls: []string{"PATCH /api/v1/subscriptions/{subscription}"},
		do: func(v *visit) (outcome, error) {
			_, err := v.api.UpdateSubscription(v.ctx, v.ref(), admin.SubscriptionRequest{Paused: new(true)})
			return outcome{to: subscriptionPath(v.ref()), done: "paused"}, err
		},
	}
	resumeSubscription = action{
		path: ofSubscription + "/resume", calls: []string{"POST /api/v1/subscriptions/{subscription}/resume"},
		do: func(v *visit) (outcome, error) {
			return outcome{to: subscriptionPath(v.ref()), done: "resumed"}, v.api.ResumeSubscription(v.ctx, v.ref())
		},
	}
	rotateKey = action{
		path: ofSubscription + "/rotate", calls: []string{"POST /api/v1/subscriptions/{subscription}/rotate-key"},
		do: func(v *visit) (outcome, error) {
			_, err := v.api.RotateSigningKey(v.ctx, v.ref(), "", "")
			return outcome{to: subscriptionPath(v.ref()), done: "rotated"}, err
		},
	}
)

// deadChoice is which dead letters a form means.
func (v *visit) deadChoice() (admin.DeadLetterChoice, error) {
	choice := admin.DeadLetterChoice{Reason: v.value("reason", "")}
	if number := v.value("number", ""); number != "" {
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return choice, wrongInput(strconv.Quote(number) + " is no number of a dead letter.")
		}
		choice.Numbers = []int64{n}
	}
	return choice, nil
}

func deadFields(v *visit) []field {
	return []field{
		{Name: "reason", Label: "Only those that died of", Kind: "text", Value: v.value("reason", ""), Placeholder: "any reason", Optional: true},
		{Name: "number", Label: "Only this one", Kind: "number", Value: v.value("number", ""), Optional: true},
	}
}

var redriveDead = action{
	path: ofSubscription + "/redrive", calls: []string{"POST /api/v1/subscriptions/{subscription}/redrive"},
	sheet: func(v *visit) (*sheet, error) { return redriveSheet(v, nil), nil },
	do: func(v *visit) (outcome, error) {
		choice, err := v.deadChoice()
		if err != nil {
			return outcome{}, err
		}
		rate, err := v.integer("rate")
		if err != nil {
			return outcome{}, err
		}
		r := admin.RedriveRequest{DeadLetterChoice: choice, DryRun: v.step() != act}
		if rate != nil {
			r.Rate = float64(*rate)
		}
		redriven, skipped, err := v.redriveAll(r)
		if err != nil || !r.DryRun {
			return outcome{to: subscriptionPath(v.ref()), done: "redriven", n: redriven}, err
		}
		said := &note{Tone: "odd", Icon: "rotate-ccw", Text: plural(redriven, "dead letter would be delivered again.", "dead letters would be delivered again."), More: "They go to this subscription and to nobody else."}
		if skipped > 0 {
			said.More = plural(skipped, "was redriven too often and stays.", "were redriven too often and stay.") + " " + said.More
		}
		if again, err := dieAgain(v, choice); err != nil {
			return outcome{}, err
		} else if again != "" {
			said.More = again + " " + said.More
		}
		s := redriveSheet(v, said)
		if redriven > 0 {
			s.Buttons = append(s.Buttons, button{"Redrive " + number(redriven), "main", act})
		}
		return outcome{sheet: s}, nil
	},
}

// redriveAll asks on until the last dead letter was looked at.
func (v *visit) redriveAll(r admin.RedriveRequest) (redriven, skipped int, err error) {
	for {
		some, err := v.api.Redrive(v.ctx, v.ref(), r)
		redriven, skipped = redriven+some.Redriven, skipped+some.Skipped
		if err != nil || some.Next <= r.From {
			return redriven, skipped, err
		}
		r.From, r.Until = some.Next, some.Until
	}
}

// refusedForWhatItIs is the reason of events that an endpoint would not have, however often it is asked.
const refusedForWhatItIs = "UndeliverableDueToClientError"

// dieAgain says which of the dead letters would die again at once if nothing has changed: those that the endpoint
// refused for what they are, by its answer; and that the others wait while it is on probation. Of very many it looks at
// the first thousand.
func dieAgain(v *visit, choice admin.DeadLetterChoice) (string, error) {
	page, err := v.api.DeadLetters(v.ctx, v.ref(), choice, 0, 1000)
	if err != nil {
		return "", err
	}
	refused := map[string]int{}
	for _, letter := range page.Letters {
		wanted := len(choice.Numbers) == 0 || slices.Contains(choice.Numbers, letter.Number)
		if wanted && letter.Reason == refusedForWhatItIs {
			refused[strconv.Itoa(letter.Status)]++
		}
	}
	var said []string
	for _, status := range sorted(refused) {
		said = append(said, fmt.Sprintf("%s refused with %s, and would die again at once unless the endpoint takes what it did not.", plural(refused[status], "was", "were"), status))
	}
	s, err := v.api.Subscription(v.ctx, v.ref(), false)
	if err == nil && s.Stats != nil && s.Stats.Endpoint.State == "probation" {
		said = append(said, "The endpoint is on probation: they wait until it answers.")
	}
	return strings.Join(said, " "), err
}

func redriveSheet(v *visit, said *note) *sheet {
	return &sheet{
		Title: "Redrive dead letters of " + v.name("subscription"), About: "They are delivered again, with as many attempts as at first.", Back: subscriptionPath(v.ref()), Note: said,
		Fields:  append(deadFields(v), field{Name: "rate", Label: "At most per second", Kind: "number", Value: v.value("rate", ""), Placeholder: "no limit", Optional: true}),
		Buttons: []button{{"See what it would do", "", look}}, Command: command("dead", "redrive", v.name("subscription")),
	}
}

var purgeDead = action{
	path: ofSubscription + "/purge", calls: []string{"POST /api/v1/subscriptions/{subscription}/purge"},
	sheet: func(v *visit) (*sheet, error) { return purgeSheet(v, nil), nil },
	do: func(v *visit) (outcome, error) {
		choice, err := v.deadChoice()
		if err != nil {
			return outcome{}, err
		}
		choice.Redriven = true
		if v.step() == act {
			n, err := v.api.Purge(v.ctx, v.ref(), choice)
			return outcome{to: subscriptionPath(v.ref()), done: "purged", n: n}, err
		}
		n, more, err := countDead(v, choice)
		if err != nil {
			return outcome{}, err
		}
		said := &note{Tone: "odd", Icon: "trash-2", Text: plural(n, "dead letter would be deleted.", "dead letters would be deleted."), More: "This cannot be undone."}
		if more {
			said.Text = "More than " + said.Text
		}
		s := purgeSheet(v, said)
		if n > 0 {
			s.Buttons = append(s.Buttons, button{"Delete", "danger", act})
		}
		return outcome{sheet: s}, nil
	},
}

// countDead counts dead letters that fit, up to some thousands; more: there are others.
func countDead(v *visit, choice admin.DeadLetterChoice) (n int, more bool, err error) {
	from := int64(0)
	for range 10 {
		page, err := v.api.DeadLetters(v.ctx, v.ref(), choice, from, 1000)
		n += len(page.Letters)
		if err != nil || page.Next <= from {
			return n, false, err
		}
		from = page.Next
	}
	return n, true, nil
}

func purgeSheet(v *visit, said *note) *sheet {
	return &sheet{
		Title: "Delete dead letters of " + v.name("subscription"), About: "They are deleted permanently.", Back: subscriptionPath(v.ref()), Note: said, Fields: deadFields(v),
		Buttons: []button{{"See what it would do", "", look}}, Command: command("dead", "purge", v.name("subscription")),
	}
}
