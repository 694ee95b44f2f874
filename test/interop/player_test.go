//go:build linux

package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/testkit"
)

// orders is what a client process is told by its environment.
type orders struct {
	Role string
	// Address of the AMQP listener; Hub to work with.
	Address, Hub string
	// Connections to open, for an idle client.
	Connections int
	// Epoch to hold, for a holder.
	Epoch int64
}

// client is a process that plays one: a copy of the test binary. It writes a word when
// it has done something, and does the next when it is told by a line.
type client struct {
	*process
	stdin io.WriteCloser
}

// startClient starts a client, in a network namespace of its own if flags say so.
func startClient(t *testing.T, o orders, flags uintptr) *client {
	t.Helper()
	reported, err := json.Marshal(o)
	testkit.Must(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = environment(map[string]string{clientVariable: string(reported)})
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	stdin, err := cmd.StdinPipe()
	testkit.Must(t, err)
	return &client{launch(t, cmd), stdin}
}

// await waits for the client's word.
func (c *client) await(t *testing.T, word string) {
	t.Helper()
	if !c.out.await(func(text string) bool { return strings.Contains(text, word+"\n") }) {
		t.Fatalf("the client ended without saying %q:\n%s", word, c.out)
	}
}

// notify lets the client do its next thing.
func (c *client) notify(t *testing.T, word string) {
	t.Helper()
	if _, err := fmt.Fprintln(c.stdin, word); err != nil {
		t.Fatalf("tell the client to %s: %v\n%s", word, err, c.out)
	}
}

// playClient is the client's side.
func playClient(reported string) int {
	var o orders
	err := json.Unmarshal([]byte(reported), &o)
	if err == nil {
		switch o.Role {
		case "idle":
			err = o.idle()
		case "hold":
			err = o.hold()
		case "sarama":
			err = playSaramaMember()
		case "franz":
			err = playFranzMember()
		default:
			err = fmt.Errorf("there is no role %q", o.Role)
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func heard(lines *bufio.Scanner) error {
	if !lines.Scan() {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// idle opens connections, each with a sender, and does nothing with them until it is
// told to send; then each sends one event.
func (o orders) idle() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	senders := make([]*amqp.Sender, o.Connections)
	err := each(o.Connections, 16, func(i int) error {
		p, err := dialPeer(ctx, o.Address)
		if err != nil {
			return err
		}
		senders[i], err = p.sender(ctx, o.Hub)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Println("open")
	if err := heard(bufio.NewScanner(os.Stdin)); err != nil {
		return err
	}
	err = each(o.Connections, 16, func(i int) error {
		return senders[i].Send(ctx, amqp.NewMessage([]byte("no longer idle")), nil)
	})
	if err == nil {
		fmt.Println("sent")
	}
	return err
}

// hold waits for a word, then holds partitions 0 and 1 as their owner on two
// connections, and at the next word takes its network away.
func (o orders) hold() error {
	lines := bufio.NewScanner(os.Stdin)
	fmt.Println("here")
	if err := heard(lines); err != nil {
		return err
	}
	if lines.Text() == "furnish" {
		if err := furnishClientNetwork(); err != nil {
			return err
		}
		fmt.Println("furnished")
		if err := heard(lines); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for partition := range 2 {
		p, err := dialPeer(ctx, o.Address)
		if err != nil {
			return err
		}
		r, err := p.receiver(ctx, o.Hub, partition, o.Epoch, 100)
		if err != nil {
			return err
		}
		if _, err := r.Receive(ctx, nil); err != nil {
			return err
		}
	}
	fmt.Println("holding")
	if err := heard(lines); err != nil {
		return err
	}
	if err := linkDown(clientLink); err != nil {
		return err
	}
	fmt.Println("gone")
	return heard(lines)
}

// each calls work for 0 to count-1, several at once, and gives the first error.
func each(count, atOnce int, work func(i int) error) error {
	var mu sync.Mutex
	var first error
	var wg sync.WaitGroup
	next := make(chan int)
	for range atOnce {
		wg.Go(func() {
			for i := range next {
				if err := work(i); err != nil {
					mu.Lock()
					if first == nil {
						first = fmt.Errorf("number %d: %w", i, err)
					}
					mu.Unlock()
				}
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	wg.Wait()
	return first
}
