package delivery

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// web answers requests in the place of the network.
type web struct {
	mu     sync.Mutex
	answer func(r *http.Request) (status int, header http.Header) // guarded by mu
	got    []visit                                                // guarded by mu
}

// visit is a request as it came.
type visit struct {
	at    time.Time
	count string // aeg-delivery-count
	ids   []string
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var events []struct{ ID string }
	if err := json.Unmarshal(body, &events); err != nil {
		return nil, err
	}
	v := visit{at: time.Now(), count: r.Header.Get("Aeg-Delivery-Count")}
	for _, e := range events {
		v.ids = append(v.ids, e.ID)
	}
	w.mu.Lock()
	w.got = append(w.got, v)
	answer := w.answer
	w.mu.Unlock()
	status, header := answer(r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader("thanks")), Request: r}, nil
}

func (w *web) says(answer func(r *http.Request) (int, http.Header)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

func (w *web) always(status int) {
	w.says(func(*http.Request) (int, http.Header) { return status, http.Header{} })
}

func (w *web) visits() []visit {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.got)
}

// realParts gives a yard the real sender and the real dead letters.
func (y *yard) realParts() (*web, *deadletter.Service) {
	y.t.Helper()
	w := &web{}
	w.always(200)
	client, err := egress.New(egress.Config{Transport: w})
	testkit.Must(y.t, err)
	letters, err := deadletter.Open(y.t.Context(), deadletter.Config{
		Engine: y.Engine, Meta: y.Memory, Topics: y.topics, Broker: y.Broker, DataDir: y.t.TempDir(), Delay: -1, Log: testkit.Quiet(),
	})
	testkit.Must(y.t, err)
	y.reconfigure(func(c *Config) {
		c.Sender = webhook.New(webhook.Config{Client: client, Broker: y.Broker})
		c.Dead = letters
	})
	letters.RedriveTo(y.service.Redeliver)
	y.t.Cleanup(func() {
		y.stop()
		client.Close()
	})
	return w, letters
}

// G5, G6, G8: with the parts that users meet.
func TestWithTheRealSenderAndDeadLetters(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		w, letters := y.realParts()
		id := y.orders("receiver", func(s *topics.Settings) { s.Retry.MaxAttempts = 3 })
		y.publish("orders", "good")
		wait()
		w.always(500)
		y.publish("orders", "bad")
		after(time.Hour)
		var counts []string
		for _, v := range w.visits() {
			counts = append(counts, v.ids[0]+" "+v.count)
		}
		testkit.Slices(t, counts, []string{"good 0", "bad 0", "bad 1", "bad 2"}, "requests")
		page, err := letters.List(t.Context(), id, deadletter.Query{})
		if err != nil || len(page.Letters) != 1 || page.Letters[0].Reason != retry.ReasonAttempts || page.Letters[0].Attempts != 3 {
			t.Fatalf("dead letters %+v, %v", page, err)
		}
		w.always(204)
		done, err := letters.Redrive(t.Context(), id, deadletter.Query{}, deadletter.RedriveOptions{})
		if err != nil || done.Count != 1 {
			t.Fatalf("redriven %+v, %v", done, err)
		}
		wait()
		visits := w.visits()
		if last := visits[len(visits)-1]; last.ids[0] != "bad" || last.count != "0" {
			t.Errorf("the last request was %+v, want the redriven event", last)
		}
		y.wantStats(id, func(st Stats) bool { return st.Delivered == 2 && st.Parked == 0 })
	})
}

// G5: an answer that takes longer than thirty seconds is a failure, and a success if it comes
// within three minutes.
func TestALateSuccessWithTheRealSender(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		w, _ := y.realParts()
		y.topic("orders")
		id := y.subscribe("orders", "receiver")
		w.says(func(*http.Request) (int, http.Header) {
			time.Sleep(35 * time.Second)
			return 200, http.Header{}
		})
		wait()
		y.publish("orders", "slow")
		after(31 * time.Second)
		st := y.stats(id)
		testkit.Equal(t, len(st.Waiting), 1, "retry logs in use")
		testkit.Equal(t, st.Failed["TimedOut"], 1, "timed out")
		after(time.Hour)
		testkit.Equal(t, len(w.visits()), 1, "requests")
		y.wantStats(id, func(st Stats) bool { return st.Delivered == 1 && len(st.Waiting) == 0 })
	})
}

// A hub as the endpoint gets the events.
func TestDeliveryIntoAHub(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.realParts()
		y.Hub(y.t, "target", 1)
		id := y.orders("to-hub", resource)
		y.publish("orders", ids("e", 10)...)
		wait()
		info, err := y.Broker.Partition(t.Context(), "target", "0")
		if err != nil || info.Last != 9 {
			t.Errorf("the hub has %+v, %v, want ten events", info, err)
		}
		testkit.Must(t, y.Broker.DeleteHub(t.Context(), "target"))
		y.publish("orders", "lost")
		after(5*time.Minute - time.Second)
		if st := y.stats(id); len(st.Waiting) != 1 || st.Failed["NotFound"] != 1 {
			t.Errorf("stats %+v, want it to wait five minutes", st)
		}
		y.Hub(y.t, "target", 1)
		after(time.Second)
		testkit.Equal(t, y.stats(id).Delivered, 11)
	})
}

// R4: what the quota of a hub refuses was not tried: it uses no attempt, and its time to live runs.
func TestAHubsQuotaUsesNoAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		raised    time.Duration // when the quota is taken away
		delivered int64
		dropped   map[string]int64
	}{
		"raised in time":  {10 * time.Minute, 3, map[string]int64{}},
		"raised too late": {2 * time.Hour, 0, map[string]int64{retry.ReasonAge: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, y *yard) {
				y.realParts()
				y.Hub(y.t, "target", 1)
				limit := func(events int64) {
					testkit.Must(t, testkit.Err(y.Broker.UpdateHub(t.Context(), "target", broker.HubChange{QuotaEvents: &events})))
				}
				limit(1)
				testkit.Must(t, testkit.Err(y.Broker.Publish(t.Context(), "target", broker.Target{}, storagetest.Events(ids("x", 10_000)...))))
				id := y.orders("to-hub", resource, func(s *topics.Settings) {
					s.DeadLetter, s.Retry = topics.Target{}, retry.Policy{MaxAttempts: 1, TimeToLive: time.Hour}
				})
				y.publish("orders", ids("e", 3)...)
				after(c.raised)
				limit(0)
				testkit.Must(t, y.service.Probe(t.Context(), id))
				after(time.Minute)
				st := y.stats(id)
				testkit.Equal(t, st.Delivered, c.delivered, "delivered")
				testkit.Diff(t, c.dropped, st.Dropped)
			})
		})
	}
}
