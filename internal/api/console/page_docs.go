package console

import (
	"cmp"
	"html/template"
	"net/http"
	"strings"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// docsView is a page of the docs, or the list of them.
type docsView struct {
	Folders []folder
	Path    string
	Text    template.HTML
	See     string // the page of the console where one sees it
	Asked   string
	Found   []heading
}

// headingsShown is how many headings a search gives.
const headingsShown = 50

// guides are the pages that tell of those of the console, by section, or by what screen.Guide says.
var guides = map[string]string{
	"hubs": "guides/clients", "groups": "guides/processor", "topics": "guides/grid", "functions": "guides/functions-http", "events": "guides/console", "kafka": "guides/kafka",
	"find": "guides/console", "activity": "guides/console", "access": "guides/access", "storage": "guides/operating", "": "guides/first",
}

// seen are the sections of the console where one sees what guides tell of; those of the rest are at the overview.
var seen = map[string]string{
	"guides/access": "access", "guides/security": "access", "guides/clients": "hubs", "guides/kafka": "hubs", "guides/processor": "hubs", "guides/stores": "hubs", "guides/http": "hubs",
	"guides/traces": "events", "guides/grid": "topics", "guides/functions": "functions", "guides/functions-http": "functions",
	"guides/from-emulator": "hubs", "guides/from-event-grid": "topics", "guides/from-svix-convoy": "topics", "guides/production": "storage",
	"guides/operating": "storage", "guides/cluster": "storage", "guides/backup": "storage", "guides/blob": "storage",
}

// guideTo is the guide of a section; nothing: there is none.
func guideTo(section string) string {
	if guide, ok := guides[section]; ok {
		return docsPath + "/" + guide
	}
	return ""
}

// seenAt is the page of the console where one sees what a guide tells of, as far as one may look at it; other
// pages of the docs have none.
func seenAt(v *visit, page string) string {
	if !strings.HasPrefix(page, "guides/") {
		return ""
	}
	section, ok := seen[page]
	if !ok || section != "hubs" && !v.may("Manage") {
		return base
	}
	return at(section)
}

var docsIndexPage = page{template: "docs", load: func(v *visit) (*screen, error) {
	l := theLibrary()
	view := docsView{Folders: l.folders, Asked: strings.TrimSpace(v.r.URL.Query().Get("q"))}
	if view.Asked != "" {
		view.Found = l.find(view.Asked)
	}
	return &screen{Title: "Docs", Section: "docs", Crumbs: []crumb{{Name: "Docs"}}, View: view}, nil
}}

var docsPage = page{template: "docs", load: func(v *visit) (*screen, error) {
	l := theLibrary()
	a := l.articles[v.name("page")]
	if a == nil {
		return nil, &frame.Refusal{
			Status: http.StatusNotFound, Code: "no-such-page", Title: "There is no such page",
			Detail: "the docs of this version have no page " + v.name("page"), Next: "look for it in the list of docs, at " + docsPath,
		}
	}
	view := docsView{Folders: l.folders, Path: a.Path, Text: fillIn(v, a.Text), See: seenAt(v, a.Path)}
	return &screen{Title: a.Title, Section: "docs", Crumbs: []crumb{{"Docs", docsPath}, {Name: a.Title}}, View: view}, nil
}}

// find gives the headings that have all words of a text.
func (l *library) find(asked string) (found []heading) {
	words := strings.Fields(strings.ToLower(asked))
	for _, h := range l.headings {
		title, all := strings.ToLower(h.Title+" "+h.Of), true
		for _, w := range words {
			all = all && strings.Contains(title, w)
		}
		if all && len(found) < headingsShown {
			found = append(found, h)
		}
	}
	return found
}

// fillIn puts what the reader's yard has into a page's commands.
func fillIn(v *visit, text string) template.HTML {
	if !strings.Contains(text, hubMark[:1]) {
		return template.HTML(text)
	}
	hub, topic := "orders", "shop"
	hubs, err := v.api.Hubs(v.ctx)
	if err == nil && len(hubs) > 0 {
		hub = hubs[0].Name
	}
	text = offerRuns(v, text, hub, hubs)
	if topics, err := v.api.Topics(v.ctx); err == nil {
		for _, t := range topics {
			if t.Name != yardEvents {
				topic = t.Name
				break
			}
		}
	}
	safe := func(value string) string { return template.HTMLEscapeString(pictures(value)) }
	return template.HTML(strings.NewReplacer(hubMark, safe(shell(hub)), topicMark, safe(shell(topic)), stringMark, safe(connectionString(v)),
		policyMark, safe(shell(readersPolicy(v))), serverMark, safe(shell(v.address()))).Replace(text))
}

// readersPolicy is that which the reader has shown.
func readersPolicy(v *visit) string {
	if v.console.cfg.Access.Development() {
		return auth.RootPolicy
	}
	return cmp.Or(v.who.Grant.Holder, auth.RootPolicy)
}

// connectionString is that of whoever reads. The key is on no page, but for the one that everybody knows.
func connectionString(v *visit) string {
	info, err := v.api.Info(v.ctx)
	if err != nil {
		return "what eventyard connection-string says"
	}
	c := auth.ConnectionString{Policy: readersPolicy(v), Key: "KEY"}
	if v.console.cfg.Access.Development() {
		c.Key = auth.DevelopmentKey
	}
	c.Endpoint, c.Emulator = endpointOf(info, v.console.cfg.Access.Development())
	return c.String()
}
