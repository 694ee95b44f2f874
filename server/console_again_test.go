package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/grid"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V2, V3: who has signed in sends an event again, to its hub with all that it has and to its topic with its id,
// by the rights of the session: also where the topic takes no keys.
func TestSendingAgainAtTheConsole(t *testing.T) {
	b := newBeyond(t)
	ctx, session, form := t.Context(), b.signIn("http"), url.Values{"step": {"act"}}

	event := json.RawMessage(`{"body":{"a":1},"contentType":"application/json","messageId":"m1","key":"k","properties":{"n":1},"subject":"s"}`)
	stored := testkit.Value(b.client.Send(ctx, "orders", admin.Batch{Events: []json.RawMessage{event}}))(t)
	path := fmt.Sprintf("/console/hubs/orders/partitions/%s/events/%d/again", stored.Partition, stored.First)
	testkit.Equal(t, b.status("POST", b.url("http", path), form, session), http.StatusSeeOther, "a hub's")
	var read []map[string]any
	for line, err := range b.client.Read(ctx, admin.Query{Hub: "orders", From: "earliest", Count: 2}, nil) {
		testkit.Must(t, err)
		var e map[string]any
		testkit.Must(t, json.Unmarshal(line, &e))
		for _, own := range []string{"sequence", "offset", "enqueued"} {
			delete(e, own)
		}
		read = append(read, e)
	}
	testkit.MustEqual(t, len(read), 2, "events")
	testkit.Equal(t, fmt.Sprint(read[1]), fmt.Sprint(read[0]), "the new event")

	topic := testkit.Value(b.client.CreateTopic(ctx, admin.TopicRequest{Name: "shop", Schema: "cloudevents"}))(t)
	publisher := testkit.Value(grid.NewClient(grid.Config{Endpoint: b.url("http", "/topics/shop/api/events"), Key: topic.Keys.Key1, Schema: grid.CloudEvents}))(t)
	testkit.Must(t, publisher.Publish(ctx, grid.Event{ID: "one", Type: "order.placed", Source: "/shop", Data: []byte(`{"total":42}`)}))
	testkit.Must(t, testkit.Err(b.client.UpdateTopic(ctx, "shop", admin.TopicRequest{DisableKeys: new(true)})))
	first := testkit.Value(b.client.ReadTopic(ctx, "shop", "earliest", 0))(t)
	testkit.MustEqual(t, len(first.Events), 1, "events of the topic")
	path = fmt.Sprintf("/console/topics/shop/events/%d/again", first.Events[0].Sequence)
	testkit.Equal(t, b.status("POST", b.url("http", path), form, session), http.StatusSeeOther, "a topic's")
	all := testkit.Value(b.client.ReadTopic(ctx, "shop", "earliest", 0))(t)
	testkit.MustEqual(t, len(all.Events), 2, "events of the topic")
	testkit.Equal(t, string(all.Events[1].Event), string(first.Events[0].Event), "the new event of the topic")
}
