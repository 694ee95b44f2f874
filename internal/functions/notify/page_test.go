package notify

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/testkit"
)

// desk is a service whose pages are looked at, and an incident i1 of function resize.
type desk struct {
	*world
	*Service
	link string
}

func newDesk(t *testing.T) *desk {
	w := newWorld(t)
	d := &desk{world: w, Service: w.open()}
	w.circuits.set("resize", opened(breaker.Record{}, "i1"))
	d.link, _ = d.Service.link(resizers, "resize", "i1", time.Now())
	return d
}

func (d *desk) ask(method, link string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, link, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if !Serves(r) {
		d.t.Errorf("%s is not served", link)
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

func (d *desk) state() breaker.State { return d.circuits.get("resize").State }

// F7
func TestTheButtonResumesOnce(t *testing.T) {
	d := newDesk(t)
	page := d.ask("GET", d.link)
	body := page.Body.String()
	if page.Code != 200 || strings.Count(body, "<form method=\"post\">") != 1 || strings.Count(body, ">Resume</button>") != 1 {
		t.Fatalf("the page is %d %s", page.Code, body)
	}
	for _, part := range []string{"resize", "Images", "resizer", `<span class="badge open">circuit open</span>`, "Stopped after 101 failures", "just now", "host-1", "more than 100 failures", "101 failures within 30 s", "1,234 events",
		"no such image", "partition 3, event 1841", "stays open until it is resumed", "eventyard circuit close resize"} {
		testkit.That(t, strings.Contains(body, part), "the page lacks %q:\n%s", part, body)
	}
	done := d.ask("POST", d.link)
	if done.Code != 200 || !strings.Contains(done.Body.String(), "Resumed") || d.state() != breaker.Closed || d.circuits.get("resize").By != linkUser {
		t.Fatalf("pressed: %d %s, and the circuit is %+v", done.Code, done.Body, d.circuits.get("resize"))
	}
	term := d.circuits.get("resize").Term
	for _, method := range []string{"POST", "GET"} {
		again := d.ask(method, d.link)
		if again.Code != http.StatusGone || !strings.Contains(again.Body.String(), "running already") || strings.Contains(again.Body.String(), "<form") {
			t.Errorf("once more by %s: %d %s", method, again.Code, again.Body)
		}
	}
	testkit.Equal(t, d.circuits.get("resize").Term, term, "the circuit was changed twice")
}

// F6: mail scanners and chats follow links, and some ask for more than they need.
func TestOnlyTheButtonResumes(t *testing.T) {
	d := newDesk(t)
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "PROPFIND", "TRACE"} {
		for _, link := range []string{d.link, d.link + "?resume=1", d.link + "?_method=POST"} {
			answer := d.ask(method, link, "X-HTTP-Method-Override", "POST", "Sec-Purpose", "prefetch")
			wanted := http.StatusMethodNotAllowed
			if method == "GET" || method == "HEAD" {
				wanted = 200
			}
			if answer.Code != wanted || wanted == http.StatusMethodNotAllowed && answer.Header().Get("Allow") != "GET, HEAD, POST" {
				t.Errorf("%s gives %d", method, answer.Code)
			}
			if method == "HEAD" && answer.Body.Len() > 0 {
				t.Error("HEAD has a body")
			}
		}
	}
	if r := d.circuits.get("resize"); r.State != breaker.Open || r.Term != 1 {
		t.Errorf("the circuit is %+v", r)
	}
}

func TestWhereTheButtonIsPressedIsLookedAt(t *testing.T) {
	tests := []struct {
		name   string
		header []string
		ok     bool
	}{
		{"a program says nothing", nil, true},
		{"our page", []string{"Sec-Fetch-Site", "same-origin", "Origin", yardURL}, true},
		{"our page, which hides its origin", []string{"Sec-Fetch-Site", "same-origin", "Origin", "null"}, true},
		{"an older browser", []string{"Origin", yardURL}, true},
		{"an older browser, which hides the origin", []string{"Origin", "null"}, true},
		{"another site", []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, false},
		{"a neighbour", []string{"Sec-Fetch-Site", "same-site"}, false},
		{"an older browser, another site", []string{"Origin", "https://evil.example"}, false},
		{"an origin that is none", []string{"Origin", "://"}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			answer := d.ask("POST", d.link, test.header...)
			if ok := answer.Code == 200 && d.state() == breaker.Closed; ok != test.ok || !ok && answer.Code != http.StatusForbidden {
				t.Errorf("got %d, and the circuit is %s", answer.Code, d.state())
			}
		})
	}
}

