package demo

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/api/console/assets"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

//go:embed templates/*.html assets/*
var own embed.FS

// templates are the pages of the demo.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"thousands": func(n any) string {
		switch n := n.(type) {
		case int:
			return thousands(n)
		case int64:
			return thousands(n)
		case float64:
			return thousands(int64(n + 0.5))
		}
		return fmt.Sprint(n)
	},
	"seconds": seconds, "clock": clock, "percent": func(share float64) string { return fmt.Sprintf("%.0f", 100*share) },
	"spark": spark, "icon": icon,
}).ParseFS(own, "templates/*.html"))

// icon draws a symbol of the sprite.
func icon(name string, more ...string) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="icon %s" aria-hidden="true"><use href="/assets/icons.svg#%s"/></svg>`,
		template.HTMLEscapeString(strings.Join(more, " ")), template.HTMLEscapeString(name)))
}

// contentPolicy lets pages have nothing that is not theirs, and nothing inline.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// pages adds the demo's own pages to a mux: levers, residents' homes and the mailbox.
func (d *demo) pages(mux *http.ServeMux) {
	page := func(pattern string, serve http.HandlerFunc) { mux.Handle(pattern, guarded(serve)) }
	page("GET /{$}", d.showLevers)
	page("GET /homes/{home}", d.showHome)
	page("GET /mailbox", d.showMailbox)
	page("POST /levers/{lever}", d.pullLever)
	mux.HandleFunc("GET /assets/{file}", serveAsset)
}

// guarded keeps pages of other origins from pulling levers, and names that were pointed at this
// machine from reading what is here.
func guarded(next http.Handler) http.Handler {
	checked := http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !auth.IsLocalName(r.Host, "") {
			http.Error(w, "use the address that the demo has printed", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		checked.ServeHTTP(w, r)
	})
}

// serveAsset gives the console's style and the demo's own files.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	text, err := own.ReadFile("assets/" + name)
	if err != nil {
		text, err = assets.Files.ReadFile(name)
	}
	kind, known := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}[path.Ext(name)]
	if err != nil || !known {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(text)
}

func render(w http.ResponseWriter, name string, view any) {
	var page strings.Builder
	if err := templates.ExecuteTemplate(&page, name, view); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(page.String()))
}

func (d *demo) showLevers(w http.ResponseWriter, r *http.Request) {
	b := d.board.Load()
	if b == nil {
		w.Header().Set("Refresh", "1")
		http.Error(w, "The demo starts.", http.StatusServiceUnavailable)
		return
	}
	render(w, "levers.html", leversView{Board: b, Wrong: r.URL.Query().Get("wrong"), Cards: cards(b, d.desk.broken.Load(), d.desk.away.Load()), Every: periodWord(d.cfg.Every), Home: homeName(soonHome(d.cfg.Homes, d.cfg.Every, b.Started))})
}

// pullLever pulls a lever and goes back to the page, with what was wrong, if something was.
func (d *demo) pullLever(w http.ResponseWriter, r *http.Request) {
	back := "/"
	if d.board.Load() == nil {
		http.Redirect(w, r, back, http.StatusSeeOther)
		return
	}
	if err := d.pull(context.WithoutCancel(r.Context()), r.PathValue("lever"), r.PostFormValue("who")); err != nil {
		back += "?wrong=" + url.QueryEscape(err.Error())
	}
	http.Redirect(w, r, back, http.StatusSeeOther)
}

func (d *demo) showMailbox(w http.ResponseWriter, _ *http.Request) {
	render(w, "mailbox.html", d.desk.mail())
}

// showHome is a resident's page.
func (d *demo) showHome(w http.ResponseWriter, r *http.Request) {
	n, ok := homeNumber(r.PathValue("home"))
	if !ok || n >= d.cfg.Homes {
		http.NotFound(w, r)
		return
	}
	state, found := d.askWatchers(r.Context(), homeName(n))
	render(w, "home.html", newHomePage(state, found, n, d.cfg, d.board.Load(), time.Now()))
}

// askWatchers asks all watchers for a home, and takes the newest answer: partitions move between them.
func (d *demo) askWatchers(ctx context.Context, home string) (newest homeState, found bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for _, address := range d.ledger.watcherAddresses() {
		var h homeState
		if askJSON(ctx, address+"/homes/"+home, &h) == nil && h.Sensors[motion].At.After(newest.Sensors[motion].At) {
			newest, found = h, true
		}
	}
	return newest, found
}

func askJSON(ctx context.Context, from string, to any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", from, answer.Status)
	}
	return json.NewDecoder(answer.Body).Decode(to)
}
