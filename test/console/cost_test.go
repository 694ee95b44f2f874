package console

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
)

// openPages is how many are open at once. A policy may have 64 live pages, so that two have half each.
const openPages = 100

// V4: a hundred open pages: what they cost the yard is said, all at one page and each at one of its own,
// beside what it costs without them.
func TestAHundredOpenPages(t *testing.T) {
	long(t)
	y := serve(t, "--data", "data", "--sync", "os") // it is not the disk that is measured
	client := y.admin(t)
	for i := range openPages / 4 {
		name := fmt.Sprint("hub-", i)
		testkit.Must(t, testkit.Err(client.CreateHub(t.Context(), admin.HubRequest{Name: name, Partitions: new(16)})))
		testkit.Must(t, testkit.Err(client.CreateGroup(t.Context(), name, "billing")))
	}
	testkit.Must(t, testkit.Err(client.CreateHub(t.Context(), admin.HubRequest{Name: "orders", Partitions: new(16)})))
	testkit.Must(t, testkit.Err(client.CreateGroup(t.Context(), "orders", "billing")))
	startWorker(t, y.connection, "billing", "one")
	sender := testkit.Value(hub.Dial(t.Context(), y.connection, hub.Config{}))(t)
	t.Cleanup(func() { _ = sender.Close() })
	sent := feed(t, sender.Hub("orders"), updateRate)
	cookies := []string{y.signIn(t, "one"), y.signIn(t, "two")}

	y.measure(t, "no page", sent, nil)
	for _, kind := range []struct {
		name string
		path func(i int) string
	}{
		{"all at the overview", func(int) string { return "" }},
		{"all at a group", func(int) string { return "hubs/orders/groups/billing" }},
		{"each at its own", func(i int) string {
			path := fmt.Sprintf("hubs/hub-%d", i/4)
			if i/2%2 == 1 {
				path += "/groups/billing"
			}
			return path
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			streams := make([]*openStream, openPages)
			for i := range streams {
				streams[i] = y.openStream(t, "/console/"+kind.path(i), cookies[i%2])
			}
			y.measure(t, kind.name, sent, streams)
		})
	}
}

// unpacedRounds is how often publishing is measured with open pages, and as often without.
const unpacedRounds = 5

// V4: how much open pages slow whoever publishes as fast as the yard takes it: with ten pages and without, in turn. It
// says the figures, and judges none.
func TestPublishingBesideOpenPages(t *testing.T) {
	long(t)
	y := serve(t, "--data", "data", "--sync", "os") // it is not the disk that is measured
	client := y.admin(t)
	testkit.Must(t, testkit.Err(client.CreateHub(t.Context(), admin.HubRequest{Name: "orders", Partitions: new(16)})))
	testkit.Must(t, testkit.Err(client.CreateGroup(t.Context(), "orders", "billing")))
	sender := testkit.Value(hub.Dial(t.Context(), y.connection, hub.Config{}))(t)
	t.Cleanup(func() { _ = sender.Close() })
	sent, cookie := feedUnpaced(t, sender.Hub("orders")), y.signIn(t, "one")
	rate := func() float64 {
		idle(t, 2*time.Second)
		events, began := sent.Load(), time.Now()
		idle(t, *loadFor/(2*unpacedRounds))
		return float64(sent.Load()-events) / time.Since(began).Seconds()
	}
	var without, beside []float64
	for round := range unpacedRounds {
		without = append(without, rate())
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) { // its streams end with it
			for _, path := range []string{"", "hubs", "hubs/orders", "hubs/orders/events", "hubs/orders/groups/billing"} {
				for range 2 {
					s := y.openStream(t, "/console/"+path, cookie)
					testkit.Eventually(t, "a first frame", func() bool { return s.bytes.Load() > 0 })
				}
			}
			beside = append(beside, rate())
		})
	}
	slices.Sort(without)
	slices.Sort(beside)
	alone, slowed := without[unpacedRounds/2], beside[unpacedRounds/2]
	t.Logf("published without a page %.0f events/s (%.0f to %.0f), beside ten pages %.0f (%.0f to %.0f): %.1f %% less", alone, without[0], without[unpacedRounds-1], slowed, beside[0], beside[unpacedRounds-1], 100*(1-slowed/alone))
}

