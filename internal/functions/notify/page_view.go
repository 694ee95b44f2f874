package notify

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
)

var (
	pageStyle    = mustRead("templates/page.css")
	pageTemplate = template.Must(template.New("page.html").
			Funcs(template.FuncMap{"style": func() template.CSS { return template.CSS(pageStyle) }}).
			ParseFS(templates, "templates/page.html"))
	// pagePolicy lets a page show nothing but itself in its own style, and send nothing but its own
	// form.
	pagePolicy = "default-src 'none'; style-src 'sha256-" + digest(pageStyle) + "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

func mustRead(name string) string {
	b, err := templates.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(b)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// pageView is what a page shows.
type pageView struct {
	Status      int
	Title, Text string
	Note        string // what is good to know besides; empty: nothing
	Function    string
	Badge       breaker.State // empty: none
	Resumable   bool          // it has the button
	Rows        []row
	Errors      []errorGroup
	Details     []detail
	Command     string
	Expires     string
}

// view is what a link shows of a circuit as it is now; ok: there is one.
func (s *pages) view(ctx context.Context, g grant, c Circuit, ok bool) pageView {
	if !ok {
		return pageView{Status: http.StatusGone, Function: oneLine(g.Function, maxNameBytes), Title: "This function is not there any more",
			Text: "It was removed after the notice was sent, so there is nothing to resume."}
	}
	v := s.shown(ctx, g, c)
	switch r := c.Record; {
	case r.State == breaker.Closed || r.State == "":
		v.Status, v.Title = http.StatusGone, "It is running already"
		v.Text = "The incident of this link is over"
		if !r.Since.IsZero() {
			v.Text += " since " + moment(r.Since) + ", when it was resumed" + by(trimmed(r).By)
		}
		v.Text += ". A link is good once; there is nothing left to do."
	case r.Incident != g.Incident:
		v.Status, v.Title = http.StatusGone, "This link is of an earlier incident"
		v.Text = "What it was for is over, and the function has stopped once more since. The notice of that says how to resume it."
	case r.State == breaker.Held:
		v.Status, v.Title = http.StatusConflict, "An operator holds this function"
		v.Text = "It was stopped on purpose" + by(trimmed(r).By) + ", so a link does not resume it. Nothing is lost meanwhile."
	default:
		v.Status, v.Title, v.Resumable, v.Expires = http.StatusOK, "Stopped", true, moment(g.Expires)
		if r.Failures > 0 {
			v.Title += " after " + failures(r)
		}
		v.Text = "Too many events failed, so no event is handled. Nothing is lost: the checkpoint stays where it is, and reading goes on from there."
	}
	return v
}

// shown is what is known of a circuit.
func (s *pages) shown(ctx context.Context, g grant, c Circuit) pageView {
	r, lag := trimmed(c.Record), s.lag(ctx, g.Group)
	v := pageView{Function: oneLine(g.Function, maxNameBytes), Badge: r.State, Rows: rows(r, lag, time.Now())}
	v.Details = pageDetails(details(g.Group, g.Function, r, lag), v.Rows)
	if r.State != breaker.Closed {
		v.Errors, v.Command = errorGroups(errorLines(r)), notice{Function: g.Function}.command()
	}
	return v
}
