package eventgrid

import (
	"fmt"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G11: the link confirms by GET and by POST, for programs and for people, whoever opens it.
func TestValidationLinks(t *testing.T) {
	y := newYard(t)
	path := ValidationPath("orders", "id1", "to&ken")
	got := y.ask("GET", path, "").want(200)
	var answer struct{ Status, Subscription, Message string }
	got.json(&answer)
	if answer.Status != "Succeeded" || answer.Subscription != "mailer" || !strings.Contains(answer.Message, "confirmed") {
		t.Errorf("answered %s", got.text)
	}
	page := y.ask("GET", path, "", header("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")).want(200)
	if !strings.Contains(page.text, "<h1>The endpoint is confirmed</h1>") || page.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("the page is %s", page.text)
	}
	if page.Header.Get("Referrer-Policy") != "no-referrer" || page.Header.Get("Cache-Control") != "no-store" || !strings.HasPrefix(page.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("the page's headers are %v", page.Header)
	}
	y.ask("POST", path, "", header("WebHook-Allowed-Rate", "120")).want(200)
	y.ask("POST", path, "", header("WebHook-Allowed-Rate", "*")).want(200)
	y.ask("GET", ValidationPath("", "id2", "t"), "").want(200)
	want := []string{"id1 to&ken 0", "id1 to&ken 0", "id1 to&ken 120", "id1 to&ken 0", "id2 t 0"}
	testkit.Slices(t, y.topics.confirmed, want, "confirmed")
}

// G11: whoever opens a link is told what becomes of the events, which is not always that they are delivered.
func TestAConfirmationSaysWhatComesOfIt(t *testing.T) {
	for state, test := range map[topics.State]struct{ why, want string }{
		topics.Active:  {"", "confirmed: events of topic orders are delivered to it from now on."},
		topics.Paused:  {"", "confirmed: the subscription is paused, so that events of topic orders wait until it is resumed."},
		topics.Expired: {"it expired at noon", "confirmed: the subscription is expired, it expired at noon."},
	} {
		t.Run(string(state), func(t *testing.T) {
			y := newYard(t)
			y.topics.becomes = topics.Subscription{State: state, Why: test.why}
			var answer struct{ Message string }
			y.ask("GET", ValidationPath("orders", "id1", "t"), "").want(200).json(&answer)
			testkit.That(t, strings.HasSuffix(answer.Message, test.want), "it is told %q", answer.Message)
		})
	}
}

// A link that is wrong, late, used or cut says so, and how to get another.
func TestValidationLinksThatAreNotGood(t *testing.T) { // G11
	y := newYard(t)
	for _, rate := range []string{"0", "-1", "x", "1.5", "99999999999999999999"} {
		y.ask("GET", ValidationPath("orders", "id1", "t"), "", header("WebHook-Allowed-Rate", rate)).refused(400, "InvalidHeaderValue")
	}
	for _, query := range []string{"", "?id=a", "?token=a", "?id=&token=", "?id=a&token="} {
		y.ask("GET", "/topics/orders/validate"+query, "").refused(400, "InvalidValidationLink")
	}
	testkit.Equal(t, len(y.topics.confirmed), 0, "confirmed %q", y.topics.confirmed)
	y.topics.confirm = fmt.Errorf("confirm <mailer>: %w", topics.ErrToken)
	if text := y.ask("GET", ValidationPath("orders", "id1", "t"), "").refused(403, "InvalidValidationLink"); !strings.Contains(text, "again") {
		t.Errorf("told %s", text)
	}
	page := y.ask("GET", ValidationPath("orders", "id1", "t"), "", header("Accept", "text/html")).want(403)
	if !strings.Contains(page.text, "<h1>The endpoint was not confirmed</h1>") || !strings.Contains(page.text, "&lt;mailer&gt;") || !strings.Contains(page.text, "again") {
		t.Errorf("the page is %s", page.text)
	}
	y.topics.confirm = fmt.Errorf("confirm: %w", topics.ErrNotFound)
	y.ask("GET", ValidationPath("orders", "id1", "t"), "").refused(404, "ResourceNotFound")
}
