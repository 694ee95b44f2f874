package v1

import (
	"net/http"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R6, G1: what a topic holds can be looked at page by page, from anywhere, and nobody is deprived of it.
func TestReadTopic(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.want(http.StatusCreated, "POST", "/api/v1/topics", `{"name":"readings"}`)
		y.publish("readings", "1", "2", "3")
		page := func(query string) admin.TopicEvents {
			return read[admin.TopicEvents](t, y.want(http.StatusOK, "GET", "/api/v1/topics/Readings/events"+query, nil))
		}
		first := page("?max=2")
		testkit.That(t, len(first.Events) == 2 && first.Next == 2 && strings.Contains(string(first.Events[0].Event), `"eventType"`), "the first page is %+v", first)
		rest := page("?from=2")
		testkit.That(t, len(rest.Events) == 1 && rest.Events[0].Sequence == 2 && rest.Next == 3, "the rest is %+v", rest)
		testkit.Equal(t, len(page("?from=latest").Events), 0, "events behind the last")
		y.refused(http.StatusNotFound, "topic-not-found", "GET", "/api/v1/topics/nowhere/events", nil)
		y.refused(http.StatusBadRequest, "bad-request", "GET", "/api/v1/topics/readings/events?max=0", nil)
	})
}
