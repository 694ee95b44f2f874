package console

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/parallel"
)

// accessView is who may do what, by which key, and who is connected. It has no keys: these are asked for one by
// one.
type accessView struct {
	Hub       string
	Policies  []policyRow
	More      int // hubs whose policies are not listed
	Listeners map[string]string
	Signed    string
	Ends      time.Time
	// Chosen is the policy that the rest of the page is about; nil: there is none.
	Chosen *chosenPolicy
	// Connected are the chosen policy's connections; nil: it is not this reader's to see.
	Connected    *connected
	Certificates []certificateRow
}

type policyRow struct {
	Hub, Name, ID string
	First         bool // of those of the namespace, or of its hub
	Rights        []string
	Created       time.Time
	Root, Here    bool
	Link          string
	// Connections and Used are how many it has, and when one of its keys was last good for something.
	Connections, Used string
}

// chosenPolicy is how to connect by a policy.
type chosenPolicy struct {
	policyRow
	Quota  admin.Quota
	Key    string // primary or secondary
	Keys   []tab
	Masked string // its connection string, without the key
	Copy   string // where the script gets it whole
	// Snippet is a program in the language that is chosen; empty: the policy is for no program.
	Snippet   string
	Languages []tab
	Steps     []keyStep // nil: nobody knows when its keys were used
}

// connected are the connections of a policy.
type connected struct {
	Rows    []admin.Connection
	Total   int
	AtLeast bool // there are more than were looked at
}

type certificateRow struct {
	Node, Names, Issuer, SHA256 string
	Until                       time.Time
	Soon                        bool
}

const (
	// rootPolicy is the one that cannot be deleted.
	rootPolicy = auth.RootPolicy
	// hubsAsked is of how many hubs the page of the namespace lists policies, policiesGood how long that is good.
	hubsAsked    = 20
	policiesGood = 10 * time.Second
	// connectionsAsked is how many connections are looked at, and connectionsShown how many are listed.
	connectionsAsked = 1000
	connectionsShown = 20
	// certificatesGood is how long an answer about certificates is, certificateSoon when one ends soon.
	certificatesGood = time.Minute
	certificateSoon  = 14 * 24 * time.Hour
)

var (
	accessPage    = page{template: "access", load: func(v *visit) (*screen, error) { return loadAccess(v, "") }}
	hubAccessPage = page{template: "access", load: func(v *visit) (*screen, error) { return loadAccess(v, v.name("hub")) }}
)

func loadAccess(v *visit, hub string) (*screen, error) {
	policies, rest, err := v.policies(hub)
	if err != nil {
		return nil, err
	}
	info, err := v.api.Info(v.ctx)
	if err != nil {
		return nil, err
	}
	view := accessView{Hub: hub, More: rest, Listeners: info.Listeners, Signed: v.who.Grant.Holder, Ends: v.who.Ends}
	now := v.connections()
	for i, p := range policies {
		row := newPolicyRow(p, now, v.now)
		row.ID, row.Link = "k"+strconv.Itoa(i), with(accessPath(hub), "policy", p.Name, "of", p.Hub)
		row.First = hub == "" && (i == 0 || policies[i-1].Hub != p.Hub) && policies[len(policies)-1].Hub != ""
		view.Policies = append(view.Policies, row)
	}
	if at := chosenOf(policies, v.r.URL.Query()); at >= 0 {
		view.Policies[at].Here = true
		view.Chosen = v.choose(view.Policies[at], policies[at], info, accessPath(hub))
		if now != nil {
			if !view.Chosen.Root || !v.console.cfg.Access.Development() { // there the well-known key is used
				view.Chosen.Steps = keySteps(useOf(now, policies[at]), now.Since.Time, v.now)
			}
			view.Connected = connectionsOf(now, policies[at])
		}
	}
	if hub == "" {
		view.Certificates = v.certificates()
		return &screen{Title: "Access", Section: "access", Crumbs: []crumb{{Name: "Access"}}, View: view}, nil
	}
	h, err := v.api.Hub(v.ctx, hub)
	if err != nil {
		return nil, err
	}
	return hubScreen(v, h, "Access", view), nil
}

