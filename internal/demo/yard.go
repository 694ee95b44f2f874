package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/admin"
)

const (
	// yardStart is how long the yard may take to start, on a busy machine.
	yardStart = 2 * time.Minute
	// outage is how long the yard stays away after its plug was pulled.
	outage = 3 * time.Second
	// restarts is how often it is tried then.
	restarts = 10
)

// yard is the process `eventyard serve`, which is started again at the same addresses.
type yard struct {
	program, dir string

	mu         sync.Mutex
	http, amqp string // where it listens; a port of 0 until its first start
	process    *child

	up atomic.Bool
}

// newYard is a yard that is not started yet. An address that is taken is replaced by one that the
// machine chooses.
func newYard(program, dir, http, amqp string) *yard {
	return &yard{program: program, dir: dir, http: free(http), amqp: free(amqp)}
}

func free(address string) string {
	l, err := net.Listen("tcp", address)
	if err != nil {
		host, _, _ := net.SplitHostPort(address)
		return net.JoinHostPort(host, "0")
	}
	_ = l.Close()
	return address
}

// listener is a line that serve prints: a listener's name and its URL.
var listener = regexp.MustCompile(`^  (amqp|http) +\w+://(\S+)$`)

// start runs the yard until it is ready.
func (y *yard) start(ctx context.Context) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	ready := make(chan struct{})
	found := map[string]string{} // of the reading goroutine until ready is closed
	process, err := launch(y.program, y.dir, "yard", func(line []byte) {
		if m := listener.FindSubmatch(line); m != nil {
			found[string(m[1])] = string(m[2])
		}
		if string(line) == "Ctrl-C stops it." {
			close(ready)
		}
	}, "serve", "--data", filepath.Join(y.dir, "yard"), "--http", y.http, "--amqp", y.amqp, "--https", "off", "--amqps", "off", "--kafka", "off", "--kafkas", "off")
	if err != nil {
		return err
	}
	y.process = process
	select {
	case <-ready:
	case <-process.done:
		return fmt.Errorf("the yard did not start: %s", lastWords(y.dir, "yard"))
	case <-time.After(yardStart):
		return errors.New("the yard took too long to start")
	case <-ctx.Done():
		return ctx.Err()
	}
	y.http, y.amqp = found["http"], found["amqp"]
	y.up.Store(true)
	return nil
}

// url is that of the yard's HTTP listener.
func (y *yard) url() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return "http://" + y.http
}

// pull kills the yard in mid-load, and starts it again after a while.
func (y *yard) pull(ctx context.Context) error {
	y.mu.Lock()
	process := y.process
	y.mu.Unlock()
	y.up.Store(false)
	process.kill()
	<-process.done
	var err error
	for range restarts { // its port may be taken for a moment
		select {
		case <-time.After(outage):
		case <-ctx.Done():
			return ctx.Err()
		}
		if err = y.start(ctx); err == nil {
			return nil
		}
	}
	return err
}

// stop ends the yard in good order.
func (y *yard) stop() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.up.Store(false)
	if y.process != nil {
		y.process.leave(30 * time.Second)
	}
}

// client manages the yard.
func (y *yard) client() (*admin.Client, error) {
	return admin.New(admin.Config{Server: y.url(), Timeout: 10 * time.Second})
}
