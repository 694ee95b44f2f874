package survey

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
)

func stream(name, leader string, replicas ...jetstream.PeerInfo) *jetstream.StreamInfo {
	info := &jetstream.StreamInfo{Config: jetstream.StreamConfig{Name: name}, Cluster: &jetstream.ClusterInfo{Leader: leader}}
	info.State.Msgs, info.State.Bytes = 2, 100
	for _, r := range replicas {
		info.Cluster.Replicas = append(info.Cluster.Replicas, &r)
	}
	return info
}

// C8: the sums count every stream, and the worst come first.
func TestSums(t *testing.T) {
	well := jetstream.PeerInfo{Name: "n1", Current: true}
	gone := jetstream.PeerInfo{Name: "n2", Offline: true}
	behind := func(lag uint64) jetstream.PeerInfo { return jetstream.PeerInfo{Name: "n1", Lag: lag} }
	var sum Streams
	for _, info := range []*jetstream.StreamInfo{
		stream("fine", "n0", well, well), stream("late", "n0", well, behind(5)), stream("later", "n1", behind(70), well),
		stream("half", "n0", gone, behind(1)), stream("headless", "", well, gone),
	} {
		sum.add(info)
	}
	sum.miss("silent")
	alone := stream("alone", "")
	alone.Cluster = nil
	sum.add(alone)
	var worst []string
	for _, s := range sum.Worst {
		worst = append(worst, s.Name)
	}
	testkit.Slices(t, worst, []string{"headless", "silent", "half", "later", "late"}, "the worst")
	sum.Worst = nil
	gappy := stream("gappy", "n1", well)
	gappy.State = jetstream.StreamState{FirstSeq: 11, LastSeq: 20, Msgs: 3}
	emptied := stream("emptied", "n1", well)
	emptied.State = jetstream.StreamState{FirstSeq: 901, LastSeq: 900}
	sum.add(gappy)
	sum.add(emptied)
	testkit.Deep(t, sum, Streams{
		Count: 9, Messages: 15, Bytes: 600, Leaderless: 2, Offline: 2, Lagging: 3, Gaps: 7, Gappy: "gappy", Leaders: map[string]int{"n0": 3, "n1": 3},
	}, "sums")
}

// C8: however many are not well, few are shown.
func TestFewAreShown(t *testing.T) {
	var sum Streams
	for i := range 100 {
		sum.add(stream(fmt.Sprintf("s%02d", i), "n0", jetstream.PeerInfo{Name: "n1", Lag: uint64(i)}))
	}
	testkit.Equal(t, sum.Lagging, 100, "lagging")
	testkit.Equal(t, len(sum.Worst), maxWorst, "shown")
	testkit.Equal(t, sum.Worst[0].Name, "s99", "the worst")
}

// C8: streams of other yards are not counted, and more streams than a page has are.
func TestAsk(t *testing.T) {
	conn := natstest.Shared(t, 1).Dial(t, 0)
	js := testkit.Value(jetstream.New(conn))(t)
	yard, other := natstest.Yard(), natstest.Yard()
	const count = 300 // a page has 256
	for i := range count {
		name := fmt.Sprintf("Y_%s_%d", yard, i)
		testkit.Must(t, testkit.Err(js.CreateStream(t.Context(), jetstream.StreamConfig{
			Name: name, Subjects: []string{fmt.Sprintf("y.%s.%d", yard, i)}, Storage: jetstream.MemoryStorage,
		})))
	}
	testkit.Must(t, testkit.Err(js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "Y_" + other, Subjects: []string{"y." + other + ".l"}})))
	testkit.Must(t, testkit.Err(js.Publish(t.Context(), "y."+yard+".7", []byte("event"))))
	sum := testkit.Value(Ask(t.Context(), conn, yard))(t)
	testkit.That(t, sum.Count == count && sum.Messages == 1 && sum.Bytes > 0 && len(sum.Worst) == 0, "found %+v", sum)
}

// C7: a stream that nobody answers for at first, since its leader is being chosen, is asked for again; one that
// nobody ever answers for is named.
func TestStreamsAreAskedForAgain(t *testing.T) {
	url := natstest.StartAs(t, func(listen, _ string) string { return "listen: " + listen })
	conn := testkit.Value(nats.Connect(url))(t)
	defer conn.Close()
	answer := func(yard, later string) {
		asked := 0
		testkit.Must(t, testkit.Err(conn.Subscribe("$JS.API.STREAM.LIST", func(m *nats.Msg) {
			asked++
			if !strings.Contains(string(m.Data), "y."+yard+".") {
				return
			}
			text := `{"total":2,"streams":[{"config":{"name":"a"}}],"missing":["b"]}`
			if asked > 1 && later != "" {
				text = later
			}
			testkit.Check(t, m.Respond([]byte(text)))
		})))
	}
	answer("t1", `{"total":2,"streams":[{"config":{"name":"a"}},{"config":{"name":"b"}}]}`)
	found, missing, err := All(t.Context(), conn, "t1")
	testkit.Must(t, err)
	testkit.That(t, len(found) == 2 && len(missing) == 0, "found %d, missing %q", len(found), missing)
	answer("t2", "")
	found, missing, err = All(t.Context(), conn, "t2")
	testkit.Must(t, err)
	testkit.That(t, len(found) == 1 && len(missing) == 1, "found %d, missing %q", len(found), missing)
}
