package console

import (
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// accessView is who may do what. It has no keys: these are asked for one by one.
type accessView struct {
	Hub       string
	Policies  []policyRow
	Listeners map[string]string
	Signed    string
	Ends      time.Time
}

type policyRow struct {
	Hub, Name string
	Rights    []string
	Created   time.Time
	Root      bool
}

// rootPolicy is the one that cannot be deleted.
const rootPolicy = "RootManageSharedAccessKey"

var (
	accessPage    = page{template: "access", load: func(v *visit) (*screen, error) { return loadAccess(v, "") }}
	hubAccessPage = page{template: "access", load: func(v *visit) (*screen, error) { return loadAccess(v, v.name("hub")) }}
)

func loadAccess(v *visit, hub string) (*screen, error) {
	policies, err := v.api.PoliciesWithoutKeys(v.ctx, hub)
	if err != nil {
		return nil, err
	}
	info, err := v.api.Info(v.ctx)
	if err != nil {
		return nil, err
	}
	view := accessView{Hub: hub, Listeners: info.Listeners, Signed: v.who.Grant.Holder, Ends: v.who.Ends}
	for _, p := range policies {
		view.Policies = append(view.Policies, policyRow{Hub: hub, Name: p.Name, Rights: p.Rights, Created: p.Created.Time, Root: hub == "" && p.Name == rootPolicy})
	}
	if hub == "" {
		return &screen{Title: "Access", Section: "access", Crumbs: []crumb{{Name: "Access"}}, View: view}, nil
	}
	h, err := v.api.Hub(v.ctx, hub)
	if err != nil {
		return nil, err
	}
	return hubScreen(v, h, "Access", view), nil
}

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
