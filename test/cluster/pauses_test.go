package cluster

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
)

const (
	// backlogEvents of backlogBytes each are there to be read while nothing can be published. They are large, so that a
	// node asks the servers for each two or three of them.
	backlogEvents, backlogBytes = 200, 100_000
	// warmUp is how many times all get on before anything is measured, some seconds: servers answer readers of a
	// new stream only when they have seen, every two seconds, that they have all of it.
	warmUp = 4
	// longestPause is what fails a test. How long pauses are is printed.
	longestPause = time.Minute
)

// pauses is how publishers and readers of one partition get on, each at a node of its own.
type pauses struct {
	hub     string
	publish [size]progress
	read    [size]progress // but for the first, whose node has written the backlog and so has it in memory
	open    [size]progress // a new reader was let in and has read an event; likewise
	gone    int            // the node that was killed; size: none
	cancel  context.CancelFunc
	all     sync.WaitGroup
}

// killLeader kills the server that leads the stream of a hub, with the node around it if it is inside one, and prints for
// how long nothing was published to the hub and nothing read from it at the nodes that are left. C4
func killLeader() fault {
	return fault{name: "the leader of a stream was killed", begin: nothing, end: nothing, until: func(t testing.TB, r *trial) {
		y := r.yard
		p := y.pace(t, r.load.hub+"-pauses")
		leader := y.leaderOf(t, r.moves.reader, p.hub)
		inside := y.servers == nil
		if inside {
			p.gone = leader
		}
		p.forget()
		if inside {
			y.nodes[leader].end(t, "KILL")
		} else {
			y.servers.Kill(t, leader)
		}
		p.goOn(t, fmt.Sprintf("after server %d, which led, was killed", leader))
		publish, read, open := p.longest()
		if inside {
			testkit.Must(t, y.nodes[leader].start())
		} else {
			y.servers.Restart(t, leader)
		}
		p.stop()
		manage(t, "delete hub "+p.hub, func(ctx context.Context) error { return y.nodes[1].admin(t).DeleteHub(ctx, p.hub) })
		t.Logf("a leader was killed: publishing paused for %v at most at any node, reading for %v, and a new reader had its first event within %v",
			publish.Round(time.Millisecond), read.Round(time.Millisecond), open.Round(time.Millisecond))
		testkit.That(t, max(publish, read, open) < longestPause, "a pause is longer than %v", longestPause)
	}}
}

// pace makes a hub with a backlog and begins to publish and to read, slowly.
func (y *yard) pace(t testing.TB, name string) *pauses {
	t.Helper()
	y.createHub(t, name, 1)
	y.fill(t, name)
	ctx, cancel := context.WithCancel(t.Context())
	p := &pauses{hub: name, cancel: cancel, gone: size}
	t.Cleanup(p.stop)
	dial := func(n *node) *hub.Client { // for each, so that none has to do with another's links
		client := testkit.Value(hub.Dial(t.Context(), n.connection(), hub.Config{Log: testkit.Quiet()}))(t)
		t.Cleanup(func() { _ = client.Close() }) // its node may be gone
		return client
	}
	for i, n := range y.nodes {
		publisher := dial(n)
		p.all.Go(func() { p.publishAt(ctx, publisher, i) })
		if i > 0 {
			reader, opener := dial(n), dial(n)
			p.all.Go(func() { p.readAt(ctx, reader, i) })
			p.all.Go(func() { p.openAt(ctx, opener, i) })
		}
	}
	for range warmUp {
		p.goOn(t, "before the leader is killed")
	}
	return p
}

// fill sends the backlog through the first node.
func (y *yard) fill(t testing.TB, name string) {
	t.Helper()
	client := y.nodes[0].admin(t)
	body := bytes.Repeat([]byte("x"), backlogBytes)
	const batch = 8
	for range backlogEvents / batch {
		b := admin.Batch{Partition: "0"}
		for range batch {
			b.Events = append(b.Events, testkit.Value(admin.Event{Body: body}.Encode())(t))
		}
		manage(t, "fill the hub", func(ctx context.Context) error { return testkit.Err(client.Send(ctx, name, b)) })
	}
}

