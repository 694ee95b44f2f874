package v1

import (
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/google/go-cmp/cmp"
)

// H1: a hub is made with the number of partitions asked for, or as usual.
func TestCreateHub(t *testing.T) {
	for _, tt := range []struct {
		what, body string
		want       admin.Hub
	}{
		{"as usual", `{"name":"Orders"}`,
			admin.Hub{Name: "Orders", Partitions: 4, PartitionIDs: []string{"0", "1", "2", "3"}, Retention: admin.Retention{Age: "168h"}}},
		{"with partitions and an age", `{"name":"Orders","partitions":2,"retention":{"age":"90m"}}`,
			admin.Hub{Name: "Orders", Partitions: 2, PartitionIDs: []string{"0", "1"}, Retention: admin.Retention{Age: "1h30m"}}},
		{"a size leaves the usual age", `{"name":"Orders","partitions":1,"retention":{"bytes":1000}}`,
			admin.Hub{Name: "Orders", Partitions: 1, PartitionIDs: []string{"0"}, Retention: admin.Retention{Age: "168h", Bytes: 1000}}},
		{"days, and for ever", `{"name":"Orders","partitions":1,"retention":{"age":"0s","bytes":0}}`,
			admin.Hub{Name: "Orders", Partitions: 1, PartitionIDs: []string{"0"}, Retention: admin.Retention{Age: "0s"}}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			y := newYard(t)
			made := y.want(201, "POST", "/api/v1/hubs", tt.body)
			var got, found admin.Hub
			made.json(t, &got)
			if created := `"created":"` + showTime(got.Created.Time) + `"`; !strings.Contains(string(made.body), created) {
				t.Errorf("there is no %s in %s", created, made.body) // times have milliseconds, and exactly these
			}
			tt.want.Created, tt.want.Groups = got.Created, []string{"$Default"}
			testkit.Diff(t, tt.want, got)
			y.want(200, "GET", made.header.Get("Location"), nil).json(t, &found)
			if diff := cmp.Diff(got, found); diff != "" {
				t.Error("found otherwise than made:", diff)
			}
		})
	}
}

// H1: what cannot be is refused, with a way out.
func TestHubRefusals(t *testing.T) {
	tests := []struct {
		what, method, path string
		body               any
		status             int
		kind               string
	}{
		{"a name that exists in another case", "POST", "/api/v1/hubs", `{"name":"ORDERS"}`, 409, "hub-exists"},
		{"no name", "POST", "/api/v1/hubs", `{}`, 400, "invalid-name"},
		{"a bad name", "POST", "/api/v1/hubs", `{"name":"a b"}`, 400, "invalid-name"},
		{"a name of the yard's own", "POST", "/api/v1/hubs", `{"name":"metrics"}`, 400, "reserved-name"},
		{"no partitions", "POST", "/api/v1/hubs", `{"name":"a","partitions":0}`, 400, "invalid-partition-count"},
		{"too many partitions", "POST", "/api/v1/hubs", `{"name":"a","partitions":1025}`, 400, "invalid-partition-count"},
		{"an age that is none", "POST", "/api/v1/hubs", `{"name":"a","retention":{"age":"soon"}}`, 400, "bad-request"},
		{"an age below zero", "POST", "/api/v1/hubs", `{"name":"a","retention":{"age":"-1s"}}`, 400, "invalid-retention"},
		{"an age beyond all bounds", "POST", "/api/v1/hubs", `{"name":"a","retention":{"age":"2000000000d"}}`, 400, "bad-request"},
		{"a field nobody knows", "POST", "/api/v1/hubs", `{"name":"a","partition":1}`, 400, "bad-request"},
		{"a field of another type", "POST", "/api/v1/hubs", `{"name":7}`, 400, "bad-request"},
		{"no body", "POST", "/api/v1/hubs", nil, 400, "bad-request"},
		{"half a body", "POST", "/api/v1/hubs", `{"name":`, 400, "bad-request"},
		{"more than a body", "POST", "/api/v1/hubs", `{"name":"a"}{}`, 400, "bad-request"},
		{"a body beyond bounds", "POST", "/api/v1/hubs", `{"name":"` + strings.Repeat("a", maxManagementBytes) + `"}`, 413, "too-large"},
		{"more partitions later", "PATCH", "/api/v1/hubs/orders", `{"partitions":8}`, 409, "partitions-fixed"},
		{"another name later", "PATCH", "/api/v1/hubs/orders", `{"name":"other"}`, 400, "bad-request"},
		{"a hub that is not there", "GET", "/api/v1/hubs/nowhere", nil, 404, "not-found"},
		{"changing a hub that is not there", "PATCH", "/api/v1/hubs/nowhere", `{}`, 404, "not-found"},
		{"deleting a hub that is not there", "DELETE", "/api/v1/hubs/nowhere", nil, 404, "not-found"},
		{"a method it does not have", "PUT", "/api/v1/hubs/orders", `{}`, 405, "method-not-allowed"},
		{"a path beneath a hub that is none", "GET", "/api/v1/hubs/orders/nothing", nil, 404, "no-such-path"},
		{"a path of another version", "GET", "/api/v2", nil, 404, "no-such-path"},
		{"a path of nothing", "GET", "/", nil, 404, "no-such-path"},
	}
	y := newYard(t)
	y.hub("orders", 4)
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) { y.in(t).refused(tt.status, tt.kind, tt.method, tt.path, tt.body) })
	}
	testkit.Equal(t, y.do("PUT", "/api/v1/hubs/orders", `{}`).header.Get("Allow"), "DELETE, GET, PATCH",
		"allowed")
}

