package console

import (
	"slices"

	"github.com/eventyard/eventyard/admin"
)

// connectView is how a program comes to a hub: a connection string, and programs that send and read.
type connectView struct {
	admin.Hub
	// Policies are those by which one may, with the chosen one's string, masked, and where the script gets it
	// whole. They are for who may see policies; others have a string already.
	Policies     []tab
	Chosen, Held string
	Rights       []string
	String, Copy string
	Languages    []tab
	// Send and Read are programs in the language that is chosen; empty: the policy does not allow it.
	Send, Read               string
	SendCommand, ReadCommand string
	Access                   string // the page of the hub's policies
}

var connectPage = page{template: "connect", load: loadConnect}

func loadConnect(v *visit) (*screen, error) {
	h, err := v.api.Hub(v.ctx, v.name("hub"))
	if err != nil {
		return nil, err
	}
	view := connectView{Hub: h, Access: accessPath(h.Name), SendCommand: command("send", h.Name, "hello"), ReadCommand: command("read", h.Name, "--follow")}
	sends, reads := v.may("Send", h.Name), v.may("Listen", h.Name)
	if v.may("Manage", h.Name) {
		if sends, reads, err = choosePolicy(v, &view); err != nil {
			return nil, err
		}
	}
	query := v.r.URL.Query()
	l := languageOf(query.Get("lang"))
	for _, other := range languages {
		view.Languages = append(view.Languages, tab{Name: other.name, Link: connectPath(h.Name, other.word, query.Get("policy"), query.Get("of")), Here: other == l})
	}
	if sends {
		view.Send = snippet(l, h.Name, true, v.address())
	}
	if reads {
		view.Read = snippet(l, h.Name, false, v.address())
	}
	s := hubScreen(v, h, "Connect", view)
	s.Title, s.Guide, s.still = "Connect to "+h.Name, "access", true
	return s, nil
}

func connectPath(hub, lang, policy, of string) string {
	return with(at("hubs", hub, "connect"), "lang", lang, "policy", policy, "of", of)
}

// choosePolicy lists the policies by which a program may send to the hub, or read: its own first, and then those of
// the namespace. It chooses the one that is asked for, or the first.
func choosePolicy(v *visit, view *connectView) (sends, reads bool, err error) {
	all, err := v.policiesOf(view.Name)
	if err != nil {
		return false, false, err
	}
	if v.may("Manage") {
		more, err := v.policiesOf("")
		if err != nil {
			return false, false, err
		}
		all = append(all, more...)
	}
	has := func(p admin.Policy, right string) bool {
		return slices.Contains(p.Rights, right) || slices.Contains(p.Rights, "Manage")
	}
	all = slices.DeleteFunc(all, func(p admin.Policy) bool { return !has(p, "Send") && !has(p, "Listen") })
	at := chosenOf(all, v.r.URL.Query())
	if at < 0 {
		return false, false, nil
	}
	info, err := v.api.Info(v.ctx)
	if err != nil {
		return false, false, err
	}
	chosen := all[at]
	for i, p := range all {
		view.Policies = append(view.Policies, tab{Name: p.Name, Link: connectPath(view.Name, v.r.URL.Query().Get("lang"), p.Name, p.Hub), Here: i == at})
	}
	view.Chosen, view.Held, view.Rights = chosen.Name, chosen.Hub, chosen.Rights
	view.String = maskedString(info, chosen, v.console.cfg.Access.Development())
	view.Copy = copyPath(chosen)
	return has(chosen, "Send"), has(chosen, "Listen"), nil
}
