package console

import (
	"slices"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/admin"
)

// policyCalls are a call of a policy of the namespace, and of a hub.
func policyCalls(method, rest string) []string {
	return []string{method + " /api/v1/policies" + rest, method + " /api/v1/hubs/{hub}/policies" + rest}
}

// accessPath is where the policies of a hub, or of the namespace, are.
func accessPath(hub string) string {
	if hub == "" {
		return at("access")
	}
	return at("hubs", hub, "access")
}

// ofHub is the hub that a form about a policy names; empty: the namespace.
func (v *visit) ofHub() string { return v.r.URL.Query().Get("hub") }

// flagHub names a hub on the command line.
func flagHub(hub string) []string {
	if hub == "" {
		return nil
	}
	return []string{"--hub", hub}
}

var createPolicy = action{
	path: base + "new/policy", calls: policyCalls("POST", ""),
	sheet: func(v *visit) (*sheet, error) {
		of, name := "the whole namespace", v.value("name", "")
		rights := []option{{"Listen", "Listen"}, {"Send", "Send"}, {"Send,Listen", "Send and Listen"}, {"Manage", "Manage, with all others"}}
		if v.ofHub() != "" {
			of = "hub " + v.ofHub()
		} else {
			rights = append(rights, option{"Metrics", "Metrics alone, to scrape them"})
		}
		return &sheet{
			Title: "Create a policy for " + of, About: "A name with two keys and some rights. There are two keys so that one can be replaced while clients use the other.",
			Back: accessPath(v.ofHub()), Buttons: []button{{"Create", "main", act}},
			Fields: []field{
				{Name: "name", Label: "Name", Kind: "text", Value: name, Placeholder: "gateway"},
				{Name: "rights", Label: "Rights", Kind: "select", Value: v.value("rights", "Listen"), Options: rights},
			},
			Command: command(append([]string{"policy", "create", orWord(name, "NAME"), "--rights", strings.ToLower(v.value("rights", "Listen"))}, flagHub(v.ofHub())...)...),
		}, nil
	},
	do: func(v *visit) (outcome, error) {
		_, err := v.api.CreatePolicy(v.ctx, v.ofHub(), admin.PolicyRequest{Name: strings.TrimSpace(v.r.PostFormValue("name")), Rights: words(v.r.PostFormValue("rights"))})
		return outcome{to: accessPath(v.ofHub()), done: "created"}, err
	},
}

// revealPolicy shows the keys of a policy. It is a form, so that no link, and no history, shows them.
var revealPolicy = action{
	path: base + "policies/{policy}/reveal", calls: policyCalls("GET", "/{policy}"),
	do: func(v *visit) (outcome, error) {
		p, err := v.api.Policy(v.ctx, v.ofHub(), v.name("policy"))
		return outcome{sheet: keysSheet(v, p, "The keys of "+p.Name)}, err
	},
}

// copyPolicy gives a connection string to the script, which puts it where one pastes from: no page shows it. It
// is in the activity like every look at a key.
var copyPolicy = action{
	path: base + "policies/{policy}/copy", calls: policyCalls("GET", "/{policy}"),
	do: func(v *visit) (outcome, error) {
		p, err := v.api.Policy(v.ctx, v.ofHub(), v.name("policy"))
		switch {
		case err != nil:
			return outcome{}, err
		case p.ConnectionStrings == nil:
			return outcome{}, wrongInput("This yard has no AMQP listener, and so no connection string.")
		case v.r.URL.Query().Get("key") == "secondary":
			return outcome{text: p.ConnectionStrings.Secondary}, nil
		}
		return outcome{text: p.ConnectionStrings.Primary}, nil
	},
}

// copyPath is where the script gets the connection string of a policy with its primary key.
func copyPath(p admin.Policy) string {
	return with(at("policies", p.Name, "copy"), "hub", p.Hub, "key", "primary")
}

