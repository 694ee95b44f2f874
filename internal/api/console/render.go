package console

import (
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
)

//go:embed templates/*.html
var templateFiles embed.FS

// templates are those of one page: its own file, which defines "main" and a template "part-NAME" for
// each part that is kept live, and those that all pages share.
type templates struct {
	set   *template.Template
	parts []string
}

// shared begins the names of files that belong to no page.
const shared = "_"

// framed are the parts that all live pages have: what stands around them is as live as they are.
var framed = []string{"yard", "n-hubs", "n-topics", "n-functions"}

func parseTemplates(a *assets) map[string]*templates {
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		panic(err)
	}
	all := template.Must(template.New("").Funcs(functions(a)).ParseFS(templateFiles, "templates/"+shared+"*.html"))
	pages := map[string]*templates{}
	for _, file := range names {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "templates/"), ".html")
		if strings.HasPrefix(name, shared) {
			continue
		}
		set := template.Must(template.Must(all.Clone()).ParseFS(templateFiles, file))
		page := &templates{set: set}
		for _, t := range set.Templates() {
			if part, ok := strings.CutPrefix(t.Name(), "part-"); ok && !slices.Contains(framed, part) {
				page.parts = append(page.parts, part)
			}
		}
		if len(page.parts) > 0 {
			page.parts = append(page.parts, framed...)
		}
		pages[name] = page
	}
	return pages
}

// functions are what templates can call. What they make of text is escaped here or by the template.
func functions(a *assets) template.FuncMap {
	return template.FuncMap{
		"asset": func(name string) string { return a.path + "/" + name },
		"icon": func(name string, more ...string) template.HTML {
			return template.HTML(fmt.Sprintf(`<svg class="icon %s" viewBox="0 0 24 24" aria-hidden="true"><use href="%s/icons.svg#%s"/></svg>`,
				strings.Join(more, " "), a.path, name))
		},
		"at": at, "num": number, "age": age, "size": size, "span": span, "took": took, "clock": clock, "stamp": stamp, "ends": cutMiddle, "plural": plural, "rate": rateOf,
		"join": strings.Join, "pictures": pictures, "guide": guideTo, "add": func(a, b int) int { return a + b }, "dict": dict,
		"journeyPath": journeyPath, "hubJourneyPath": hubJourneyPath,
		"deadPath": func(s admin.SubscriptionRef, n int64) string {
			return subscriptionPath(s, "dead", strconv.FormatInt(n, 10))
		},
	}
}

// dict gives a template several things by name.
func dict(pairs ...any) map[string]any {
	d := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		d[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return d
}

// at is the path of a page, of its names as they are.
func at(names ...string) string {
	var path strings.Builder
	path.WriteString(strings.TrimSuffix(base, "/"))
	for _, name := range names {
		path.WriteByte('/')
		if name == "." || name == ".." {
			name = strings.ReplaceAll(name, ".", "%2E")
		} else {
			name = url.PathEscape(name)
		}
		path.WriteString(name)
	}
	return path.String()
}

// with adds a query to a path, without what is empty.
func with(path string, pairs ...string) string {
	query := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// more adds to the query of a path that may have one.
func more(path string, pairs ...string) string {
	query := with("", pairs...)
	if strings.Contains(path, "?") {
		query = strings.Replace(query, "?", "&", 1)
	}
	return path + query
}

// number writes 12668 as 12,668.
func number(n any) string {
	var text string
	switch n := n.(type) {
	case int:
		text = strconv.Itoa(n)
	case int64:
		text = strconv.FormatInt(n, 10)
	case *int64:
		if n == nil {
			return "–"
		}
		text = strconv.FormatInt(*n, 10)
	case *int:
		if n == nil {
			return "–"
		}
		text = strconv.Itoa(*n)
	default:
		return fmt.Sprint(n)
	}
	digits, sign := strings.CutPrefix(text, "-")
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if sign {
		return "-" + digits
	}
	return digits
}

// size writes bytes in the largest unit of which there is one.
func size(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	if unit == 0 || value >= 100 {
		return fmt.Sprintf("%.0f %s", value, units[unit])
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}

// span writes a duration as people say it: 1.9 s, 4 min 3 s, 3 h 12 min, 5 days.
func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return plural(int(d.Hours()/24), "day", "days")
}

// took writes how long a request took, which the API says as Go does: 212.34ms. It is never long, as columns of
// tables on phones are not wide.
func took(text string) string {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return text
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1000)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return span(d)
}

// age writes how long something is kept, which the API says as Go does: 168h0m0s.
func age(text string) string {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return text
	case d == 0:
		return "ever"
	case d%(24*time.Hour) == 0:
		return plural(int(d/(24*time.Hour)), "day", "days")
	}
	return span(d)
}

