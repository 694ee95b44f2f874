package soak

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R3: ten thousand subscriptions at a limit of 1,024 descriptors: memory and start stay within what is
// promised, and each gets each event, before and after a restart.
func TestManySubscriptions(t *testing.T) {
	long(t)
	const subscriptions = 10_000
	receiver := &receiver{got: map[string]int{}}
	endpoint := httptest.NewServer(receiver)
	defer endpoint.Close()
	binary, data := build(t), filepath.Join(t.TempDir(), "data")
	y := limited(t, binary, data)
	y.want(t, 201, "POST", "/api/v1/topics", `{"name":"orders","schema":"cloudevents"}`)
	began := time.Now()
	atOnce(t, subscriptions, func(i int) {
		y.want(t, 201, "POST", "/api/v1/subscriptions", fmt.Sprintf(`{"name":"sub-%d","topic":"orders","endpoint":"%s/sub-%d"}`, i, endpoint.URL, i))
	})
	t.Logf("made in %v", time.Since(began).Round(time.Second))
	y.wantResident(t, 300)
	publish := func(id string) {
		t.Helper()
		before := receiver.total()
		request := testkit.Value(http.NewRequest("POST", "http://"+y.http+"/topics/orders/api/events",
			strings.NewReader(`{"specversion":"1.0","type":"placed","source":"/till","id":"`+id+`"}`)))(t)
		request.Header.Set("Content-Type", "application/cloudevents+json")
		request.SetBasicAuth(auth.RootPolicy, y.key)
		response := testkit.Value(http.DefaultClient.Do(request))(t)
		testkit.Must(t, response.Body.Close())
		testkit.MustEqual(t, response.StatusCode, 200, "status of a publication")
		testkit.Eventually(t, "each subscription gets the event", func() bool { return receiver.total() >= before+subscriptions })
	}
	publish("1")
	y.wantResident(t, 300)
	y.wantDescriptors(t, 1024)
	y.wantStop(t, 10*time.Second)
	began = time.Now()
	y = limited(t, binary, data)
	y.wantWithin(t, began, 2*time.Second, "start")
	y.wantResident(t, 300)
	publish("2")
	y.wantResident(t, 300)
	receiver.each(t, subscriptions, 2)
	y.wantStop(t, 10*time.Second)
}

// receiver takes what every subscription is sent.
type receiver struct {
	mu  sync.Mutex
	got map[string]int // by path, how many events; guarded by mu
	all int            // guarded by mu
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method == http.MethodOptions {
		w.Header().Set("WebHook-Allowed-Origin", "*")
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got[strings.TrimPrefix(request.URL.Path, "/")]++
	r.all++
}

func (r *receiver) total() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

func (r *receiver) each(t *testing.T, paths, times int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	testkit.Equal(t, len(r.got), paths, "subscriptions that got something")
	for path, n := range r.got {
		testkit.That(t, n >= times, "%s got %d events of %d", path, n, times)
	}
}
