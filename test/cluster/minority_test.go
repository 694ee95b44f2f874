package cluster

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
)

// severedGroup is the group of a load's hub in which nobody reads but those who ask while there is no majority.
const severedGroup = "severed"

// sever lets a fault without a majority last, and meanwhile has a change asked for and a receiver with an epoch attached
// at each node that lives: at once, when nodes do not know yet that there is none, and again when they do. None may
// be done, and none may hang. What publishers were told is judged in the end.
func (r *trial) sever(t testing.TB, f fault) {
	t.Helper()
	begun := time.Now()
	nodes := f.severs(r.yard)
	for round := range 2 {
		time.Sleep(time.Until(begun.Add(time.Duration(round) * f.lasts / 2)))
		r.askInVain(t, nodes, round)
	}
	time.Sleep(time.Until(begun.Add(f.lasts)))
	r.severed = append(r.severed, span{begun, time.Now()})
}

// askInVain asks each of some nodes for what takes a majority.
func (r *trial) askInVain(t testing.TB, nodes []*node, round int) {
	t.Helper()
	var asking sync.WaitGroup
	epoch := int64(1 + 2*len(r.severed) + round)
	for _, n := range nodes {
		manager := n.admin(t)
		group := fmt.Sprintf("%s-%s-%d", severedGroup, n.name, epoch)
		asking.Go(func() {
			inVain(t, "a group is made through "+n.name, webRefusalOf, func(ctx context.Context) error {
				return testkit.Err(manager.CreateGroup(ctx, r.load.hub, group))
			})
		})
		asking.Go(func() {
			inVain(t, "a receiver with an epoch is let in by "+n.name, refusalOf, func(ctx context.Context) error {
				return n.attach(ctx, r.load.hub, severedGroup, epoch)
			})
		})
	}
	asking.Wait()
}

// inVain does what has to be refused in time, by what clients try again after.
func inVain(t testing.TB, what string, of func(error) (refusal, bool), do func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), answerTime)
	defer cancel()
	begun := time.Now()
	err := do(ctx)
	took := time.Since(begun).Round(time.Millisecond)
	if err == nil {
		t.Errorf("%s without a majority, after %v", what, took)
		return
	}
	kind, ok := of(err)
	testkit.That(t, ok && (kind == busy || kind == timedOut), "that %s without a majority is refused after %v in a way (%s) that clients do not try again after: %v", what, took, kind, err)
	t.Logf("that %s without a majority is refused: %s after %v", what, kind, took)
}

// attach attaches a receiver with an epoch to the first partition of a hub through a node, once, and detaches it.
func (n *node) attach(ctx context.Context, name, group string, epoch int64) error {
	client, err := hub.Dial(ctx, n.connection(), hub.Config{Retry: hub.Retry{Attempts: 1, Timeout: patience}, Log: testkit.Quiet()})
	if err != nil {
		return err
	}
	defer client.Close()
	reader, err := client.Hub(name).Open(ctx, hub.ReadConfig{Group: group, Partition: "0", Epoch: hub.Exclusive(epoch)})
	if err != nil {
		return err
	}
	closing, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return reader.Close(closing)
}
