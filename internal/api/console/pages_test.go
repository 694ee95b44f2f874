package console

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
	"golang.org/x/net/html"
)

var update = flag.Bool("update", false, "write testdata/pages anew")

// V1: each page of a yard of which everything is known is as it was. go test -update writes them.
func TestPagesAreAsTheyWere(t *testing.T) {
	c, _, h := newFixture(fixed())
	eachPage(t, func(t *testing.T, path string) {
		if strings.HasPrefix(path, docsPath) {
			t.Skip("its text is the docs'")
		}
		body := strings.ReplaceAll(get(h, path).Body.String(), c.assets.path, base+"assets/HASH")
		file := filepath.Join("testdata", "pages", fileNames.Replace(strings.Trim(path, "/"))+".html")
		if *update {
			testkit.Must(t, os.MkdirAll(filepath.Dir(file), 0o755))
			testkit.Must(t, os.WriteFile(file, []byte(body), 0o644))
			return
		}
		want, err := os.ReadFile(file)
		testkit.Must(t, err)
		testkit.Diff(t, string(want), body)
	})
}

// fileNames are what pages are called among files.
var fileNames = strings.NewReplacer("/", "_", "?", "_", "&", "_", "=", "-")

// elements are all that our templates have.
var elements = map[string]bool{}

func init() {
	for _, name := range strings.Fields(`html head meta title link script noscript body a div span aside nav ul ol li header main footer section form input
		button select option textarea label table thead tbody tr th td dl dt dd h1 h2 p b em strong article h3 del small code mark kbd pre br dialog time svg use rect g path line text circle details summary`) {
		elements[name] = true
	}
}

// strangers are texts that would be more than text, were they not escaped.
var strangers = map[string]string{
	"an element":   `<img src=x onerror=alert(1)><script>alert(1)</script><iframe>`,
	"an attribute": `" onmouseover="alert(1)" style="color:red" x='`,
	"an address":   `javascript:alert(1)`,
	"a template":   `{{.}}</textarea></title></select><script>alert(1)</script>`,
	"directions":   "\u202e<b>\x00\x1b[31m",
}

// V3: whatever strangers have written is text: no element, attribute or address of theirs gets into a
// page, in whichever field it is.
func TestWhatStrangersWroteIsText(t *testing.T) {
	for name, text := range strangers {
		_, _, h := newFixture(hostile(fixed(), text))
		t.Run(name, func(t *testing.T) {
			eachPage(t, func(t *testing.T, path string) { checkPage(t, get(h, path)) })
		})
	}
}

// fuzzedPaths are those of pages that show much of what strangers write.
var fuzzedPaths = []string{
	"", "hubs/sensors/events?show=0/41", "hubs/sensors/partitions/0/events/41", "events?id=a1&in=topics/alarms", "topics/alarms/subscriptions/company", "functions/score", "activity",
}

// FuzzWhatStrangersWrote looks at the pages with any text in every field.
func FuzzWhatStrangersWrote(f *testing.F) {
	for _, text := range strangers {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, _, h := newFixture(hostile(fixed(), text))
		for _, path := range fuzzedPaths {
			checkPage(t, get(h, base+path))
		}
	})
}

// What is fuzzed is on the pages: an event beside its list, on a page of its own, and on its journey.
func TestFuzzedPagesShowAnEvent(t *testing.T) {
	_, _, h := newFixture(hostile(fixed(), "whatever"))
	for path, shows := range map[int]string{1: `class="detail`, 2: `class="code"`, 3: "part-verdict"} {
		page := get(h, base+fuzzedPaths[path]).Body.String()
		testkit.That(t, strings.Contains(page, shows) && strings.Contains(page, "whatever"), "%s shows no event", fuzzedPaths[path])
	}
}

// V3, V4: no page has anything inline, and whatever it leads to is there.
func TestPagesHaveNothingInlineAndNoDeadLinks(t *testing.T) {
	c, _, h := newFixture(fixed())
	eachPage(t, func(t *testing.T, path string) {
		w := get(h, path)
		checkPage(t, w)
		checkHeaders(t, w.Header())
		testkit.Equal(t, w.Header().Get("Cache-Control"), "no-store")
		for _, to := range linksOf(t, w.Body.String(), path) {
			r := httptest.NewRequest(to.method, to.address, nil)
			if c.find(httptest.NewRecorder(), r) == c.missing {
				t.Errorf("%s %s leads nowhere", to.method, to.address)
			}
		}
	})
}