// feedUnpaced publishes batches as fast as they are taken until the test ends, by some at once.
func feedUnpaced(t *testing.T, to *hub.Hub) (sent *atomic.Int64) {
	t.Helper()
	sent = new(atomic.Int64)
	for range 4 {
		testkit.Run(t, func(ctx context.Context) error {
			for ctx.Err() == nil {
				batch := make([]event.Event, 100)
				for i := range batch {
					batch[i] = event.Event{Key: fmt.Sprint("home-", i), Body: []byte(`{"motion":1}`)}
				}
				if err := to.Send(ctx, batch...); err != nil && ctx.Err() == nil {
					return err
				}
				sent.Add(int64(len(batch)))
			}
			return nil
		})
	}
	return sent
}

// signIn makes a policy with all rights and gives a session of it.
func (p *program) signIn(t *testing.T, policy string) (cookie string) {
	t.Helper()
	made := testkit.Value(p.admin(t).CreatePolicy(t.Context(), "", admin.PolicyRequest{Name: policy, Rights: []string{"manage"}}))(t)
	form := url.Values{"policy": {policy}, "key": {made.PrimaryKey}}
	r := testkit.Value(http.NewRequestWithContext(t.Context(), http.MethodPost, p.base+"/console/signin", strings.NewReader(form.Encode())))(t)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer := testkit.Value(http.DefaultTransport.RoundTrip(r))(t)
	answer.Body.Close()
	testkit.MustEqual(t, answer.StatusCode, http.StatusSeeOther, "signing in")
	session := answer.Cookies()[0]
	return session.Name + "=" + session.Value
}

// openStream is the stream of a page, as a browser has it.
type openStream struct {
	bytes atomic.Int64
	ended atomic.Bool
}

func (s *openStream) Write(data []byte) (int, error) {
	s.bytes.Add(int64(len(data)))
	return len(data), nil
}

// openStream opens one until the test ends.
func (p *program) openStream(t *testing.T, path, cookie string) *openStream {
	t.Helper()
	s := &openStream{}
	testkit.Run(t, func(ctx context.Context) error {
		defer s.ended.Store(true)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+"/console/live?at="+url.QueryEscape(path), nil)
		if err != nil {
			return err
		}
		r.Header.Set("Cookie", cookie)
		if answer, err := http.DefaultClient.Do(r); err == nil {
			_, _ = io.Copy(s, answer.Body) // until somebody ends it: measure looks whether the yard did
			answer.Body.Close()
		}
		return nil
	})
	return s
}

// measure says what the yard costs for a while, and how much its streams bring: all of them until the end.
func (p *program) measure(t *testing.T, what string, sent *atomic.Int64, streams []*openStream) {
	t.Helper()
	for _, s := range streams {
		testkit.Eventually(t, "a first frame", func() bool { return s.bytes.Load() > 1000 })
	}
	idle(t, 5*time.Second)
	events, bytes, used, began := sent.Load(), brought(streams), p.used(t), time.Now()
	idle(t, *loadFor/2)
	events, bytes, used = sent.Load()-events, brought(streams)-bytes, p.used(t)-used
	lasted := time.Since(began).Seconds()
	t.Logf("%s, %.0f updates/s: %.1f %% of a core, %.1f KiB/s in all", what, float64(events)/lasted, 100*used.Seconds()/lasted, float64(bytes)/lasted/1024)
	for _, s := range streams {
		testkit.That(t, !s.ended.Load(), "a stream has ended")
	}
	testkit.That(t, float64(bytes) <= byteRate*lasted*float64(max(1, len(streams))), "%d bytes in %.0f s", bytes, lasted)
}

func brought(streams []*openStream) (bytes int64) {
	for _, s := range streams {
		bytes += s.bytes.Load()
	}
	return bytes
}