// policies are those of a hub; or those of the namespace and then of some hubs, and of how many hubs they are
// not listed.
func (v *visit) policies(hub string) (all []admin.Policy, rest int, err error) {
	if all, err = v.policiesOf(hub); err != nil || hub != "" {
		return all, 0, err
	}
	of, err := remembered(v, "policies of hubs", policiesGood, func() ([][]admin.Policy, error) {
		hubs, err := v.api.Hubs(v.ctx)
		of := make([][]admin.Policy, len(hubs))
		parallel.Each(min(len(hubs), hubsAsked), askedAtOnce, func(i int) {
			of[i], _ = v.policiesOf(hubs[i].Name) // a hub that was deleted meanwhile has none
		})
		return of, err
	})
	return append(all, slices.Concat(of...)...), max(len(of)-hubsAsked, 0), err
}

func (v *visit) policiesOf(hub string) ([]admin.Policy, error) {
	all, err := v.api.PoliciesWithoutKeys(v.ctx, hub)
	for i := range all {
		all[i].Hub = hub
	}
	return all, err
}

// connections asks who is connected, and when keys were used; nil: that is not known in time, or not this
// reader's to see.
func (v *visit) connections() *admin.Connections {
	ctx, cancel := context.WithTimeout(v.ctx, v.console.figuresTime)
	defer cancel()
	found, err := v.api.Connections(ctx, "", connectionsAsked)
	if err != nil {
		return nil
	}
	v.silent.add(found.Unanswered...)
	return &found
}

// isOf tells whether a connection, or a use, is of a policy, by the name that the API has for it.
func isOf(named string, p admin.Policy) bool {
	name := "policies/" + p.Name
	if p.Hub != "" {
		name = "hubs/" + url.PathEscape(p.Hub) + "/" + name
	}
	return strings.EqualFold(named, name)
}

func useOf(now *admin.Connections, p admin.Policy) (use admin.KeyUse) {
	if i := slices.IndexFunc(now.Keys, func(u admin.KeyUse) bool { return isOf(u.Policy, p) }); i >= 0 {
		use = now.Keys[i]
	}
	return use
}

func newPolicyRow(p admin.Policy, now *admin.Connections, at time.Time) policyRow {
	row := policyRow{Hub: p.Hub, Name: p.Name, Rights: p.Rights, Created: p.Created.Time, Root: p.Hub == "" && p.Name == auth.RootPolicy, Connections: "–", Used: "–"}
	if now == nil {
		return row
	}
	c := connectionsOf(now, p)
	if row.Connections = number(c.Total); c.AtLeast {
		row.Connections += "+"
	}
	use := useOf(now, p)
	switch last := laterOf(use.Primary, use.Secondary); {
	case last == nil && c.Total > 0: // by the key that everybody knows, or before a node started
		row.Used = "now"
	case last == nil:
		row.Used = "not since " + minute(now.Since.Time)
	case at.Sub(last.Time) < time.Minute:
		row.Used = "now"
	default:
		row.Used = span(at.Sub(last.Time).Truncate(time.Minute)) + " ago"
	}
	return row
}

func laterOf(a, b *admin.Time) *admin.Time {
	if a == nil || b != nil && b.After(a.Time) {
		return b
	}
	return a
}

// connectionsOf are those of a policy, as far as they were looked at.
func connectionsOf(now *admin.Connections, p admin.Policy) *connected {
	c := &connected{AtLeast: now.Next != ""}
	for _, one := range now.Connections {
		if !isOf(one.Holder, p) {
			continue
		}
		if c.Total++; len(c.Rows) < connectionsShown {
			c.Rows = append(c.Rows, one)
		}
	}
	return c
}

// chosenOf is which policy a page is about: the one that is asked for, or the first; -1: there is none.
func chosenOf(policies []admin.Policy, asked url.Values) int {
	if len(policies) == 0 {
		return -1
	}
	return max(slices.IndexFunc(policies, func(p admin.Policy) bool { return p.Name == asked.Get("policy") && p.Hub == asked.Get("of") }), 0)
}

