package console

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/admin"
)

// foundShown is how many names a page of the finder has.
const foundShown = 50

// findView is what has a name that was looked for.
type findView struct {
	Asked string
	Found []found
	More  int
	Event string // where an event with that id is looked for
}

// found is something with a name, its kind, what it belongs to, and its page.
type found struct{ Kind, Name, Of, Link string }

// showFind looks for names. What there is one of, and no name at all, leads on at once: the second is
// taken for an event's id.
func (c *Console) showFind(v *visit) error {
	view := findView{Asked: strings.TrimSpace(v.r.URL.Query().Get("q"))}
	all, err := allNames(v)
	if err != nil {
		return err
	}
	view.Found = matching(all, view.Asked)
	if view.Asked != "" {
		view.Event = with(at("events"), "id", view.Asked)
		switch len(view.Found) {
		case 0:
			http.Redirect(v.w, v.r, view.Event, http.StatusSeeOther)
			return nil
		case 1:
			http.Redirect(v.w, v.r, view.Found[0].Link, http.StatusSeeOther)
			return nil
		}
	}
	view.More = max(0, len(view.Found)-foundShown)
	view.Found = view.Found[:len(view.Found)-view.More]
	return v.show(http.StatusOK, "find", &screen{Title: "Find", Section: "find", Crumbs: []crumb{{Name: "Find"}}, View: view})
}

// allNames are those of everything that has a page, as far as whoever asks may see it.
func allNames(v *visit) ([]found, error) {
	hubs, err := v.api.Hubs(v.ctx)
	if err != nil {
		return nil, err
	}
	var all []found
	for _, h := range hubs {
		all = append(all, found{"hub", h.Name, "", at("hubs", h.Name)})
		for _, g := range h.Groups {
			all = append(all, found{"group", g, h.Name, at("hubs", h.Name, "groups", g)})
		}
	}
	for _, some := range []func(*visit) ([]found, error){topicNames, functionNames} {
		names, err := some(v)
		if err != nil && !lacksRight(err) && !notThere(err) {
			return nil, err
		}
		all = append(all, names...)
	}
	return all, nil
}

func topicNames(v *visit) (all []found, err error) {
	topics, err := v.api.Topics(v.ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range topics {
		all = append(all, found{"topic", t.Name, "", at("topics", t.Name)})
	}
	subscriptions, err := v.api.Subscriptions(v.ctx, admin.SubscriptionRef{})
	for _, s := range subscriptions {
		ref := refOf(s)
		all = append(all, found{"subscription", s.Name, cmp.Or(ref.Topic, ref.Hub), subscriptionPath(ref)})
		if s.Endpoint != "" {
			all = append(all, found{"endpoint", s.Endpoint, s.Name, subscriptionPath(ref)})
		}
	}
	return all, err
}

func functionNames(v *visit) (all []found, err error) {
	functions, err := v.api.Functions(v.ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range functions {
		all = append(all, found{"function", f.Name, f.Hub, at("functions", f.Name)})
	}
	circuits, err := v.api.Circuits(v.ctx)
	for _, c := range circuits {
		if !slices.ContainsFunc(functions, func(f admin.Function) bool { return f.Name == c.Function }) {
			all = append(all, found{"circuit", c.Function, c.Hub, at("circuits", c.Function)})
		}
	}
	return all, err
}

// matching are names that have a text in them: those that are the text first, then those that begin
// with it.
func matching(all []found, text string) []found {
	text = strings.ToLower(text)
	rank := func(f found) int {
		switch name := strings.ToLower(f.Name); {
		case name == text:
			return 0
		case strings.HasPrefix(name, text):
			return 1
		case strings.Contains(name, text):
			return 2
		}
		return 3
	}
	all = slices.DeleteFunc(all, func(f found) bool { return rank(f) == 3 })
	slices.SortStableFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
	return all
}
