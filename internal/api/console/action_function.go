package console

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/admin"
)

// changeFunction changes what a function does with its events. Only what was altered in the form is sent, so that
// what somebody else has changed meanwhile stays, and what holds by default goes on to do so.
var changeFunction = action{
	path: base + "functions/{function}/edit", calls: []string{"PATCH /api/v1/functions/{function}"},
	sheet: func(v *visit) (*sheet, error) {
		f, err := v.api.Function(v.ctx, v.name("function"))
		if err != nil {
			return nil, err
		}
		s := &sheet{
			Title: "Change " + f.Name, About: "It goes on from its checkpoint with what you set. Hub and group cannot be changed: checkpoints belong to them.",
			Back: at("functions", f.Name), Command: command("function", "update", f.Name), Buttons: []button{{"Save", "main", act}},
		}
		for _, one := range functionFields(f) {
			one.Value = v.value(one.Name, one.Value)
			s.Fields = append(s.Fields, one)
		}
		return s, nil
	},
	do: func(v *visit) (outcome, error) {
		f, err := v.api.Function(v.ctx, v.name("function"))
		if err != nil {
			return outcome{}, err
		}
		if err := v.r.ParseForm(); err != nil {
			return outcome{}, err
		}
		r, err := functionChanges(f, v.r.PostForm)
		if err != nil {
			return outcome{}, err
		}
		_, err = v.api.UpdateFunction(v.ctx, f.Name, r)
		return outcome{to: at("functions", f.Name), done: "changed"}, err
	},
}

// yesNo are the options of a thing that is done or not.
var yesNo = []option{{"no", "no"}, {"yes", "yes"}}

func yesOrNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// functionFields are a function as its form has it.
func functionFields(f admin.Function) []field {
	retries := strconv.Itoa(f.Retries)
	if f.Retries < 0 {
		retries = "forever"
	}
	optional := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	return []field{
		{Name: "endpoint", Label: "Endpoint", Kind: "text", Value: f.Endpoint},
		{Name: "batch", Label: "Most events of a call", Kind: "number", Value: strconv.Itoa(f.Batch)},
		{Name: "minBatch", Label: "Events waited for", Kind: "number", Value: optional(f.MinBatch), Optional: true},
		{Name: "maxWait", Label: "Waited at most", Kind: "text", Value: f.MaxWait, Placeholder: "1s", Optional: true},
		{Name: "lanes", Label: "Calls at once for each partition", Kind: "number", Value: optional(f.Lanes), Optional: true},
		{Name: "timeout", Label: "A call may take", Kind: "text", Value: f.Timeout},
		{Name: "retries", Label: "Retries", Kind: "text", Value: retries, Hint: "A number, or forever."},
		{Name: "retryDelay", Label: "Wait before a retry", Kind: "text", Value: f.RetryDelay},
		{Name: "exponential", Label: "The wait doubles", Kind: "select", Value: yesOrNo(f.Exponential), Options: yesNo},
		{Name: "retryMaxDelay", Label: "The longest wait", Kind: "text", Value: f.RetryMaxDelay, Placeholder: "1m", Optional: true},
		{Name: "poison", Label: "Poison events go to", Kind: "text", Value: f.Poison, Hint: "A hub, topic:NAME, or none."},
		{Name: "breaker", Label: "The circuit opens after", Kind: "text", Value: f.Breaker, Hint: "Such as 100/30s, or off."},
		{Name: "probe", Label: "An open circuit tries an event after", Kind: "text", Value: f.Probe, Placeholder: "never", Hint: "0: it waits for somebody.", Optional: true},
		{Name: "probeMax", Label: "The longest such wait", Kind: "text", Value: f.ProbeMax, Placeholder: "5m", Optional: true},
		{Name: "countAttempts", Label: "Failed attempts count, too", Kind: "select", Value: yesOrNo(f.CountAttempts), Options: yesNo},
		{Name: "notify", Label: "Who is notified", Kind: "text", Value: strings.Join(f.Notify, ", "), Placeholder: "mailto:ops@example.com", Hint: "Addresses and webhooks, with commas. Empty: nobody.", Optional: true},
	}
}

// functionChanges is what a form says that differs from the function. A field that the form did not have is as it
// is.
func functionChanges(f admin.Function, given url.Values) (r admin.FunctionRequest, err error) {
	texts := map[string]**string{
		"endpoint": &r.Endpoint, "maxWait": &r.MaxWait, "timeout": &r.Timeout, "retryDelay": &r.RetryDelay, "retryMaxDelay": &r.RetryMaxDelay,
		"poison": &r.Poison, "breaker": &r.Breaker, "probe": &r.Probe, "probeMax": &r.ProbeMax,
	}
	numbers := map[string]**int{"batch": &r.Batch, "minBatch": &r.MinBatch, "lanes": &r.Lanes}
	choices := map[string]**bool{"exponential": &r.Exponential, "countAttempts": &r.CountAttempts}
	for _, one := range functionFields(f) {
		value := strings.TrimSpace(given.Get(one.Name))
		if !given.Has(one.Name) || value == one.Value {
			continue
		}
		number, wrong := strconv.Atoi(value)
		switch {
		case one.Name == "notify":
			r.Notify = append([]string{}, words(value)...) // none is said as none
		case one.Name == "retries" && value == "forever":
			r.Retries = new(admin.Forever)
		case value == "":
			// As it is: a definition has no field without a value.
		case texts[one.Name] != nil:
			*texts[one.Name] = new(value)
		case choices[one.Name] != nil:
			*choices[one.Name] = new(value == "yes")
		case wrong != nil:
			return r, wrongInput(strconv.Quote(value) + " is not a whole number: see " + one.Label + ". Nothing was changed.")
		case one.Name == "retries":
			r.Retries = new(admin.Retries(number))
		default:
			*numbers[one.Name] = new(number)
		}
	}
	return r, nil
}

// testNotice sends a notice now, so that who is to be told of an open circuit is known to be reached.
var testNotice = action{
	path: base + "functions/{function}/notice", calls: []string{"POST /api/v1/notices/test"},
	sheet: func(v *visit) (*sheet, error) {
		f, err := v.api.Function(v.ctx, v.name("function"))
		if err != nil {
			return nil, err
		}
		// Of a webhook no more is shown than its host, so that it has to be written here.
		first := ""
		if i := slices.IndexFunc(f.Notify, func(to string) bool { return strings.HasPrefix(to, "mailto:") }); i >= 0 {
			first = f.Notify[i]
		}
		target := v.value("target", first)
		about := "It has no link that resumes anything, and says that it is a test."
		if len(f.Notify) > 0 {
			about = "When the circuit of " + f.Name + " opens, " + strings.Join(f.Notify, " and ") + " are told. " + about
		}
		return &sheet{
			Title: "Send a test notice", About: about, Back: at("functions", f.Name),
			Fields:  []field{{Name: "target", Label: "To", Kind: "text", Value: target, Placeholder: "mailto:ops@example.com", Hint: "mailto: and an address, or the URL of a webhook."}},
			Buttons: []button{{"Send", "main", act}}, Command: command("circuit", "notify-test", cmp.Or(target, "TARGET")),
		}, nil
	},
	do: func(v *visit) (outcome, error) {
		target := v.filled("target")
		if target == nil {
			return outcome{}, wrongInput("Say to whom: mailto: and an address, or the URL of a webhook. Nothing was sent.")
		}
		return outcome{to: at("functions", v.name("function")), done: "noticed"}, v.api.TestNotice(v.ctx, *target)
	},
}