// choose says how to connect by a policy.
func (v *visit) choose(row policyRow, p admin.Policy, info admin.Info, path string) *chosenPolicy {
	query := v.r.URL.Query()
	c := &chosenPolicy{policyRow: row, Quota: p.Quota, Key: "primary"}
	if query.Get("key") == "secondary" {
		c.Key = "secondary"
	}
	l := languageOf(query.Get("lang"))
	to := func(key, lang string) string {
		return with(path, "policy", p.Name, "of", p.Hub, "key", key, "lang", lang)
	}
	for _, key := range []string{"primary", "secondary"} {
		c.Keys = append(c.Keys, tab{Name: key, Link: to(key, l.word), Here: key == c.Key})
	}
	for _, other := range languages {
		c.Languages = append(c.Languages, tab{Name: other.name, Link: to(c.Key, other.word), Here: other == l})
	}
	c.Masked = maskedString(info, p, v.console.cfg.Access.Development())
	c.Copy = with(at("policies", p.Name, "copy"), "hub", p.Hub, "key", c.Key)
	hub := p.Hub
	if hub == "" {
		hub = "orders"
		if hubs, err := remembered(v, "hubs", policiesGood, func() ([]admin.Hub, error) { return v.api.Hubs(v.ctx) }); err == nil && len(hubs) > 0 {
			hub = hubs[0].Name
		}
	}
	sends := slices.Contains(p.Rights, "Send") || slices.Contains(p.Rights, "Manage")
	if sends || slices.Contains(p.Rights, "Listen") {
		c.Snippet = snippet(l, hub, sends, v.address())
	}
	return c
}

// maskedString is the connection string of a policy with dots in the place of its key.
func maskedString(info admin.Info, p admin.Policy, development bool) string {
	c := auth.ConnectionString{Policy: p.Name, Key: "••••••••", Hub: p.Hub}
	c.Endpoint, c.Emulator = endpointOf(info, development)
	return c.String()
}

// endpointOf is where clients connect to: as the API has it, without TLS for development and with it otherwise,
// or by what there is. What has no TLS is what clients know as the emulator.
func endpointOf(info admin.Info, development bool) (endpoint string, emulator bool) {
	address := cmp.Or(info.Listeners["amqps"], info.Listeners["amqp"])
	if development {
		address = cmp.Or(info.Listeners["amqp"], address)
	}
	host := "localhost"
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		host = u.Host
	}
	return "sb://" + host + "/", !strings.HasPrefix(address, "amqps:")
}

// keyStep is one of the steps in which a key is changed. State is done or now; empty: it comes later.
type keyStep struct{ Title, Said, State string }

// keyQuiet is how long a key was not used that nobody uses any more: clients show theirs again when they renew
// their token, most of them within an hour.
const keyQuiet = time.Hour

// keySteps say how far the change of a primary key is, by when each key was last used since the yard started.
func keySteps(use admin.KeyUse, since, now time.Time) []keyStep {
	said := func(which string, at *admin.Time) string {
		if at == nil {
			return "The " + which + " key was not used since " + minute(since) + "."
		}
		return "The " + which + " key was last used " + span(now.Sub(at.Time).Truncate(time.Second)) + " ago."
	}
	given := use.Secondary != nil
	quiet := given && (use.Primary == nil || now.Sub(use.Primary.Time) >= keyQuiet)
	steps := []keyStep{
		{Title: "Give clients the secondary key", Said: said("secondary", use.Secondary)},
		{Title: "Wait for the last ones", Said: said("primary", use.Primary) + " Connected clients show their key again when they renew their token, most of them within an hour."},
		{Title: "Regenerate the primary key", Said: "Whoever still uses the old one is disconnected within moments."},
		{Title: "Give clients the primary key, then do the same for the secondary"},
	}
	for i, done := range []bool{given, quiet, false} {
		if !done {
			steps[i].State = "now"
			break
		}
		steps[i].State = "done"
	}
	return steps
}

// certificates are those that clients are shown; none: there is no TLS, or nobody says in time.
func (v *visit) certificates() (rows []certificateRow) {
	found, err := remembered(v, "certificates", certificatesGood, func() (admin.Certificates, error) {
		ctx, cancel := context.WithTimeout(v.ctx, v.console.figuresTime)
		defer cancel()
		return v.api.Certificates(ctx)
	})
	if err != nil {
		return nil
	}
	v.silent.add(found.Unanswered...)
	for _, n := range found.Nodes {
		c := n.Certificate
		if c == nil {
			continue
		}
		row := certificateRow{Node: n.Node, Names: strings.Join(c.Names, ", "), Issuer: cmp.Or(c.Issuer, c.Subject), SHA256: c.SHA256, Until: c.Until.Time, Soon: c.Until.Sub(v.now) < certificateSoon}
		if n.Authority != nil {
			row.Issuer = "this yard's own authority, " + n.Authority.Subject
		}
		rows = append(rows, row)
	}
	return rows
}
