package console

import (
	"github.com/eventyard/eventyard/admin"
)

// overviewView is the yard at a glance, made of the lists; or the first steps, while it is empty.
type overviewView struct {
	Empty         bool
	Hubs          []hubRow
	More          int // hubs that are not shown
	Address, Host string
	Events, Bytes int64
	Send, Create  string
}

var overviewPage = page{template: "overview", load: loadOverview}

// overviewRows is how many hubs the overview has.
const overviewRows = 12

func loadOverview(v *visit) (*screen, error) {
	hubs, err := v.api.Hubs(v.ctx)
	if err != nil {
		return nil, err
	}
	view := overviewView{Empty: len(hubs) == 0, Host: v.r.Host, Create: command("hub", "create", "orders", "--partitions", "4"), Send: command("send", "orders", "hello")}
	for _, h := range hubs[:min(len(hubs), overviewRows)] {
		view.Hubs = append(view.Hubs, newHubRow(h, len(view.Hubs)))
	}
	view.More = len(hubs) - len(view.Hubs)
	v.sumUp(view.Hubs)
	for _, h := range view.Hubs {
		view.Events, view.Bytes = view.Events+h.Events, view.Bytes+h.Bytes
	}
	return &screen{Title: "Overview", Crumbs: []crumb{{Name: "Overview"}}, View: view}, nil
}

// morePage is for narrow screens: the pages that have no tab.
var morePage = page{template: "more", load: func(v *visit) (*screen, error) {
	return &screen{Title: "More", Section: "more", Crumbs: []crumb{{Name: "More"}}, View: admin.Info{}}, nil
}}
