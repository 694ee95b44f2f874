package eventgrid

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// publishVersion is the one version that clients of push topics speak.
const publishVersion = "2018-01-01"

// provider stands in every path of the resource manager that is about the grid.
const provider = "/providers/microsoft.eventgrid/"

// Serves tells whether a request is for this listener: /topics/…, the resource manager's paths
// about Microsoft.EventGrid, /api/events, which every host has, and a POST to / that an Event
// Grid client made of a bare host whose first label may name a topic.
func Serves(r *http.Request) bool {
	path := auth.Fold(strings.TrimSuffix(r.URL.Path, "/"))
	switch {
	case path == "":
		return r.Method == http.MethodPost && topickey.TopicOfHost(r.Host) != "" && r.URL.Query().Get("api-version") == publishVersion
	case path == "/topics", path == "/api/events", strings.HasPrefix(path, "/topics/"):
		return true
	}
	return strings.HasPrefix(path, "/subscriptions/") && strings.Contains(path+"/", provider) || strings.HasPrefix(path, provider)
}

// ofHubs stands in paths for a topic, where a subscription's events come from a hub. It is too
// short to be a topic's name.
const ofHubs = "-"

// ValidationPath is the link, without the host, that the owner of an endpoint opens to agree.
// topic is empty for subscriptions to hubs.
func ValidationPath(topic, id, token string) string {
	topic = cmp.Or(topic, ofHubs)
	return "/topics/" + url.PathEscape(topic) + "/validate?" + url.Values{"id": {id}, "token": {token}}.Encode()
}
