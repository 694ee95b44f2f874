//go:build linux

package fleet

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

const partitions = 16

// patience is how long anything may take on a slow machine; nothing else is timed.
const patience = 2 * time.Minute

var keep = flag.String("fleet.keep", "", "keep the workers' notes in this folder")

// TestFleet is the mission's example: sixteen partitions and five instances, one of which is
// killed; three come, two go, and events keep coming. // P1, P2, P3, P6, P11, P12
func TestFleet(t *testing.T) {
	f := newFleet(t)
	stop := f.load()
	for i := range 5 {
		f.start(fmt.Sprintf("w%d", i+1))
	}
	f.waitFor("4,3,3,3,3")
	f.kill("w2")
	f.waitFor("4,4,4,4")
	for i := range 3 {
		f.start(fmt.Sprintf("w%d", i+6))
	}
	f.waitFor("3,3,2,2,2,2,2")
	f.stop("w1")
	f.stop("w6")
	f.waitFor("4,3,3,3,3")
	stop()
	f.waitUntilCaughtUp()
	for name := range f.workers {
		f.stop(name)
	}
	f.judge()
}

// fleet is a yard with its workers.
type fleet struct {
	t       *testing.T
	binary  string
	dir     string
	http    string
	yard    string // connection string
	client  *hub.Client
	workers map[string]*exec.Cmd
	all     []string
	killed  map[string]bool
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{t: t, dir: t.TempDir(), workers: map[string]*exec.Cmd{}, killed: map[string]bool{}}
	if *keep != "" {
		f.dir = *keep
	}
	f.binary = parts.Eventyard(t, false)
	f.startYard()
	f.cli("hub", "create", hubName, "--partitions", fmt.Sprint(partitions))
	f.cli("group", "create", hubName, groupName)
	client, err := hub.Dial(t.Context(), f.yard, hub.Config{})
	testkit.Must(t, err)
	t.Cleanup(func() { client.Close() })
	f.client = client
	return f
}

func (f *fleet) startYard() {
	f.t.Helper()
	serve := exec.Command(f.binary, "serve", "--data", f.t.TempDir(), "--http", "127.0.0.1:0", "--amqp", "127.0.0.1:0",
		"--amqps", "off", "--kafka", "off", "--kafkas", "off", "--https", "off")
	out := f.run(serve)
	lines := bufio.NewScanner(out)
	for f.http == "" && lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) == 2 && fields[0] == "http" {
			f.http = fields[1]
		}
	}
	if f.http == "" {
		f.t.Fatal("the yard did not start")
	}
	go io.Copy(io.Discard, out)
	f.yard = strings.TrimSpace(f.cli("connection-string"))
}

// run starts a program that ends with the test, even if that is killed.
func (f *fleet) run(cmd *exec.Cmd) io.Reader {
	f.t.Helper()
	out, err := cmd.StdoutPipe()
	testkit.Must(f.t, err)
	var complaints testkit.Buffer
	cmd.Stderr = &complaints
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	testkit.Must(f.t, cmd.Start())
	f.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if f.t.Failed() {
			f.t.Logf("%s: %s", filepath.Base(cmd.Path), complaints.String())
		}
	})
	return out
}

// cli runs the program as an operator does and gives what it prints.
func (f *fleet) cli(args ...string) string {
	f.t.Helper()
	cmd := exec.Command(f.binary, args...)
	cmd.Env = append(os.Environ(), "EVENTYARD_SERVER="+f.http)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		f.t.Fatalf("eventyard %s: %v\n%s", strings.Join(args, " "), err, complaints.String())
	}
	return string(out)
}

func (f *fleet) start(name string) {
	f.t.Helper()
	self, err := os.Executable()
	testkit.Must(f.t, err)
	worker := exec.Command(self)
	worker.Env = append(os.Environ(), workerName+"="+name, workerYard+"="+f.yard, workerLedger+"="+f.ledger(name))
	go io.Copy(io.Discard, f.run(worker))
	f.workers[name] = worker
	f.all = append(f.all, name)
}

func (f *fleet) ledger(name string) string { return filepath.Join(f.dir, name+".notes") }

func (f *fleet) kill(name string) {
	f.t.Helper()
	testkit.Must(f.t, f.workers[name].Process.Kill())
	_ = f.workers[name].Wait()
	delete(f.workers, name)
	f.killed[name] = true
}

