package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// function is one that the yard calls over HTTP with all events of a hub.
type function struct {
	yard *yard
	name string

	mu      sync.Mutex
	handled map[string]int  // guarded by mu: how often, by the text of the event
	ids     map[string]bool // guarded by mu: those of events, which their positions in the hub make
	again   int             // guarded by mu: how many events came again
}

// handle makes a function for a hub. Its calls fail where a node is cut off; so it has retries for
// longer than any fault lasts.
func (y *yard) handle(t testing.TB, hub string) *function {
	t.Helper()
	f := &function{yard: y, name: hub + "-function", handled: map[string]int{}, ids: map[string]bool{}}
	url, retries, delay := y.serve(t, f), admin.Retries(1000), "500ms"
	client := y.nodes[0].admin(t)
	manage(t, "create the function", func(ctx context.Context) error {
		_, err := client.CreateFunction(ctx, admin.FunctionRequest{Name: f.name, Hub: hub, Endpoint: &url, Retries: &retries, RetryDelay: &delay})
		return err
	})
	return f
}

// ServeHTTP handles a batch of events.
func (f *function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var batch []struct {
		ID     string
		Data   string
		Base64 []byte `json:"data_base64"`
	}
	if err := json.NewDecoder(r.Body).Decode(&batch); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range batch {
		f.handled[e.Data+string(e.Base64)]++
		if f.ids[e.ID] {
			f.again++
		}
		f.ids[e.ID] = true
	}
}

// repeats is how many events came again so far.
func (f *function) repeats() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.again
}

// judge waits until all that was acknowledged was handled and nothing is left, at whichever node, and
// finds nothing in poison.
func (f *function) judge(t testing.TB, records []*record) {
	t.Helper()
	eventually(t, "the function does not handle all that was acknowledged", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return missing(records, f.handled) == ""
	})
	for _, n := range f.yard.nodes {
		client := n.admin(t)
		var now admin.Function
		eventually(t, "the function has events left, says "+n.name, func() (done bool) {
			var err error
			now, err = client.Function(t.Context(), f.name)
			return err == nil && now.Lag != nil && *now.Lag == 0
		})
		testkit.Equal(t, now.State, "running", "state of the function at "+n.name)
		var poison []admin.PoisonEvent
		manage(t, "list poison events", func(ctx context.Context) error {
			var err error
			poison, err = client.Poison(ctx, now.Poison, admin.PoisonQuery{Max: 10})
			if problem, is := errors.AsType[*admin.Problem](err); is && problem.Status == http.StatusNotFound {
				err = nil // the hub is made for the first poison event
			}
			return err
		})
		testkit.That(t, len(poison) == 0, "%s has poison events: %+v", n.name, poison)
	}
	t.Logf("function: %d events came again", f.repeats())
}

// missing is an acknowledged event that is not among those that were handled, or none.
func missing(records []*record, handled map[string]int) string {
	for _, r := range records {
		for i, s := range r.sent {
			if s.acknowledged && handled[r.text(i)] == 0 {
				return fmt.Sprintf("%q was acknowledged and not handled", r.text(i))
			}
		}
	}
	return ""
}
