package soak

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

var soakSubscriptions = flag.String("soak.subscriptions", "1000,10000,100000", "how many subscriptions get each event")

// R3: up to a hundred thousand subscriptions at a limit of 1,024 descriptors and with all listeners: memory and start
// stay within what is promised of ten thousand, and each gets each event, before and after a restart.
func TestManySubscriptions(t *testing.T) {
	long(t)
	binary := build(t)
	for _, subscriptions := range sizes(t, *soakSubscriptions) {
		t.Run(strconv.Itoa(subscriptions), func(t *testing.T) { manySubscriptions(t, binary, subscriptions) })
	}
}

// subscriptionsOfTopic is how many one topic has: it may have 20,000.
const subscriptionsOfTopic = 10_000

func manySubscriptions(t *testing.T, binary string, subscriptions int) {
	// What is promised of ten thousand, and of more as much again for each ten thousand.
	tens := (subscriptions + 9_999) / 10_000
	mostResident, startTime := 300*tens, time.Duration(tens)*2*time.Second
	receiver := &receiver{got: map[string]int{}}
	endpoint := httptest.NewServer(receiver)
	defer endpoint.Close()
	data := filepath.Join(t.TempDir(), "data")
	topics := (subscriptions + subscriptionsOfTopic - 1) / subscriptionsOfTopic
	y := limited(t, binary, data)
	for topic := range topics {
		y.want(t, 201, "POST", "/api/v1/topics", fmt.Sprintf(`{"name":"orders-%d","schema":"cloudevents"}`, topic))
	}
	row := growth{Of: "subscriptions", Size: subscriptions}
	began := time.Now()
	atOnce(t, subscriptions, func(i int) {
		y.want(t, 201, "POST", "/api/v1/subscriptions", fmt.Sprintf(`{"name":"sub-%d","topic":"orders-%d","endpoint":"%s/sub-%d"}`, i, i%topics, endpoint.URL, i))
		if n := i + 1; n%10_000 == 0 {
			t.Logf("%d made after %v, resident: %d MiB", n, time.Since(began).Round(time.Second), residentSize(t, y.process.Process.Pid))
		}
	})
	row.Made = time.Since(began)
	y.wantResident(t, mostResident)
	publish := func(id string) {
		t.Helper()
		before := receiver.total()
		for topic := range topics {
			y.publish(t, fmt.Sprintf("orders-%d", topic), id)
		}
		for deadline := time.Now().Add(time.Duration(tens) * time.Minute); receiver.total() < before+subscriptions; time.Sleep(20 * time.Millisecond) {
			testkit.MustThat(t, time.Now().Before(deadline), "event %s came to %d of %d subscriptions", id, receiver.total()-before, subscriptions)
		}
	}
	publish("1")
	row.Resident, row.Descriptors = y.wantResident(t, mostResident), y.wantDescriptors(t, 1024)
	row.Stop = y.wantStop(t, 10*time.Second)
	row.Disk = onDisk(t, data)
	began = time.Now()
	y = limited(t, binary, data)
	row.Start = y.wantWithin(t, began, startTime, "start")
	row.Rested = y.wantResident(t, mostResident)
	const more = 5 // events, so that what each leaves behind would show
	for i := range more {
		publish(strconv.Itoa(i + 2))
	}
	row.Busy = y.wantResident(t, mostResident)
	receiver.each(t, subscriptions, 1+more)
	y.wantStop(t, 10*time.Second)
	row.print(t)
}

// publish publishes an event to a topic.
func (y *limitedYard) publish(t *testing.T, topic, id string) {
	t.Helper()
	request := testkit.Value(http.NewRequest("POST", "http://"+y.http+"/topics/"+topic+"/api/events",
		strings.NewReader(`{"specversion":"1.0","type":"placed","source":"/till","id":"`+id+`"}`)))(t)
	request.Header.Set("Content-Type", "application/cloudevents+json")
	request.SetBasicAuth(auth.RootPolicy, y.key)
	response := testkit.Value(http.DefaultClient.Do(request))(t)
	testkit.Must(t, response.Body.Close())
	testkit.MustEqual(t, response.StatusCode, 200, "status of a publication")
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