func (p *pauses) publishAt(ctx context.Context, client *hub.Client, i int) {
	for ctx.Err() == nil {
		trying, cancel := context.WithTimeout(ctx, tryTime)
		if client.Hub(p.hub).SendTo(trying, "0", event.Text(strconv.Itoa(i))) == nil {
			p.publish[i].note()
		}
		cancel()
		idle(ctx, pause)
	}
}

// readAt reads the backlog from the beginning, one event after the other, and again with a new reader, which is no pause
// of the one before.
func (p *pauses) readAt(ctx context.Context, client *hub.Client, i int) {
	for ctx.Err() == nil {
		reader, err := client.Hub(p.hub).Open(ctx, hub.ReadConfig{Partition: "0", Prefetch: 1, Name: fmt.Sprint("slow", i)})
		for n := 0; err == nil && n < backlogEvents; n++ {
			if _, err = reader.Next(ctx, nil, 1); err == nil {
				p.read[i].note()
				idle(ctx, 10*pause)
			}
		}
		if reader != nil {
			closeSoon(ctx, reader)
		}
		if err == nil {
			p.read[i].begin()
		}
		idle(ctx, pause)
	}
}

// openAt opens one reader after the other.
func (p *pauses) openAt(ctx context.Context, client *hub.Client, i int) {
	for number := int64(0); ctx.Err() == nil; number++ {
		reader, err := client.Hub(p.hub).Open(ctx, hub.ReadConfig{Partition: "0", From: hub.At(number % backlogEvents), Prefetch: 1})
		if err == nil {
			if _, err = reader.Next(ctx, nil, 1); err == nil {
				p.open[i].note()
			}
			closeSoon(ctx, reader)
		}
		idle(ctx, 5*pause)
	}
}

// each calls a function for all that has to get on.
func (p *pauses) each(do func(what string, one *progress)) {
	for i := range size {
		if i == p.gone {
			continue
		}
		do(fmt.Sprintf("nothing is published through node %d", i), &p.publish[i])
		if i > 0 {
			do(fmt.Sprintf("nothing is read through node %d", i), &p.read[i])
			do(fmt.Sprintf("no new reader is let in by node %d", i), &p.open[i])
		}
	}
}

// goOn waits until each gets on.
func (p *pauses) goOn(t testing.TB, when string) {
	t.Helper()
	before := map[*progress]int{}
	p.each(func(_ string, one *progress) { before[one] = one.count() })
	p.each(func(what string, one *progress) {
		eventually(t, what+" "+when, func() bool { return one.count() > before[one]+5 })
	})
}

// forget has pauses count from now on.
func (p *pauses) forget() { p.each(func(_ string, one *progress) { one.pausedFor() }) }

// longest are the longest pauses of any publisher, of any reader, and between new readers at any node.
func (p *pauses) longest() (publish, read, open time.Duration) {
	for i := range size {
		if i != p.gone {
			publish, read, open = max(publish, p.publish[i].pausedFor()), max(read, p.read[i].pausedFor()), max(open, p.open[i].pausedFor())
		}
	}
	return publish, read, open
}

func (p *pauses) stop() {
	p.cancel()
	p.all.Wait()
}

// leaderOf is the server that leads the stream of a hub that has one, or the node around it.
func (y *yard) leaderOf(t testing.TB, conn *nats.Conn, name string) (leader int) {
	t.Helper()
	js := testkit.Value(jetstream.New(conn))(t)
	its, called := regexp.MustCompile(`^Y_`+y.name+`_l=h-`+name+`-[^-]+-\d+$`), "n%d"
	if y.servers == nil {
		called = "node%d"
	}
	eventually(t, "the stream of hub "+name+" has no leader", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), tryTime)
		defer cancel()
		var found []string
		for info := range js.ListStreams(ctx).Info() {
			if its.MatchString(info.Config.Name) && info.Cluster != nil {
				found = append(found, info.Cluster.Leader)
			}
		}
		return len(found) == 1 && testkit.Err(fmt.Sscanf(found[0], called, &leader)) == nil
	})
	return leader
}
