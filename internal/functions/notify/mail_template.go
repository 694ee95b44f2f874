package notify

import (
	"embed"
	html "html/template"
	text "text/template"
)

//go:embed templates
var templates embed.FS

var (
	textMail = text.Must(text.ParseFS(templates, "templates/mail.txt"))
	htmlMail = html.Must(html.ParseFS(templates, "templates/mail.html"))
)

// mailView is what both templates show.
type mailView struct {
	Subject, Headline string
	Tone              string // of the headline: a colour
	Story             []string
	Details           []detail
	Errors            []errorLine
	Link, Expires     string
	Command           string // empty: there is nothing to resume
	Linkless          bool   // a link could have been given if people could reach the yard
}

func viewOf(n notice) mailView {
	shown := n.Record
	if n.Kind == kindEnded {
		shown.Failures, shown.Policy = n.Began.Failures, n.Began.Policy
	}
	v := mailView{
		Subject: subjectLine(n), Headline: n.headline(), Tone: "#93540a", Story: n.story(), Details: details(n.Group, n.Function, shown, n.Lag),
		Errors: errorLines(n.Began), Link: n.Link, Expires: moment(n.Expires),
	}
	switch {
	case n.Kind == kindOpened:
		v.Tone = "#b42318"
	case n.Kind == kindEnded && !n.Gone:
		v.Tone = "#067647"
	}
	if n.Kind == kindEnded {
		v.Details = append(v.Details, detail{"Stopped", moment(n.began())})
	}
	if n.Kind == kindOpened || n.Kind == kindHeld {
		v.Command, v.Linkless = n.command(), n.Kind == kindOpened && n.Link == ""
	}
	return v
}