// H1: hubs are found in any case, also with slashes in their names, and listed by name.
func TestFindAndListHubs(t *testing.T) {
	y := newYard(t)
	y.hub("shop/Orders", 1)
	y.hub("Alarms", 1)
	one := read[admin.Hub](t, y.want(200, "GET", "/api/v1/hubs/SHOP%2Forders", nil))
	testkit.Equal(t, one.Name, "shop/Orders", "found")
	list := read[struct{ Hubs []admin.Hub }](t, y.want(200, "GET", "/api/v1/hubs", nil))
	var names []string
	for _, h := range list.Hubs {
		names = append(names, h.Name)
	}
	testkit.Slices(t, names, []string{"Alarms", "shop/Orders"}, "listed")
	y.want(204, "DELETE", "/api/v1/hubs/shop%2Forders", nil)
	y.want(404, "GET", "/api/v1/hubs/shop%2Forders", nil)
}

// H4: retention is changed field by field.
func TestChangeRetention(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	steps := []struct {
		body string
		want admin.Retention
	}{
		{`{"retention":{"bytes":5000}}`, admin.Retention{Age: "168h", Bytes: 5000}},
		{`{"retention":{"age":"2d"},"partitions":1,"name":"ORDERS"}`, admin.Retention{Age: "48h", Bytes: 5000}},
		{`{}`, admin.Retention{Age: "48h", Bytes: 5000}},
	}
	for _, s := range steps {
		got := read[admin.Hub](t, y.want(200, "PATCH", "/api/v1/hubs/orders", s.body))
		testkit.Equal(t, got.Retention, s.want, "%s made", s.body)
	}
	hub, err := y.broker.Hub("orders")
	testkit.Must(t, err)
	testkit.Equal(t, hub.Retention, (eventlog.Retention{Age: 48 * time.Hour, Bytes: 5000}), "the broker")
}

// H1: groups; $Default always exists, whatever its case, and case tells others apart.
func TestGroups(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	groups := "/api/v1/hubs/orders/groups"
	y.want(201, "POST", groups, `{"name":"billing"}`)
	made := y.want(201, "POST", groups, `{"name":"Billing"}`)
	testkit.Equal(t, made.header.Get("Location"), "/api/v1/hubs/orders/groups/Billing", "made at")
	y.refused(409, "group-exists", "POST", groups, `{"name":"billing"}`)
	y.refused(409, "group-exists", "POST", groups, `{"name":"$default"}`)
	y.refused(400, "invalid-name", "POST", groups, `{"name":"no good"}`)
	y.refused(404, "not-found", "POST", "/api/v1/hubs/nowhere/groups", `{"name":"a"}`)

	list := read[struct{ Groups []admin.Group }](t, y.want(200, "GET", groups, nil))
	var names []string
	for _, g := range list.Groups {
		names = append(names, g.Name)
	}
	testkit.Slices(t, names, []string{"$Default", "Billing", "billing"}, "listed")
	one := read[admin.Group](t, y.want(200, "GET", groups+"/$DEFAULT", nil))
	testkit.Equal(t, one.Name, "$Default", "found")
	y.refused(409, "default-group", "DELETE", groups+"/$default", nil)
	y.want(204, "DELETE", groups+"/Billing", nil)
	y.refused(404, "not-found", "GET", groups+"/Billing", nil)
	y.refused(404, "not-found", "DELETE", groups+"/Billing", nil)
	y.want(200, "GET", groups+"/billing", nil)
}

// H10: a partition tells its first and last number, offset, time and emptiness.
func TestPartitionInformation(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 2)
	y.send("orders", "1", "a", "b", "c")

	list := read[struct{ Partitions []admin.Partition }](t, y.want(200, "GET", "/api/v1/hubs/orders/partitions", nil))
	testkit.MustEqual(t, len(list.Partitions), 2, "listed partitions")
	fresh, used := list.Partitions[0], list.Partitions[1]
	if fresh.ID != "0" || fresh.First != -1 || fresh.Last != -1 || fresh.LastOffset != "-1" || fresh.LastEnqueued != nil || !fresh.Empty {
		t.Errorf("a partition without events is %+v", fresh)
	}
	if used.ID != "1" || used.First != 0 || used.Last != 2 || used.LastOffset != "2" || used.LastEnqueued == nil || used.Empty || used.Bytes == 0 {
		t.Errorf("a partition with three events is %+v", used)
	}
	events := y.page("orders", "1", "from=2").Events
	if len(events) != 1 || events[0].Enqueued != showTime(used.LastEnqueued.Time) {
		t.Errorf("the last event was enqueued at %v, the partition says %s", events, *used.LastEnqueued)
	}
	one := read[admin.Partition](t, y.want(200, "GET", "/api/v1/hubs/ORDERS/partitions/1", nil))
	testkit.Equal(t, one.Last, 2, "alone it is %+v", one)
	y.refused(404, "not-found", "GET", "/api/v1/hubs/orders/partitions/2", nil)
	y.refused(404, "not-found", "GET", "/api/v1/hubs/nowhere/partitions", nil)
}
