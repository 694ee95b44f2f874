package console

import (
	"github.com/eventyard/eventyard/admin"
)

// poisonAsked is how many poison events a page counts its pages over: the most that the API lists.
const poisonAsked = 1000

// poisonView is a page of a function's poison events, the newest first.
type poisonView struct {
	Name, Hub string
	Rows      []admin.PoisonEvent
	Pages     pager
	// More: there may be older ones than can be listed.
	More             bool
	Redriven         bool
	Redrive, Command string
	// Other leads to the same with those that were redriven, or without them.
	Other string
}

var poisonPage = page{template: "poison", load: func(v *visit) (*screen, error) {
	f, err := v.api.Function(v.ctx, v.name("function"))
	if err != nil {
		return nil, err
	}
	view := poisonView{Name: f.Name, Redriven: v.r.URL.Query().Get("redriven") == "true", Redrive: at("functions", f.Name, "redrive"), Command: command("poison", "list", f.Poison, "--function", f.Name)}
	view.Other = with(at("functions", f.Name, "poison"), "redriven", "true")
	if view.Redriven {
		view.Other = at("functions", f.Name, "poison")
	}
	if isHub(f.Poison) {
		view.Hub = f.Poison
		all, err := v.api.Poison(v.ctx, f.Poison, admin.PoisonQuery{Function: f.Name, Redriven: view.Redriven, Max: poisonAsked})
		if err != nil && !notThere(err) { // the hub is made when the first is put away
			return nil, err
		}
		view.Pages, view.More = pageOf(v, len(all)), len(all) == poisonAsked
		view.Rows = all[view.Pages.From:view.Pages.To]
	}
	return &screen{
		Title: "Poison events of " + f.Name, Section: "functions", View: view, Tabs: functionTabs(f, "Poison events"),
		Crumbs: []crumb{{"Functions", at("functions")}, {f.Name, at("functions", f.Name)}, {Name: "Poison events"}},
	}, nil
}}

// functionTabs are the pages of a function that the yard runs.
func functionTabs(f admin.Function, here string) []tab {
	poisoned := -1
	if f.Poisoned != nil {
		poisoned = *f.Poisoned
	}
	tabs := []tab{
		{Name: "Function", Link: at("functions", f.Name), Count: -1},
		{Name: "Poison events", Link: at("functions", f.Name, "poison"), Count: poisoned},
		{Name: "Settings", Link: at("functions", f.Name, "edit"), Count: -1},
	}
	for i := range tabs {
		tabs[i].Here = tabs[i].Name == here
	}
	return tabs
}
