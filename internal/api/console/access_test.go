package console

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V3: a connection string is on the page without its key; the script gets it whole by a form's way, which leaves
// nothing behind, and which key that is was chosen.
func TestAConnectionStringIsCopiedWithoutBeingShown(t *testing.T) {
	_, _, h := newFixture(fixed())
	page := get(h, base+"access?policy=gateway&key=secondary").Body.String()
	from := at("policies", "gateway", "copy")
	testkit.That(t, strings.Contains(page, "SharedAccessKey=••••••••"), "there is no connection string without its key")
	testkit.That(t, strings.Contains(page, `data-copy-from="`+from+`?key=secondary"`), "it cannot be copied")
	for key, want := range map[string]string{"primary": "Endpoint=sb://a/;first", "secondary": "Endpoint=sb://a/;second"} {
		w := post(h, from+"?key="+key, url.Values{})
		testkit.Equal(t, w.Body.String(), want)
		testkit.Equal(t, w.Header().Get("Cache-Control"), "no-store")
		testkit.Equal(t, w.Header().Get("Content-Type"), "text/plain; charset=utf-8")
	}
	answers := fixed()
	answers["GET /api/v1/policies/{policy}"] = admin.Policy{Name: "gateway"}
	_, _, h = newFixture(answers)
	testkit.Equal(t, post(h, from, url.Values{}).Code, 422, "where there is no AMQP listener")
}

// V4: the steps of changing a key say where one is, by when each key was last used.
func TestAKeyIsChangedInFourSteps(t *testing.T) {
	ago := func(d time.Duration) *admin.Time { return apiTime(d) }
	for want, use := range map[string]admin.KeyUse{
		"now - - -":     {Primary: ago(time.Minute)},
		"done now - -":  {Primary: ago(time.Minute), Secondary: ago(time.Second)},
		"done done now": {Primary: ago(2 * time.Hour), Secondary: ago(time.Second)},
	} {
		var states []string
		for _, s := range keySteps(use, before(24*time.Hour), noon) {
			states = append(states, orWord(s.State, "-"))
		}
		testkit.That(t, strings.HasPrefix(strings.Join(states, " "), want), "the steps are %q, want %s", states, want)
		testkit.Equal(t, len(states), 4)
	}
	unused := keySteps(admin.KeyUse{}, before(24*time.Hour), noon)
	testkit.Equal(t, unused[0].Said, "The secondary key was not used since 30 Jan 12:00 UTC.")
	testkit.Equal(t, keySteps(admin.KeyUse{Secondary: ago(time.Second)}, noon, noon)[2].State, "now", "a primary key that nobody has used")
}

// V4: each policy says how many are connected by it and when it was last used, whichever case names are in; the
// page also lists the policies of hubs. Who may not know who is connected sees all the same who may do what.
func TestAccessShowsWhoIsConnected(t *testing.T) {
	answers := fixed()
	_, _, h := newFixture(answers)
	page := get(h, base+"access").Body.String()
	for _, says := range []string{`<span id="k0-c">1</span>`, `<span id="k0-u">now</span>`, "10.2.0.14:50122", "The whole namespace", "Hub sensors", `<span id="k1-u">not since 30 Jan 12:00 UTC</span>`, "yard.example, 127.0.0.1", "4f2a910ce7"} {
		testkit.That(t, strings.Contains(page, says), "the page does not say %s", says)
	}
	testkit.That(t, !strings.Contains(page, "10.2.0.31"), "it lists a connection of somebody else")
	delete(answers, "GET /api/v1/connections")
	delete(answers, "GET /api/v1/certificate")
	page = get(h, base+"access").Body.String()
	testkit.That(t, strings.Contains(page, `<span id="k0-c">–</span>`) && !strings.Contains(page, "without a gap"), "it says what nobody told it")
}

// V4: in each language there is a program that sends where the policy may send, and one that reads where it may
// not; for who may do neither there is none.
func TestProgramsInSixLanguages(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range languages {
		for _, sends := range []bool{true, false} {
			text := snippet(l, `or"ders`, sends, "http://127.0.0.1:8080")
			testkit.That(t, text != "" && !seen[text], "%s has no program of its own", l.name)
			testkit.That(t, strings.Contains(text, `"or\"ders"`) || strings.Contains(text, "or%22ders"), "the hub is not named as %s wants it: %s", l.name, text)
			testkit.That(t, strings.Contains(text, "YARD"), "it says no connection string: %s", text)
			seen[text] = true
		}
	}
	answers := fixed()
	answers["GET /api/v1/policies"] = map[string]any{"policies": []admin.Policy{{Name: "scraper", Rights: []string{"Metrics"}}}}
	_, _, h := newFixture(answers)
	testkit.That(t, !strings.Contains(get(h, base+"access").Body.String(), "A program that connects"), "there is a program for who may read metrics alone")
	testkit.That(t, strings.Contains(get(h, base+"access?policy=gateway&of=sensors&lang=go").Body.String(), "hub.Dial(ctx"), "the language cannot be chosen")
}
