package console

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
	"golang.org/x/net/html"
)

// V4: each page of the docs is whole, and whatever it leads to is there: another page, a heading of it, or
// a page of the console.
func TestAllDocsAndTheirLinks(t *testing.T) {
	_, _, h := newFixture(fixed())
	ids := map[string]map[string]bool{} // by path
	links := map[string][]string{}
	for path, a := range theLibrary().articles {
		w := get(h, a.Link())
		testkit.Equal(t, w.Code, http.StatusOK, path)
		testkit.That(t, a.Title != "" && !strings.Contains(w.Body.String(), "raw HTML omitted") && !strings.Contains(w.Body.String(), "\x01"), "%s is not whole", path)
		ids[a.Link()], links[a.Link()] = lookThrough(t, w)
	}
	testkit.That(t, len(ids) > 40, "there are %d pages", len(ids))
	for from, to := range links {
		for _, link := range to {
			path, fragment, _ := strings.Cut(link, "#")
			if path == "" {
				path = from
			}
			testkit.That(t, fragment == "" || ids[path][fragment], "%s leads to %s, and there is no such heading", from, link)
			if strings.HasPrefix(path, docsPath+"/") {
				testkit.That(t, ids[path] != nil, "%s leads to %s, which is not there", from, link)
			}
		}
	}
}

// lookThrough gives the ids and links of the article of a page, in which there is nothing that runs.
func lookThrough(t *testing.T, w *httptest.ResponseRecorder) (map[string]bool, []string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(w.Body.String()))
	testkit.Must(t, err)
	ids, links := map[string]bool{}, []string(nil)
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		testkit.That(t, elements[n.Data], "there is an element %s", n.Data)
		for _, a := range n.Attr {
			switch {
			case a.Key == "id":
				testkit.That(t, !ids[a.Val], "the id %s is there twice", a.Val)
				ids[a.Val] = true
			case a.Key == "href" && n.Data == "a" && !strings.HasPrefix(a.Val, "https://"):
				testkit.That(t, strings.HasPrefix(a.Val, base) || strings.HasPrefix(a.Val, "#"), "it leads to %s", a.Val)
				links = append(links, a.Val)
			}
		}
	}
	return ids, links
}

// V4: commands have the names of the reader's yard, written for a shell; no key is among them but the one
// that everybody knows.
func TestDocsHaveTheReadersNames(t *testing.T) {
	answers := fixed()
	_, _, h := newFixture(answers)
	page := get(h, docsPath+"/guides/first").Body.String()
	for _, says := range []string{"eventyard send sensors ", "topic publish alarms ", "Endpoint=sb://127.0.0.1:5672/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE", "<code>{hub}</code>"} {
		testkit.That(t, strings.Contains(page, says), "the page does not say %q", says)
	}
	for path, says := range map[string]string{
		"/guides/clients": "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE", "/guides/http": "curl -u RootManageSharedAccessKey:SAS_KEY_VALUE",
		"/guides/grid": "  http://example.com/topics/alarms/api/events -d", "/guides/access": "eventyard connection-string --hub sensors --policy RootManageSharedAccessKey",
	} {
		page := get(h, docsPath+path).Body.String()
		testkit.That(t, strings.Contains(page, says), "%s does not say %q", path, says)
	}
	page = get(h, docsPath+"/guides/http").Body.String()
	testkit.That(t, strings.Contains(page, "-X POST http://example.com/api/v1/hubs/sensors/events"), "the reader's address is not there")
	answers["GET /api/v1/hubs"] = map[string]any{"hubs": []admin.Hub{{Name: `<b>'; rm -rf ~`}}}
	page = get(h, docsPath+"/guides/first").Body.String()
	testkit.That(t, strings.Contains(page, `eventyard send &#39;&lt;b&gt;&#39;\&#39;&#39;; rm -rf ~&#39; `), "a name is not written for a shell")
}

// Headings are found by their words; what is not there says so.
func TestDocsAreFound(t *testing.T) {
	_, _, h := newFixture(fixed())
	page := get(h, docsPath+"?q=Signing+in").Body.String()
	testkit.That(t, strings.Contains(page, docsPath+"/guides/console#h-signing-in"), "the heading is not found")
	testkit.That(t, strings.Contains(get(h, docsPath+"?q=xyzzy").Body.String(), "No heading has these words"), "nothing is found, and it does not say so")
	testkit.Equal(t, get(h, docsPath+"/guides/nothing").Code, http.StatusNotFound)
	l, err := newLibrary(fstest.MapFS{"guides/a.md": {Data: []byte("# A\n\n<script>x</script>\n\n## Two `words`\n\n[b](../reference/b.md#c) [x](https://example.com)\n")}})
	testkit.Must(t, err)
	a := l.articles["guides/a"]
	testkit.That(t, a.Title == "A" && !strings.Contains(a.Text, "<script") && strings.Contains(a.Text, `id="h-two-words"`) && strings.Contains(a.Text, docsPath+"/reference/b#h-c") && strings.Contains(a.Text, `"https://example.com"`), "it is %+v", a)
}

