//go:build linux

package interop

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/eventyard/eventyard/test/parts"
	"golang.org/x/sys/unix"

	"github.com/eventyard/eventyard/internal/testkit"
)

// The network between a yard and a client that is to vanish.
const (
	yardLink, clientLink       = "yard0", "yard1"
	yardAddress, clientAddress = "10.77.0.1", "10.77.0.2"
)

// vanishTime is H7's half minute for a machine that is gone, and what a slow machine
// may need besides.
const vanishTime = 30*time.Second + 15*time.Second

// TestVanishedMachine takes away the network of a machine that owns two partitions: on
// one connection nothing is under way, on the other the yard waits for an
// acknowledgement. No packet tells the yard; still both places become free. // H7
func TestVanishedMachine(t *testing.T) {
	onOneMachine(t, "the balancer's end of the connection stays")
	t.Parallel()
	if err := parts.Need("ip", "iproute2"); err != nil {
		parts.Missing(t, "%v", err)
	}
	inNamespace(t, func(t *testing.T) {
		c := startClient(t, orders{Role: "hold", Address: yardAddress + ":5672", Hub: "held", Epoch: 5}, unix.CLONE_NEWNET)
		c.await(t, "here")
		furnishYardNetwork(t, c.cmd.Process.Pid)
		c.notify(t, "furnish")
		c.await(t, "furnished")
		// The idle time-out is out of reach, so that only TCP can tell.
		y := startYard(t, layout{
			address: yardAddress, hubs: map[string]int{"held": 2},
			settings: []string{"amqpIdleTimeout: 10m", "allowPlaintext: true"},
		})
		h := newHeir(t, y)
		c.notify(t, "hold")
		c.await(t, "holding")
		h.mustBeRefused(t)
		c.notify(t, "vanish")
		c.await(t, "gone")
		gone := time.Now()
		h.publish(t, 1) // the yard sends it and waits for an acknowledgement
		h.inherit(t, gone, vanishTime)
	})
}

// TestFrozenClient stops a client's process, as a debugger or a suspended laptop would:
// its machine goes on acknowledging packets, so only the idle time-out can tell. A
// client that is merely quiet is not cut off. // H7
func TestFrozenClient(t *testing.T) {
	t.Parallel()
	y := startYard(t, layout{hubs: map[string]int{"held": 3}, settings: []string{"amqpIdleTimeout: 5s"}})
	h := newHeir(t, y)
	quiet := h.hold(t, 2)
	c := startClient(t, orders{Role: "hold", Address: y.hostPort(t, "amqp"), Hub: "held", Epoch: 5}, 0)
	c.await(t, "here")
	c.notify(t, "hold")
	c.await(t, "holding")
	h.mustBeRefused(t)
	testkit.Must(t, c.cmd.Process.Signal(syscall.SIGSTOP))
	h.inherit(t, time.Now(), vanishTime)
	h.publish(t, 2)
	testkit.Check(t, testkit.Err(quiet.Receive(h.ctx, nil)), "the quiet client")
}

// heir wants the partitions 0 and 1 of a hub with a lower epoch than their owner's.
type heir struct {
	ctx  context.Context
	peer *peer
}

// newHeir makes one, and puts an event in each partition so that an owner can see that it is one.
func newHeir(t *testing.T, y *yard) *heir {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	p, err := dialPeer(ctx, y.hostPort(t, "amqp"))
	testkit.Must(t, err)
	t.Cleanup(p.close)
	h := &heir{ctx, p}
	for partition := range 2 {
		h.publish(t, partition)
	}
	return h
}

func (h *heir) publish(t *testing.T, partition int) {
	t.Helper()
	sender, err := h.peer.sender(h.ctx, fmt.Sprintf("held/Partitions/%d", partition))
	testkit.Must(t, err)
	testkit.Must(t, sender.Send(h.ctx, amqp.NewMessage([]byte("event")), nil))
	testkit.Must(t, sender.Close(h.ctx))
}

// hold owns a partition.
func (h *heir) hold(t *testing.T, partition int) *amqp.Receiver {
	t.Helper()
	h.publish(t, partition)
	receiver, err := h.peer.receiver(h.ctx, "held", partition, 1, 10)
	testkit.Must(t, err)
	testkit.Must(t, testkit.Err(receiver.Receive(h.ctx, nil)))
	return receiver
}

// try asks for a partition: nil if it was given, with an event as proof.
func (h *heir) try(partition int) error {
	receiver, err := h.peer.receiver(h.ctx, "held", partition, 1, 1)
	if err != nil {
		return err
	}
	defer receiver.Close(h.ctx)
	_, err = receiver.Receive(h.ctx, nil)
	return err
}

func (h *heir) mustBeRefused(t *testing.T) {
	t.Helper()
	for partition := range 2 {
		if err := h.try(partition); !refused(err) {
			t.Fatalf("partition %d while its owner lives: %v", partition, err)
		}
	}
}

// inherit asks again and again until both partitions were given.
func (h *heir) inherit(t *testing.T, since time.Time, within time.Duration) {
	t.Helper()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for partition := range 2 {
		err := h.try(partition)
		for ; refused(err); err = h.try(partition) {
			if time.Since(since) > within {
				t.Fatalf("partition %d is still held after %s: %v", partition, time.Since(since), err)
			}
			<-again.C
		}
		testkit.Must(t, err)
		t.Logf("partition %d was free after %s", partition, time.Since(since).Round(time.Millisecond))
	}
}

// furnishYardNetwork lays a cable from the yard's network to the client's.
func furnishYardNetwork(t *testing.T, client int) {
	t.Helper()
	for _, command := range [][]string{
		{"ip", "link", "add", yardLink, "type", "veth", "peer", "name", clientLink, "netns", fmt.Sprint(client)},
		{"ip", "address", "add", yardAddress + "/24", "dev", yardLink},
		{"ip", "link", "set", yardLink, "up"},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
}

func furnishClientNetwork() error {
	out, err := exec.Command("ip", "address", "add", clientAddress+"/24", "dev", clientLink).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip address add: %w\n%s", err, out)
	}
	return linkUp(clientLink)
}
