package server

import (
	"slices"
	"testing"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Every route that a yard serves by HTTP stands in one table and says what it needs; what is open
// to all says why, and is one of these.
func TestEveryRouteSaysWhatItNeeds(t *testing.T) {
	s, err := New(quick(t))
	testkit.Must(t, err)
	y, err := openYard(t.Context(), s.cfg, nil)
	testkit.Must(t, err)
	defer y.close()
	all, err := s.newListeners(newInside(y, "sb://localhost/"))
	testkit.Must(t, err)
	seen, open := map[string]bool{}, []string{}
	for _, rt := range all.api.Routes() {
		name := rt.API + " " + rt.Method + " " + rt.Path
		if seen[name] {
			t.Errorf("%s stands twice in the table", name)
		}
		seen[name] = true
		switch {
		case rt.Need.Reach == frame.Undeclared, rt.Need.Reach == frame.Nobody && rt.Need.Why == "":
			t.Errorf("%s does not say what it needs", name)
		case rt.Need.Reach == frame.Nobody:
			open = append(open, rt.API+" "+rt.Label())
		}
	}
	slices.Sort(open)
	want := []string{
		"amqp /$servicebus/websocket", "console /", "console /console", "console /console/assets/{hash}/{file}", "console /console/signin", "console /console/signin/callback", "console /console/signin/issuer", "eventgrid PublishOptions", "eventgrid Validate", "notices /resume/{token}",
		"v1 /api/v1/ca.pem", "v1 /api/v1/openapi.json", "v1 /healthz", "v1 /readyz",
	}
	if open = slices.Compact(open); !slices.Equal(open, want) {
		t.Errorf("open to everybody are %q", open)
	}
}
