package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V4: a hub's page leads to a connection string, without its key, and to programs that send and read in each language;
// who may not see policies, or only read, gets what is for them.
func TestConnectToAHub(t *testing.T) {
	c, _, h := newFixture(fixed())
	testkit.That(t, strings.Contains(get(h, base+"hubs/sensors").Body.String(), `href="/console/hubs/sensors/connect"`), "the hub does not lead there")
	for _, l := range languages {
		w := get(h, base+"hubs/sensors/connect?lang="+l.word)
		checkPage(t, w)
		for _, says := range []string{"SharedAccessKey=••••••••", `data-copy-from="/console/policies/gateway/copy?hub=sensors&amp;key=primary"`, "Send an event", `aria-current="true">` + l.name} {
			testkit.That(t, strings.Contains(w.Body.String(), says), "in %s it does not say %q", l.name, says)
		}
		testkit.That(t, !strings.Contains(w.Body.String(), "first-key"), "it shows a key")
	}
	signedInWith(c, "sensors", auth.Listen)
	w := getSignedIn(h, base+"hubs/sensors/connect?lang=python")
	testkit.Equal(t, w.Code, http.StatusOK)
	page := w.Body.String()
	testkit.That(t, strings.Contains(page, "EventHubConsumerClient") && !strings.Contains(page, "EventHubProducerClient"), "who may read is not shown how to read alone")
	testkit.That(t, strings.Contains(page, "Use the one that you were given") && !strings.Contains(page, "data-copy-from"), "policies are shown to who may not see them")
}
