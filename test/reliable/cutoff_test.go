//go:build linux

package reliable

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// TestWorkerIsCutOff lets a worker lose its yard, in the midst of retries and put-aways, while it
// lives and could go on working. Another takes over, and when the first is connected again nothing
// was done out of order or put away twice. // F2, F3, F4
func TestWorkerIsCutOff(t *testing.T) {
	t.Parallel()
	y := startYard(t, true, "")
	for i, attempt := range []int{1, 4, 6} {
		t.Run(fmt.Sprintf("after attempt %d", attempt), func(t *testing.T) {
			t.Parallel()
			cutOff(newTrial(t, y, fmt.Sprintf("cut-%d", i), 2), attempt)
		})
	}
}

func cutOff(r *trial, attempt int) {
	r.fill(60, breaking(map[int][]int{0: {7, 8, 9}, 1: {12, 14}}))
	wire := startWire(r.t, address(r.yard.amqp))
	d := duty{MaxBatch: 10, Retries: 2, Delay: 20 * time.Millisecond, Takes: 10 * time.Millisecond}
	direct := r.yard.connection
	r.connection = strings.ReplaceAll(direct, address(r.yard.amqp), wire.addr)
	if r.connection == direct {
		r.t.Fatalf("the connection string %q does not have the address %s", direct, address(r.yard.amqp))
	}
	first := r.start("first", brief, d)
	until(r.t, "the first to be at it", func() (bool, string) {
		for _, e := range r.notes() {
			if e.what == "fail" && e.attempt >= attempt {
				return true, ""
			}
		}
		return false, fmt.Sprint(r.notes())
	})
	wire.cut(true)
	r.connection = direct
	second := r.start("second", brief, d)
	r.settle(nothing)
	wire.cut(false)
	r.fill(10, fine)
	r.waitForShares("first", "second")
	r.settle(nothing)
	first.stop(r.t)
	second.stop(r.t)
	v := r.judge()
	v.wantPoisoned(r.t, map[string][]int64{"0": {7, 8, 9}, "1": {12, 14}})
	r.t.Logf("%d events were done twice", v.repeats)
}

// wire carries bytes both ways, unless it is cut: then they wait, and nobody is told.
type wire struct {
	addr string
	to   string

	mu   sync.Mutex
	open chan struct{} // guarded by mu; closed while bytes pass
}

func startWire(t *testing.T, to string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	w := &wire{addr: listener.Addr().String(), to: to, open: make(chan struct{})}
	close(w.open)
	t.Cleanup(func() { listener.Close() })
	go w.serve(t, listener)
	return w
}

func (w *wire) serve(t *testing.T, listener net.Listener) {
	for {
		in, err := listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", w.to)
		if err != nil {
			in.Close()
			continue
		}
		t.Cleanup(func() { in.Close(); out.Close() })
		go w.carry(t, in, out)
		go w.carry(t, out, in)
	}
}

func (w *wire) carry(t *testing.T, from, to net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		select {
		case <-w.passes():
		case <-t.Context().Done():
			return
		}
		if _, err := io.Writer(to).Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (w *wire) passes() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open
}

// cut stops the bytes, or lets them pass.
func (w *wire) cut(is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if is {
		w.open = make(chan struct{})
	} else {
		close(w.open)
	}
}