// headers are what browsers are told with every answer, word by word: whoever changes one changes it here, too.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; " +
		"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types eventyard",
	"Referrer-Policy":              "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"X-Content-Type-Options":       "nosniff",
}

func checkHeaders(t *testing.T, got http.Header) {
	t.Helper()
	for name, want := range headers {
		testkit.Equal(t, strings.Join(got.Values(name), ", "), want, "%s", name)
	}
}

// V3: not only pages have the headers: what is missing, refused or sent on has them, too, and what pages load.
func TestEveryAnswerHasTheHeaders(t *testing.T) {
	c, _, h := newFixture(fixed())
	for path, status := range map[string]int{
		base: http.StatusOK, base + "nothing": http.StatusNotFound, base + "hubs/": http.StatusNotFound, c.assets.path + "/console.js": http.StatusOK, c.assets.path + "/console.css": http.StatusOK,
	} {
		w := get(h, path)
		testkit.Equal(t, w.Code, status, "%s", path)
		checkHeaders(t, w.Header())
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, base+"hubs/sensors/delete", nil))
	testkit.That(t, w.Code >= http.StatusBadRequest, "a form of nowhere is answered with %d", w.Code)
	checkHeaders(t, w.Header())
}

// checkPage looks for what is not ours.
func checkPage(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(w.Body.String()))
	testkit.Must(t, err)
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if !elements[n.Data] {
			t.Errorf("there is an element %s", n.Data)
		}
		source := false
		for _, a := range n.Attr {
			source = source || a.Key == "src"
			switch {
			case a.Key == "style", strings.HasPrefix(a.Key, "on"):
				t.Errorf("%s has an attribute %s", n.Data, a.Key)
			case a.Key == "href" || a.Key == "src" || a.Key == "action":
				if !strings.HasPrefix(a.Val, base) && !strings.HasPrefix(a.Val, "#") {
					t.Errorf("%s leads to %q", n.Data, a.Val)
				}
			}
		}
		if n.Data == "script" && (!source || n.FirstChild != nil) {
			t.Error("there is a script that is inline")
		}
	}
}

// V4: whatever may scroll sideways can be reached by the keyboard on a phone, where cells of class wide are not
// shown: it has something to step to, or is such a thing itself.
func TestTablesThatScrollAreReachedByKeyboard(t *testing.T) {
	_, _, h := newFixture(fixed())
	eachPage(t, func(t *testing.T, path string) {
		doc, err := html.Parse(strings.NewReader(get(h, path).Body.String()))
		testkit.Must(t, err)
		for n := range doc.Descendants() {
			if slices.Contains(strings.Fields(attribute(n, "class")), "scroll") && !reached(n) {
				t.Errorf("no keyboard reaches a table of %s: give it a tabindex, a role and a label", path)
			}
		}
	})
}

// reached says whether an element, or one in it that a phone shows too, can be stepped to.
func reached(n *html.Node) bool {
	if slices.Contains(strings.Fields(attribute(n, "class")), "wide") {
		return false
	}
	if n.Data == "a" || n.Data == "button" || attribute(n, "tabindex") == "0" {
		return true
	}
	for c := range n.ChildNodes() {
		if reached(c) {
			return true
		}
	}
	return false
}

// attribute is "" where there is none.
func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

type link struct{ method, address string }

// linksOf are all addresses of a page.
func linksOf(t *testing.T, page, at string) []link {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	testkit.Must(t, err)
	var all []link
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		values := map[string]string{}
		for _, a := range n.Attr {
			values[a.Key] = a.Val
		}
		switch to := values["href"]; {
		case n.Data == "form" && values["method"] == "post":
			action := values["action"]
			if action == "" {
				action = at
			}
			all = append(all, link{http.MethodPost, action})
		case n.Data == "a" && !strings.HasPrefix(to, "#"):
			all = append(all, link{http.MethodGet, to})
		}
	}
	return all
}

