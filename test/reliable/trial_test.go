//go:build linux

package reliable

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// trial is one function under test: its hub, what was sent to it, and its workers. Hub, function
// and poison hub have names of their own, so that many trials share a yard.
type trial struct {
	t     *testing.T
	yard  *yard
	name  string // of the function and its hub
	hub   *hub.Hub
	store processor.Store
	group processor.Group
	sent  []atomic.Int64 // events acknowledged, by partition
	// connection is what workers connect by; empty: as the yard says.
	connection string
	dir        string
	workers    []string       // all that ever were
	extra      func() []entry // notes of others than workers; nil: there are none
}

func newTrial(t *testing.T, y *yard, name string, partitions int) *trial {
	t.Helper()
	r := &trial{t: t, yard: y, name: name, dir: t.TempDir(), sent: make([]atomic.Int64, partitions)}
	if *keep != "" {
		r.dir = filepath.Join(*keep, name)
		testkit.Must(t, os.MkdirAll(r.dir, 0o755))
	}
	y.cli(t, "hub", "create", name, "--partitions", strconv.Itoa(partitions))
	y.cli(t, "hub", "create", r.poison(), "--partitions", "2")
	y.cli(t, "group", "create", name, groupName)
	r.hub = y.client.Hub(name)
	r.group = processor.Group{Namespace: y.client.Namespace(), Hub: name, Group: groupName}
	store, err := processor.StoreOf(r.hub)
	testkit.Must(t, err)
	r.store = store
	return r
}

// poison is the hub that is the default for the function's name.
func (r *trial) poison() string { return r.name + "-poison" }

// send publishes events to one partition; nil means that they are to be found.
func (r *trial) send(partition int, bodies ...string) error {
	events := make([]event.Event, len(bodies))
	for i, body := range bodies {
		events[i] = event.Text(body)
	}
	if err := r.hub.SendTo(r.t.Context(), strconv.Itoa(partition), events...); err != nil {
		return fmt.Errorf("send to %s/%d: %w", r.name, partition, err)
	}
	r.sent[partition].Add(int64(len(bodies)))
	return nil
}

// fill publishes n events to each partition, made by body.
func (r *trial) fill(n int, body func(partition, n int) string) {
	r.t.Helper()
	for partition := range r.sent {
		bodies := make([]string, n)
		for i := range bodies {
			bodies[i] = body(partition, i)
		}
		testkit.Must(r.t, r.send(partition, bodies...))
	}
}

// start runs a worker with one function, this trial's.
func (r *trial) start(name string, lease time.Duration, d duty) *process {
	r.t.Helper()
	d.Function, d.Hub = r.name, r.name
	r.workers = append(r.workers, name)
	return startWorker(r.t, job{Name: name, Yard: cmp.Or(r.connection, r.yard.connection), Ledger: r.ledger(name), Lease: lease, Duties: []duty{d}})
}

func (r *trial) ledger(worker string) string { return filepath.Join(r.dir, worker+".notes") }

// startWorker runs this binary as a worker.
func startWorker(t *testing.T, j job) *process {
	t.Helper()
	self, err := os.Executable()
	testkit.Must(t, err)
	text, err := json.Marshal(j)
	testkit.Must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), jobVariable+"="+string(text))
	p := start(t, j.Name, cmd)
	go drain(p)
	return p
}

// drain keeps a process from waiting for somebody to read what it says.
func drain(p *process) {
	buffer := make([]byte, 4096)
	for {
		if _, err := p.out.Read(buffer); err != nil {
			return
		}
	}
}

// notes are those of all workers.
func (r *trial) notes() (all []entry) {
	r.t.Helper()
	seen := map[string]bool{}
	for _, name := range r.workers {
		if !seen[name] {
			seen[name] = true
			all = append(all, readLedger(r.t, name, r.ledger(name))...)
		}
	}
	if r.extra != nil {
		all = append(all, r.extra()...)
	}
	return all
}

// ends are the numbers of events in the partitions.
func (r *trial) ends() []int64 {
	r.t.Helper()
	ends := make([]int64, len(r.sent))
	for i := range ends {
		info, err := r.hub.Partition(r.t.Context(), strconv.Itoa(i))
		testkit.Must(r.t, err)
		ends[i] = info.Last + 1
	}
	return ends
}

// settle waits until everything is done: the checkpoint of each partition is its last event.
func (r *trial) settle(meanwhile func()) {
	r.t.Helper()
	until(r.t, r.name+" to be done with all events", func() (bool, string) {
		meanwhile()
		checkpoints, err := r.store.Checkpoints(r.t.Context(), r.group)
		if err != nil {
			return false, err.Error()
		}
		behind := int64(0)
		done := map[string]int64{}
		for _, c := range checkpoints {
			done[c.Partition] = c.Sequence + 1
		}
		for i, end := range r.ends() {
			behind += end - done[strconv.Itoa(i)]
		}
		return behind == 0, fmt.Sprintf("%d events behind", behind)
	})
}

// circuit is the function's as it is stored.
func (r *trial) circuit() circuit.Status {
	r.t.Helper()
	all, err := circuit.Read(r.t.Context(), r.store, r.group, r.name)
	testkit.Must(r.t, err)
	for _, one := range all {
		if one.Function == r.name {
			return one
		}
	}
	return circuit.Status{}
}