// F6: what a link is no good for any more, and what it says then. Looking and pressing say the
// same.
func TestLinksThatAreNoGoodSaySoKindly(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(d *desk) (link string)
		status  int
		says    []string
	}{
		{"expired", func(d *desk) string {
			link, _ := d.Service.link(resizers, "resize", "i1", time.Now().Add(-defaultLinkLife))
			return link
		}, 410, []string{"expired", "eventyard circuit close resize"}},
		{"resumed by another", func(d *desk) string {
			d.circuits.set("resize", closed(d.circuits.get("resize"), "Ada"))
			return d.link
		}, 410, []string{"running already", "by Ada", "badge closed"}},
		{"of an earlier incident", func(d *desk) string {
			d.circuits.set("resize", opened(closed(d.circuits.get("resize"), "Ada"), "i2"))
			return d.link
		}, 410, []string{"earlier incident", "badge open"}},
		{"held by an operator", func(d *desk) string {
			d.circuits.set("resize", held(d.circuits.get("resize"), "", "Bob"))
			return d.link
		}, 409, []string{"An operator holds", "by Bob", "eventyard circuit close resize"}},
		{"the function is gone", func(d *desk) string { d.circuits.remove("resize"); return d.link }, 410, []string{"not there any more"}},
		{"forged", func(d *desk) string {
			token, _ := grant{resizers, "resize", "i1", time.Now().Add(time.Hour)}.sign(aSecret)
			return yardURL + PathPrefix + token
		}, 404, []string{"cannot be read"}},
		{"cut", func(d *desk) string { return d.link[:len(d.link)-5] }, 404, []string{"cannot be read"}},
		{"with something behind it", func(d *desk) string { return d.link + "/x" }, 404, []string{"cannot be read"}},
		{"empty", func(d *desk) string { return yardURL + PathPrefix }, 404, []string{"cannot be read"}},
		{"the yard is in trouble", func(d *desk) string { d.circuits.trouble = errors.New("no store"); return d.link }, 503, []string{"try again"}},
	}
	for _, test := range tests {
		for _, method := range []string{"GET", "POST"} {
			t.Run(test.name+" "+method, func(t *testing.T) {
				d := newDesk(t)
				link := test.prepare(d)
				before := d.circuits.get("resize")
				answer := d.ask(method, link)
				if answer.Code != test.status || strings.Contains(answer.Body.String(), "<form") {
					t.Errorf("got %d %s", answer.Code, answer.Body)
				}
				for _, part := range test.says {
					if !strings.Contains(answer.Body.String(), part) {
						t.Errorf("the page lacks %q: %s", part, answer.Body)
					}
				}
				if after := d.circuits.get("resize"); after.Term != before.Term {
					t.Errorf("the circuit was changed to %+v", after)
				}
			})
		}
	}
}

// Mails are kept for years, and are read by many: a link that has expired shows nothing of the
// circuit any more.
func TestAnExpiredLinkShowsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDesk(t)
		_, expires := d.Service.link(resizers, "resize", "i1", time.Now())
		time.Sleep(time.Until(expires) - time.Nanosecond)
		testkit.Equal(t, d.ask("GET", d.link).Code, 200, "before it expires")
		time.Sleep(time.Nanosecond)
		for _, method := range []string{"GET", "POST"} {
			answer := d.ask(method, d.link)
			for _, part := range []string{"no such image", "1,234", "Images", "resizer", "host-1", `class="badge`} {
				testkit.That(t, !strings.Contains(answer.Body.String(), part), "%s shows %q", method, part)
			}
			if answer.Code != http.StatusGone || d.state() != breaker.Open {
				t.Errorf("%s gives %d, and the circuit is %s", method, answer.Code, d.state())
			}
		}
	})
}