// V1: what the API refuses is said on the page, in its words and with its status.
func TestWhatTheAPIRefusesIsSaid(t *testing.T) {
	_, api, h := newFixture(fixed())
	api.refuse = &admin.Problem{Type: "urn:eventyard:problem:insufficient-rights", Title: "The token has too few rights", Status: http.StatusForbidden, Detail: "Manage is required", Next: "show another key"}
	for _, path := range []string{base, base + "hubs", base + "hubs/sensors", base + "hubs/sensors/groups/aggregator", base + "topics", base + "functions", base + "access", base + "storage"} {
		w := get(h, path)
		testkit.Equal(t, w.Code, http.StatusForbidden, path)
		for _, part := range []string{"Manage is required", "show another key", "insufficient-rights", rootPolicy} {
			testkit.That(t, strings.Contains(w.Body.String(), part), "%s does not say %q", path, part)
		}
	}
	w := post(h, base+"new/hub", url.Values{"name": {"made"}, "partitions": {"2"}})
	testkit.Equal(t, w.Code, http.StatusForbidden)
	testkit.That(t, strings.Contains(w.Body.String(), "Manage is required") && strings.Contains(w.Body.String(), `value="made"`), "the form is not shown again with what was filled in")
}

// V4: an empty yard shows its first steps, and lists that are empty say what would be there.
func TestAnEmptyYard(t *testing.T) {
	empty := fixed()
	for path, list := range map[string]string{"hubs": "hubs", "topics": "topics", "subscriptions": "subscriptions", "functions": "functions", "circuits": "circuits"} {
		empty["GET /api/v1/"+path] = map[string]any{list: []int{}}
	}
	_, _, h := newFixture(empty)
	for path, says := range map[string]string{base: "An empty yard", base + "hubs": "No hub yet", base + "topics": "No topic yet", base + "functions": "No function yet"} {
		testkit.That(t, strings.Contains(get(h, path).Body.String(), says), "%s does not say %q", path, says)
	}
}

// V4: a page leads to no event that is not there, of which it asks the one partition alone; and offers to delete
// no group that stays, and to forget no instance that lives or has said nothing.
func TestNothingIsOfferedThatCannotBe(t *testing.T) {
	answers := fixed()
	_, api, h := newFixture(answers)
	page := func(path string) string { return get(h, base+path).Body.String() }
	event := "hubs/sensors/partitions/0/events/41"
	testkit.That(t, strings.Contains(page(event), ">Before<") && strings.Contains(page(event), ">After<"), "an event in the middle has none beside it")
	answers["GET /api/v1/hubs/{hub}/partitions/{partition}"] = admin.Partition{ID: "0", First: 41, Last: 41}
	testkit.That(t, !strings.Contains(page(event), ">Before<") && !strings.Contains(page(event), ">After<"), "the only event has one beside it")
	testkit.That(t, !slices.Contains(api.calls, "GET /api/v1/hubs/sensors/partitions"), "it asks all partitions")

	for instance, offered := range map[string]bool{"consumer-1": false, "consumer-3": true, "foreign": false} {
		testkit.Equal(t, strings.Contains(page("hubs/sensors/groups/aggregator"), `href="`+forgetPath("sensors", "aggregator", instance)+`"`), offered, instance+" can be forgotten")
	}
	deletion := at("hubs", "sensors", "groups", "aggregator", "delete")
	testkit.That(t, strings.Contains(page("hubs/sensors/groups/aggregator"), deletion), "a group cannot be deleted")
	o := fixedOwnership()
	o.Group = "$default"
	answers["GET /api/v1/hubs/{hub}/groups/{group}/ownership"] = o
	testkit.That(t, !strings.Contains(page("hubs/sensors/groups/$default"), "/delete"), "the group that every hub has can be deleted")
}

// Budgets of bytes, compressed: the script, the style, the icons, and a page.
func TestBudgets(t *testing.T) {
	c, _, h := newFixture(fixed())
	script := 0
	for name, f := range c.assets.files {
		if strings.HasSuffix(name, ".js") {
			script += len(f.small)
		}
	}
	testkit.That(t, script <= 12_000, "the script has %d bytes", script)
	testkit.That(t, len(c.assets.files["console.css"].small) <= 11_000, "the style has %d bytes", len(c.assets.files["console.css"].small))
	testkit.That(t, len(c.assets.files["icons.svg"].small) <= 6_000, "the icons have %d bytes", len(c.assets.files["icons.svg"].small))
	eachPage(t, func(t *testing.T, path string) {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept-Encoding", "gzip")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		testkit.That(t, w.Body.Len() <= 12_000, "it has %d bytes", w.Body.Len())
	})
}