// changePolicy changes what all who show its keys may publish together, the one thing of a policy that can be.
var changePolicy = action{
	path: base + "policies/{policy}/settings", calls: policyCalls("PATCH", "/{policy}"),
	sheet: func(v *visit) (*sheet, error) {
		all, err := v.policiesOf(v.ofHub())
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(all, func(p admin.Policy) bool { return strings.EqualFold(p.Name, v.name("policy")) })
		if at < 0 {
			return nil, notHere(v.r)
		}
		p := all[at]
		return &sheet{
			Title: "Limits of " + p.Name, About: "What all who show one of its keys may publish together. Rights and name of a policy stay as they are: make another for other rights.",
			Back: with(accessPath(v.ofHub()), "policy", p.Name), Buttons: []button{{"Save", "main", act}},
			Command: command(append([]string{"policy", "update", p.Name, "--quota-events", v.value("events", strconv.Itoa(p.Quota.Events)), "--quota-bytes", v.value("bytes", strconv.FormatInt(p.Quota.Bytes, 10))}, flagHub(v.ofHub())...)...),
			Fields: []field{
				{Name: "events", Label: "Events accepted per second", Kind: "number", Value: v.value("events", strconv.Itoa(p.Quota.Events)), Hint: "0: no limit."},
				{Name: "bytes", Label: "Bytes accepted per second", Kind: "number", Value: v.value("bytes", strconv.FormatInt(p.Quota.Bytes, 10)), Hint: "0: no limit."},
			},
		}, nil
	},
	do: func(v *visit) (outcome, error) {
		events, err := v.integer("events")
		if err != nil {
			return outcome{}, err
		}
		bytes, err := v.integer("bytes")
		if err != nil {
			return outcome{}, err
		}
		quota := &admin.QuotaRequest{Events: events}
		if bytes != nil {
			quota.Bytes = new(int64(*bytes))
		}
		p, err := v.api.UpdatePolicy(v.ctx, v.ofHub(), v.name("policy"), admin.PolicyChange{Quota: quota})
		return outcome{to: with(accessPath(v.ofHub()), "policy", p.Name), done: "changed"}, err
	},
}

func keysSheet(v *visit, p admin.Policy, title string) *sheet {
	s := &sheet{
		Title: title, About: "Whoever has one of them has the rights of the policy: " + strings.Join(p.Rights, ", ") + ". They are hidden again after a minute.", Back: accessPath(v.ofHub()),
		Command: command(append([]string{"policy", "show", p.Name}, flagHub(v.ofHub())...)...),
	}
	if c := p.ConnectionStrings; c != nil {
		s.Secrets = append(s.Secrets, secret{"Connection string, primary key", c.Primary}, secret{"Connection string, secondary key", c.Secondary})
	}
	s.Secrets = append(s.Secrets, secret{"Primary key", p.PrimaryKey}, secret{"Secondary key", p.SecondaryKey})
	return s
}

var regeneratePolicy = action{
	path: base + "policies/{policy}/regenerate", calls: policyCalls("POST", "/{policy}/regenerate"),
	sheet: func(v *visit) (*sheet, error) {
		name := v.name("policy")
		return &sheet{
			Title: "Regenerate a key of " + name, About: "Connections, tokens and sessions that use the old key end within moments. Give clients the other key first.", Back: accessPath(v.ofHub()),
			Fields:  []field{{Name: "key", Label: "Which key", Kind: "select", Value: v.value("key", "secondary"), Options: []option{{"primary", "primary"}, {"secondary", "secondary"}}}},
			Buttons: []button{{"Regenerate", "danger", act}}, Command: command(append([]string{"policy", "regenerate", name}, flagHub(v.ofHub())...)...),
		}, nil
	},
	do: func(v *visit) (outcome, error) {
		p, err := v.api.RegeneratePolicy(v.ctx, v.ofHub(), v.name("policy"), v.r.PostFormValue("key"))
		return outcome{sheet: keysSheet(v, p, "New key of "+p.Name)}, err
	},
}

var deletePolicy = action{
	path: base + "policies/{policy}/delete", calls: policyCalls("DELETE", "/{policy}"),
	sheet: func(v *visit) (*sheet, error) {
		name := v.name("policy")
		return deletion("policy", name, "Its keys are refused from then on, and clients that are connected with them are disconnected. This cannot be undone.", accessPath(v.ofHub()),
			command(append([]string{"policy", "delete", name}, flagHub(v.ofHub())...)...)), nil
	},
	do: func(v *visit) (outcome, error) {
		if err := v.typed(v.name("policy")); err != nil {
			return outcome{}, err
		}
		return outcome{to: accessPath(v.ofHub()), done: "deleted"}, v.api.DeletePolicy(v.ctx, v.ofHub(), v.name("policy"))
	},
}