// V4: a drawing is a part of its page, with the page's colours; what is none is refused.
func TestPicturesOfTheDocs(t *testing.T) {
	read := func(page, drawing string) (*library, error) {
		return newLibrary(fstest.MapFS{"concepts/a.md": {Data: []byte("# A\n\n" + page + "\n")}, "concepts/pictures/p.svg": {Data: []byte(drawing)}})
	}
	l, err := read("![a line](pictures/p.svg)", "<svg role=\"img\">\n<style>svg{color:red}</style>\n<path d=\"M0 0\"/></svg>")
	testkit.Must(t, err)
	testkit.Equal(t, strings.TrimSpace(l.articles["concepts/a"].Text), "<div class=\"scroll\" tabindex=\"0\"><svg role=\"img\">\n<path d=\"M0 0\"/></svg></div>")
	for _, page := range []string{"![gone](pictures/q.svg)", "![it](a.md)", "See ![a line](pictures/p.svg)"} {
		testkit.That(t, testkit.Err(read(page, "<svg></svg>")) != nil, "%s is taken", page)
	}
	pictures := 0
	for path, a := range theLibrary().articles {
		testkit.That(t, !strings.Contains(a.Text, "<img") && !strings.Contains(a.Text, "<style"), "%s has an image", path)
		pictures += strings.Count(a.Text, `<svg xmlns=`)
	}
	testkit.That(t, pictures >= 5, "there are %d pictures", pictures)
}

// Each page of the console that has a guide has one that is there.
func TestGuidesAreThere(t *testing.T) {
	for section, guide := range guides {
		testkit.That(t, theLibrary().articles[guide] != nil, "the guide to %q, %s, is not there", section, guide)
	}
	for guide := range seen {
		testkit.That(t, theLibrary().articles[guide] != nil, "the guide %s, which ends at a page, is not there", guide)
	}
	c, _, h := newFixture(fixed())
	for path := range theLibrary().articles {
		if strings.HasPrefix(path, "guides/") {
			page := get(h, docsPath+"/"+path).Body.String()
			testkit.That(t, strings.Contains(page, ">See it in your yard</a>"), "%s does not end at the page where one sees it", path)
		}
	}
	testkit.That(t, strings.Contains(get(h, base+"hubs/sensors/groups/aggregator").Body.String(), docsPath+"/guides/processor"), "the page of a group does not lead to its guide")
	testkit.That(t, strings.Contains(get(h, docsPath+"/guides/grid").Body.String(), `<a href="`+at("topics")+`">See it`), "the guide to the grid does not end at topics")
	eachPage(t, func(t *testing.T, path string) {
		switch {
		case strings.HasPrefix(path, docsPath), path == signInPath, path == base+"more", path == base+"nothing":
			return // the docs themselves, a list of links, and where there is nothing
		}
		testkit.That(t, strings.Contains(get(h, path).Body.String(), ">The guide to this page</a>"), "%s does not lead to its guide", path)
	})
	signedInWith(c, "", auth.Listen)
	testkit.That(t, strings.Contains(getSignedIn(h, docsPath+"/guides/grid").Body.String(), `<a href="`+base+`">See it`), "it leads to a page that would be refused")
}

// V4: what the docs say is safe to run is one command that a form can send: a click does what it says, for who
// may, and a hub that is there is not created again.
func TestDocsThatRun(t *testing.T) {
	marked := 0
	for path, a := range theLibrary().articles {
		for i, part := range strings.Split(a.Text, runMark) {
			command, _, _ := strings.Cut(part, runMark[:1])
			if i > 0 {
				testkit.That(t, testkit.Err(readRun(command, "orders")) == nil, "%s has a block that cannot be run: %s", path, command)
				marked++
			}
		}
	}
	testkit.That(t, marked >= 2, "%d blocks can be run", marked)

	answers := fixed()
	c, api, h := newFixture(answers)
	first := docsPath + "/guides/first"
	send := `action="/console/hubs/sensors/send"><input type="hidden" name="body" value="hello">`
	create := `action="/console/new/hub"><input type="hidden" name="name" value="orders"><input type="hidden" name="partitions" value="4">`
	page := get(h, first).Body.String()
	testkit.That(t, strings.Contains(page, send) && !strings.Contains(page, `action="/console/new/hub"`), "with a hub: %s", page)
	answers["GET /api/v1/hubs"] = map[string]any{"hubs": []admin.Hub{}}
	testkit.That(t, strings.Contains(get(h, first).Body.String(), create), "without a hub it cannot be created")
	testkit.Equal(t, post(h, createHub.path, url.Values{"name": {"orders"}, "partitions": {"4"}}).Code, http.StatusSeeOther)
	testkit.That(t, strings.Contains(api.body, `"name":"orders"`), "it creates %s", api.body)
	signedInWith(c, "", auth.Listen)
	testkit.That(t, !strings.Contains(getSignedIn(h, first).Body.String(), "Run it here</button>"), "who may not is offered to")

	for _, command := range []string{"eventyard hub delete orders", "eventyard send orders a b", "eventyard send orders $(id)", "eventyard send 'orders", "rm -rf /", "eventyard hub create a; id", ""} {
		testkit.That(t, errors.Is(testkit.Err(readRun(command, "orders")), errNotRunnable), "%q can be run", command)
	}
	run, err := readRun(`eventyard send {hub} '{"total": 42}'`, "a/b")
	testkit.Must(t, err)
	testkit.Equal(t, run.form(), `<form class="acts" method="post" action="/console/hubs/a%2Fb/send"><input type="hidden" name="body" value="{&#34;total&#34;: 42}"><button class="btn slim" type="submit">Run it here</button></form>`+"\n")
}