// clock is a time of about now, stamp one of any day. The script writes both as the reader's own.
func clock(t time.Time) template.HTML { return timeElement(t, "clock", "15:04:05") }

func stamp(t time.Time) template.HTML { return timeElement(t, "stamp", "2006-01-02 15:04:05") }

func timeElement(t time.Time, as, layout string) template.HTML {
	if t.IsZero() {
		return "–"
	}
	t = t.UTC()
	return template.HTML(fmt.Sprintf(`<time datetime="%s" data-as="%s">%s</time>`, t.Format(time.RFC3339Nano), as, t.Format(layout)+" UTC"))
}

// plural counts things: a number as number takes it, with the word for one or for many.
func plural(n any, one, many string) string {
	shown := number(n)
	if shown == "1" {
		return "1 " + one
	}
	return shown + " " + many
}

// tail is how much of a long name is always seen.
const tail = 12

// cutMiddle shows a long name with its end, whatever room there is; the title has all of it.
func cutMiddle(name string) template.HTML {
	name = pictures(name)
	runes := []rune(name)
	if len(runes) <= 2*tail {
		return template.HTML(template.HTMLEscapeString(name))
	}
	cut := len(runes) - tail
	return template.HTML(fmt.Sprintf(`<span class="cut-middle" title="%s"><span>%s</span><span>%s</span></span>`,
		template.HTMLEscapeString(name), template.HTMLEscapeString(string(runes[:cut])), template.HTMLEscapeString(string(runes[cut:]))))
}

// pictures shows control characters, which could pass for something else, as pictures of themselves;
// and those that turn the direction of text as what they are.
func pictures(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20:
			return 0x2400 + r
		case r == 0x7f:
			return 0x2421
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f:
			return 0xfffd
		}
		return r
	}, text)
}

// cells are the texts of a page that change often. A template names each by an id and its element is
// patched, so that the rest of its part need not be sent again (live.go).
type cells struct {
	// values are what was said; nil: the page is rendered as it is.
	values map[string]string
	// lines are those of charts, whose points are sent and not their paths.
	lines map[string]line
	// feeds are lists of which new rows are sent.
	feeds map[string]feed
	// bare leaves them out of what is rendered, which is then the same as long as nothing else changes.
	bare bool
}

// Cell is a text with an id.
func (c *cells) Cell(id string, text any) template.HTML {
	shown := fmt.Sprint(text)
	if c.values != nil {
		c.values[id] = shown
	}
	if c.bare {
		shown = ""
	}
	return template.HTML(fmt.Sprintf(`<span id="%s">%s</span>`, template.HTMLEscapeString(id), template.HTMLEscapeString(shown)))
}

// Attr is an attribute of the element with an id.
func (c *cells) Attr(id, name string, value any) template.HTMLAttr {
	shown := fmt.Sprint(value)
	if c.values != nil {
		c.values[id+"@"+name] = shown
	}
	if c.bare {
		shown = ""
	}
	return template.HTMLAttr(fmt.Sprintf(`%s="%s"`, name, template.HTMLEscapeString(shown)))
}

// Move puts an element of a picture where it belongs by its transform.
func (c *cells) Move(id string, x float64) template.HTMLAttr {
	return c.Attr(id, "transform", "translate("+coordinate(x)+" 0)")
}

// Drop is Move from above.
func (c *cells) Drop(id string, y float64) template.HTMLAttr {
	return c.Attr(id, "transform", "translate(0 "+coordinate(y)+")")
}

// Say is the text of an element that has the id itself: those of pictures have no others within them.
func (c *cells) Say(id, text string) string {
	if c.values != nil {
		c.values[id] = text
	}
	return c.Bare(text)
}

// Bare is a text that the script makes of an attribute that it is sent.
func (c *cells) Bare(text string) string {
	if c.bare {
		return ""
	}
	return text
}
