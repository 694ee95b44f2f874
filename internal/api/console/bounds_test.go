package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R2: no body becomes much longer than it is by being made readable.
func TestABodyStaysWithinBounds(t *testing.T) {
	deep := func(levels, items int) string {
		return strings.Repeat("[", levels) + strings.Repeat("1,", items) + "1" + strings.Repeat("]", levels)
	}
	for name, tt := range map[string]struct {
		body     string
		coloured bool
	}{
		"as people write it":          {`{"a":[1,{"b":"c"}],"d":null}`, true},
		"brackets in a text":          {`{"a":"` + strings.Repeat("[{,", 1000) + `\"["}`, true},
		"deep, and many lines":        {deep(4000, 4000), false},
		"as deep as the grid takes":   {deep(256, 500_000), false},
		"many lines, less deep":       {deep(60, 500_000), false},
		"a text without an end":       {`{"a":"` + strings.Repeat("[", 100), false},
		"brackets that do not belong": {strings.Repeat("]", 100_000), false},
	} {
		t.Run(name, func(t *testing.T) {
			shown := string(showBody([]byte(tt.body), "json", false))
			testkit.Equal(t, strings.Contains(shown, "<span"), tt.coloured, "it is coloured")
			testkit.That(t, len(shown) <= 8*len(tt.body)+64<<10, "%d bytes become %d", len(tt.body), len(shown))
		})
	}
}

// R2: strangers get pages that take nothing to be made, and hold nothing while they are not taken.
func TestWhatStrangersGetIsSmall(t *testing.T) {
	c, _, h := newFixture(fixed())
	c.cfg.Access = openAccess{}
	for _, path := range []string{"/console/signin", "/console/" + strings.Repeat("a", 8000), "/console/signin?to=/console/" + strings.Repeat("a", 8000)} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept-Encoding", "gzip")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		testkit.Equal(t, w.Header().Get("Content-Encoding"), "", "compression of "+path[:min(len(path), 20)])
		testkit.That(t, w.Body.Len() < 8<<10, "%d bytes of %s", w.Body.Len(), path[:min(len(path), 20)])
	}
}

// R2: who asks for more pages at once than one may is told so, and others are served.
func TestPagesAtOnce(t *testing.T) {
	c, _, h := newFixture(fixed())
	testkit.Equal(t, get(h, "/console/hubs").Code, http.StatusOK)
	var holder string
	for i := range maxVisits {
		holder = fmt.Sprint("policy ", i/maxVisitsOfOne)
		testkit.Must(t, testkit.Err(c.visits.Take(holder, 1)))
	}
	w := get(h, "/console/hubs")
	testkit.Equal(t, w.Code, http.StatusTooManyRequests)
	testkit.That(t, w.Header().Get("Retry-After") != "", "it does not say when to try again")
}

// V3, R2: who is not signed in gets an error on a page without the console's menu, and what others wrote is
// text on it.
func TestTheErrorPageOfStrangers(t *testing.T) {
	for status, way := range map[int]string{http.StatusUnauthorized: ">Sign in</a>", http.StatusNotFound: ">Overview</a>"} {
		answer := httptest.NewRecorder()
		failStranger(answer, httptest.NewRequest(http.MethodGet, "/console/x", nil), readAssets(), frame.Refusal{Status: status, Code: "odd", Title: "<b>Odd</b>", Detail: "<script>\"\x1b", Next: "<i>"})
		page := answer.Body.String()
		testkit.Equal(t, answer.Code, status)
		testkit.That(t, strings.Contains(page, way) && strings.Contains(page, "odd, "), "the page is %s", page)
		testkit.That(t, !strings.Contains(page, "<b>") && !strings.Contains(page, "<script") && !strings.Contains(page, "<i>") && !strings.Contains(page, "<nav") && !strings.Contains(page, "\x1b"), "the page is %s", page)
	}
}
