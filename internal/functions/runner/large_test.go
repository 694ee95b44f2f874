package runner

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/functions/poison/box"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// sendLarge publishes an event that measures so many bytes as it is stored.
func (y *yard) sendLarge(hub string, bytesInAll int) {
	y.t.Helper()
	ev := event.Event{Body: make([]byte, bytesInAll)}
	encoded, err := message.Append(nil, ev)
	testkit.Must(y.t, err)
	ev.Body = bytes.Repeat([]byte{0xff}, 2*bytesInAll-len(encoded))
	encoded, err = message.Append(nil, ev)
	testkit.Must(y.t, err)
	testkit.MustEqual(y.t, len(encoded), bytesInAll, "it bytes")
	_, err = y.broker.Publish(y.t.Context(), hub, broker.Target{Partition: "0"}, []eventlog.Event{{Message: encoded}})
	testkit.Must(y.t, err)
}

// F4: an event that fills a hub's limit, or goes beyond it because it was redriven, does not keep
// its partition standing.
func TestAnEventThatLeavesNoRoomForItsReason(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k := y.open()
		y.run(k)
		y.program.set(func(p *program) {
			p.answer = func(_ string, bodies []string) int {
				if bodies[0] == "<nil>" { // it came as base64
					return http.StatusInternalServerError
				}
				return http.StatusOK
			}
		})
		y.create(k, small(func(d *Definition) { d.Retries, d.Batch = new(0), 1 }))
		sizes := []int{1<<20 - 2000, 1<<20 - 600, 1<<20 - 200, 1 << 20, 1<<20 + 100}
		for _, size := range sizes {
			y.sendLarge("small", size)
		}
		y.send("small", "0", "7")
		settle(time.Minute)
		f := y.show(k, "resize")
		if got := y.program.got("/resize"); got != "7" || f.Lag != 0 || f.Counts.Poisoned != int64(len(sizes)) {
			t.Fatalf("it got %.100q, and is %s with a lag of %d after %d poison events: %s", got, f.State, f.Lag, f.Counts.Poisoned, f.LastError)
		}
		list, err := y.box.List(t.Context(), "resize-poison", box.Query{})
		testkit.MustThat(t, err == nil && len(list) == len(sizes), "%d are there, %v", len(list), err)
		for n, e := range list {
			position := fmt.Sprintf(`{"hub":"small","partition":"0","sequence":%d}`, e.Sequence)
			if e.Reference != (string(e.Event.Body) == position) || e.Reference != strings.Contains(e.Reason, "too large") {
				t.Errorf("poison event %d is %.200q, because %s", n, e.Event.Body, e.Reason)
			}
		}
		if list[0].Reference != true || list[len(list)-1].Reference {
			t.Error("the largest is there as a reference, the smallest whole")
		}
		if done, failed, err := y.box.Redrive(t.Context(), "resize-poison", box.RedriveConfig{}); done != len(sizes) || failed != 0 || err != nil {
			t.Errorf("redriven %d, failed %d, %v", done, failed, err)
		}
		settle(time.Minute)
		if f := y.show(k, "resize"); f.Lag != 0 || f.Counts.Poisoned != int64(2*len(sizes)) {
			t.Errorf("redriven it has a lag of %d after %d poison events: %s", f.Lag, f.Counts.Poisoned, f.LastError)
		}
	})
}

// F4: the same in a topic, where what is no JSON measures half as much again.
func TestAnEventTooLargeForATopic(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		_, err := y.topics.CreateTopic(t.Context(), topicConfig("bad-events"))
		testkit.Must(t, err)
		k := y.open()
		y.run(k)
		y.program.set(func(p *program) { p.answer = func(string, []string) int { return http.StatusTeapot } })
		y.create(k, small(func(d *Definition) { d.Retries, d.Batch, d.Poison = new(0), 1, "topic:bad-events" }))
		y.sendLarge("small", 1<<20+300_000)
		settle(time.Minute)
		if f := y.show(k, "resize"); f.Lag != 0 || f.Counts.Poisoned != 1 {
			t.Errorf("it is %s with a lag of %d: %s", f.State, f.Lag, f.LastError)
		}
	})
}