// A proxy may pass its own name for the yard on, which then is not what the browser calls the
// origin.
func TestTheButtonWorksBehindAProxy(t *testing.T) {
	for origin, ok := range map[string]bool{yardURL: true, "https://evil.example": false, "https://yard.example.com.evil.example": false, "file://": false} {
		d := newDesk(t)
		if !ok {
			d.Service.cfg.Link = func() string { return "" } // it was taken out since
		}
		answer := d.ask("POST", strings.Replace(d.link, yardURL, "http://127.0.0.1:8080", 1), "Origin", origin)
		if done := answer.Code == 200 && d.state() == breaker.Closed; done != ok {
			t.Errorf("from %s: %d, and the circuit is %s", origin, answer.Code, d.state())
		}
	}
}

func TestAHalfOpenCircuitIsResumedToo(t *testing.T) {
	d := newDesk(t)
	d.circuits.set("resize", halfOpened(d.circuits.get("resize")))
	if answer := d.ask("POST", d.link); answer.Code != 200 || d.state() != breaker.Closed {
		t.Errorf("got %d, and the circuit is %s", answer.Code, d.state())
	}
}

// Of many who press at once one resumes.
func TestOfManyWhoPressOneResumes(t *testing.T) {
	d := newDesk(t)
	codes := make([]int, 16)
	var all sync.WaitGroup
	for i := range codes {
		all.Go(func() { codes[i] = d.ask("POST", d.link).Code })
	}
	all.Wait()
	count := map[int]int{}
	for _, code := range codes {
		count[code]++
	}
	testkit.That(t, count[200] == 1 && count[410] == 15 && d.circuits.get("resize").Term == 2, "answers: %v", count)
}

func TestPagesLeakNothingAndAreFramedByNobody(t *testing.T) {
	d := newDesk(t)
	for _, answer := range []*httptest.ResponseRecorder{d.ask("GET", d.link), d.ask("HEAD", d.link), d.ask("GET", d.link+"x"), d.ask("PUT", d.link), d.ask("POST", d.link)} {
		for name, value := range map[string]string{
			"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "X-Robots-Tag": "noindex, nofollow",
			"X-Content-Type-Options": "nosniff", "Content-Type": "text/html; charset=utf-8",
		} {
			want(t, name, answer.Header().Get(name), value)
		}
		if policy := answer.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") || !strings.Contains(policy, "form-action 'self'") ||
			!strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("policy is %s", policy)
		}
	}
}

// The browser takes the style only if it is what the policy says, to the byte.
func TestTheStyleIsTheOneThatThePolicyAllows(t *testing.T) {
	d := newDesk(t)
	body := d.ask("GET", d.link).Body.String()
	style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(body)
	if style == nil || !strings.Contains(pagePolicy, "'sha256-"+digest(style[1])+"'") {
		t.Errorf("policy %s does not allow the style %q", pagePolicy, style)
	}
	for _, outside := range []string{"http://", "https://", "src=", "<script", "<link", "url(", "@import", "style="} {
		testkit.That(t, !strings.Contains(body, outside), "the page has %q", outside)
	}
}

func TestEvilTextsStayTextsOnPages(t *testing.T) {
	d := newDesk(t)
	r := d.circuits.get("resize")
	const evil = `"><script>alert(1)</script><form action="https://evil.example"><button>Resume</button>`
	r.By, r.Reason, r.Samples[0].Error, r.Samples[0].Partition = evil, evil, evil, evil
	d.circuits.set(evil, r)
	link, _ := d.Service.link(resizers, evil, "i1", time.Now())
	for _, method := range []string{"GET", "POST"} {
		_, elements := hrefs(t, d.ask(method, link).Body.String())
		if elements["script"] > 0 || elements["form"] > 1 || elements["button"] > 1 || elements["h1"] != 1 {
			t.Errorf("elements are %v", elements)
		}
	}
}
