package grid

import (
	"regexp"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestJSON(t *testing.T) {
	e := testkit.Value(JSON("order.placed", "orders/42", map[string]any{"total": 1999}))(t)
	testkit.Slices(t, []any{e.Type, e.Subject, string(e.Data)}, []any{"order.placed", "orders/42", `{"total":1999}`}, "made")
	if _, err := JSON("order.placed", "", func() {}); err == nil || !strings.Contains(err.Error(), "order.placed") {
		t.Errorf("a function: %v", err)
	}
}

func TestUnmarshal(t *testing.T) {
	for _, tt := range []struct {
		what  string
		event Event
		good  bool
	}{
		{"JSON", Event{Data: []byte(`{"total":1999}`)}, true},
		{"JSON by name", Event{Data: []byte(`{"total":1999}`), ContentType: "application/vnd.shop+json; charset=utf-8"}, true},
		{"something else", Event{Data: []byte(`{"total":1999}`), ContentType: "text/plain"}, false},
		{"nothing", Event{}, false},
		{"no JSON", Event{Data: []byte(`{`)}, false},
	} {
		t.Run(tt.what, func(t *testing.T) {
			var order struct{ Total int }
			err := tt.event.Unmarshal(&order)
			if (err == nil) != tt.good || tt.good && order.Total != 1999 {
				t.Errorf("read %+v, %v", order, err)
			}
		})
	}
}

// The same event has the same id wherever it is published; another has another.
func TestContentID(t *testing.T) {
	base := Event{Type: "a", Source: "b", Subject: "c", Data: []byte("d")}
	later := base
	later.Time = later.Time.AddDate(30, 0, 0)
	testkit.Equal(t, ContentID(base), ContentID(later), "the time matters")
	seen := map[string]Event{ContentID(base): base}
	for _, e := range []Event{
		{Type: "x", Source: "b", Subject: "c", Data: []byte("d")},
		{Type: "a", Source: "x", Subject: "c", Data: []byte("d")},
		{Type: "a", Source: "b", Subject: "x", Data: []byte("d")},
		{Type: "a", Source: "b", Subject: "c", Data: []byte("x")},
		{Type: "ab", Source: "", Subject: "c", Data: []byte("d")},
		{Type: "a", Source: "b", Subject: "c", Data: []byte("d"), ContentType: "text/plain"},
	} {
		if other, found := seen[ContentID(e)]; found {
			t.Errorf("%+v and %+v have one id", e, other)
		}
		seen[ContentID(e)] = e
	}
}

func TestRandomIDsAreUUIDs(t *testing.T) {
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	first, second := randomID(Event{}), randomID(Event{})
	if !uuid.MatchString(first) || first == second {
		t.Errorf("made %s and %s", first, second)
	}
}