// stop ends a worker gracefully.
func (f *fleet) stop(name string) {
	f.t.Helper()
	began := time.Now()
	testkit.Must(f.t, f.workers[name].Process.Signal(syscall.SIGTERM))
	testkit.Must(f.t, f.workers[name].Wait(), "%s did not stop gracefully", name)
	f.t.Logf("%s stopped in %v", name, time.Since(began))
	delete(f.workers, name)
}

// load publishes with keys, without a pause, until it is stopped.
func (f *fleet) load() (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	h := f.client.Hub(hubName)
	var senders sync.WaitGroup
	for s := range 4 {
		senders.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				home := event.Text(fmt.Sprintf("%d/%d", s, n))
				home.Key = fmt.Sprintf("home-%d", (n*4+s)%1000)
				if err := h.Send(f.t.Context(), home, home, home); err != nil {
					f.t.Errorf("send: %v", err)
					return
				}
				<-time.After(time.Millisecond)
			}
		})
	}
	return func() { cancel(); senders.Wait() }
}

// ownership is what an operator's program reads.
type ownership struct {
	Partitions []struct {
		Partition string `json:"partition"`
		Owner     string `json:"owner"`
		Lag       int64  `json:"lagEvents"`
	} `json:"partitions"`
}

func (f *fleet) ownership() ownership {
	f.t.Helper()
	var o ownership
	testkit.Must(f.t, json.Unmarshal([]byte(f.cli("group", "show", hubName, groupName, "-o", "json")), &o))
	return o
}

// waitFor waits until the living workers, and nobody else, own so many partitions each.
func (f *fleet) waitFor(spread string) {
	f.t.Helper()
	began := time.Now()
	f.until("a spread of "+spread, func() (bool, string) {
		counts := map[string]int{}
		for _, p := range f.ownership().Partitions {
			counts[p.Owner]++
		}
		return f.spreadIs(counts, spread), fmt.Sprint(counts)
	})
	f.t.Logf("%s after %v", spread, time.Since(began))
}

func (f *fleet) spreadIs(counts map[string]int, spread string) bool {
	var sizes []int
	for owner, n := range counts {
		if f.workers[owner] == nil {
			return false
		}
		sizes = append(sizes, n)
	}
	slices.SortFunc(sizes, func(a, b int) int { return b - a })
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(sizes), "[]"), " ", ",") == spread
}

func (f *fleet) waitUntilCaughtUp() {
	f.t.Helper()
	f.until("no lag", func() (bool, string) {
		var lag int64
		for _, p := range f.ownership().Partitions {
			lag += p.Lag
		}
		return lag == 0, fmt.Sprintf("%d events behind", lag)
	})
}

// until asks again and again, as an operator would.
func (f *fleet) until(what string, done func() (bool, string)) {
	f.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		ok, now := done()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("waited for %s; it is %s", what, now)
		}
		<-time.After(100 * time.Millisecond)
	}
}

func (f *fleet) judge() {
	f.t.Helper()
	byPartition := map[string][]*call{}
	for _, name := range f.all {
		for _, c := range readLedger(f.t, name, f.ledger(name)) {
			byPartition[c.partition] = append(byPartition[c.partition], c)
		}
	}
	var events, repeats int64
	for i := range partitions {
		id := fmt.Sprint(i)
		info, err := f.client.Hub(hubName).Partition(f.t.Context(), id)
		testkit.Must(f.t, err)
		repeats += judge(f.t, id, byPartition[id], info.Last+1, f.killed)
		events += info.Last + 1
	}
	f.t.Logf("%d events, %d of them handled twice after a kill", events, repeats)
	f.logHandovers(byPartition)
}

// logHandovers tells how long partitions stood still between two owners, for people to look at.
func (f *fleet) logHandovers(byPartition map[string][]*call) {
	var worst time.Duration
	for _, calls := range byPartition {
		for i := 1; i < len(calls); i++ {
			before, after := calls[i-1], calls[i]
			if before.worker == after.worker || f.killed[before.worker] || before.done == 0 {
				continue
			}
			worst = max(worst, time.Duration(after.began-before.done))
		}
	}
	f.t.Logf("the longest a partition stood still between two owners, none of them killed: %v", worst)
}
