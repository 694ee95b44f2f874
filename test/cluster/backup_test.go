package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
)

// bulk is how many bytes of events of 100 KB are backed up besides those that are checked, so that there
// is time to kill.
const bulk = 12_000_000

// tries is how often something is begun that may be done before it is killed.
const tries = 10

// C7: a yard of three nodes is backed up through one of them under load. The backup is killed, the node
// that serves it is, and the restore to a second yard: what was interrupted is never taken for whole, and
// all is begun again by the same command. The cut is consistent: what was acknowledged before the backup
// is there with its number, no checkpoint is past an end or past what was handled, and what was not
// delivered is.
func TestKillNineOfBackupAndRestoreOnNodes(t *testing.T) {
	if !*fixed {
		t.Skip("make cluster has it, which is a line of make test: it wants the machine for itself")
	}
	y := start(t)
	y.createHub(t, "bulk", 2)
	y.program("send", "bulk", "--count", strconv.Itoa(bulk/100_000), "--size", "100000", "--server", y.nodes[2].url()).mustRun(t)
	w := y.work(t)
	y.interruptBackup(t, "backup", (*command).kill)
	y.interruptBackup(t, "node", func(*command) { testkit.Must(t, y.nodes[0].program.End("KILL")) })
	w.goesOn(t)
	dir, before, cut := w.backUp(t)
	w.stop()
	for _, n := range y.nodes {
		n.end(t, "KILL")
	}

	restored := &yard{servers: y.servers, binary: y.binary, secret: y.secret, key: y.key}
	js := testkit.Value(jetstream.New(y.servers.Dial(t, 0)))(t)
	var at []string
	restore := func() *command { return y.program(append([]string{"restore", dir}, at...)...) }
	for tries, interrupted := 0, false; !interrupted; tries++ { // one may be done before it is killed
		testkit.MustThat(t, tries < 10, "each restore was done before it was killed")
		restored.name = fmt.Sprint("restored", tries)
		at = []string{"--engine", y.servers.URL(), "--yard", restored.name, "--secrets-key-file", y.secret}
		killed := restore()
		var err error
		interrupted, err = killed.interrupted(t, func() bool { return restored.hasHubs(js) }, killed.kill)
		testkit.Must(t, err, "%s", &killed.output)
	}
	off := []string{"--http", "off", "--https", "off", "--amqp", "off", "--amqps", "off", "--kafka", "off", "--kafkas", "off"}
	y.program(append(append([]string{"serve"}, at...), off...)...).mustFail(t, "a restore is not finished")
	restore().mustRun(t)
	restore().mustFail(t, "the yard is not empty")

	w.hooks.forget(cut.received)
	restored.startNodes(t)
	restored.judgeEvents(t, before, w.acked())
	restored.judgeCheckpoints(t, cut.handled)
	out := y.program("read", "bulk", "-o", "json", "--server", restored.nodes[1].url()).mustRun(t)
	testkit.Equal(t, bytes.Count(out, []byte("\n")), bulk/100_000, "events besides")
	w.hooks.judge(t, before.published)
	t.Logf("%d events and %d of a topic were acknowledged before the backup, and %d after", len(before.acked), len(before.published), len(w.acked())-len(before.acked))
}

func (n *node) url() string { return "http://" + n.http }

// command is the program with arguments.
type command struct {
	*exec.Cmd
	output bytes.Buffer
}

func (y *yard) program(args ...string) *command {
	c := &command{Cmd: exec.Command(y.binary, args...)}
	c.Stdout, c.Stderr = &c.output, &c.output
	return c
}

func (c *command) mustRun(t testing.TB) []byte {
	t.Helper()
	testkit.Must(t, c.Run(), "%v: %s", c.Args[1:], &c.output)
	return c.output.Bytes()
}

// mustFail wants it to end with an error that has some words.
func (c *command) mustFail(t testing.TB, words string) {
	t.Helper()
	err := c.Run()
	testkit.That(t, err != nil && strings.Contains(c.output.String(), words), "%v ends with %v: %s, want %q", c.Args[1:], err, &c.output, words)
}

// interrupted runs a command until something is so, ends a process, and tells whether the command had
// to end with it. One that has ended before gives its error.
func (c *command) interrupted(t testing.TB, when func() bool, end func()) (bool, error) {
	t.Helper()
	testkit.Must(t, c.Start())
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	for !when() {
		select {
		case err := <-done:
			return false, err
		default:
			idle(t.Context(), time.Millisecond)
		}
	}
	end()
	return <-done != nil, nil
}

// kill ends it, unless it has ended.
func (c *command) kill() { _ = c.Process.Kill() }

// archived is the size of the archive in a folder, as far as it is written.
func archived(dir string) int64 {
	info, err := os.Stat(filepath.Join(dir, "archive.eyb"))
	if err != nil {
		return 0
	}
	return info.Size()
}

// interruptBackup has a process end in the midst of a backup through the first node, which runs when it
// returns. A backup that is done before is whole, and the next is tried.
func (y *yard) interruptBackup(t *testing.T, victim string, end func(*command)) {
	t.Helper()
	for range tries {
		dir := filepath.Join(t.TempDir(), "backup")
		c := y.program("backup", dir, "--server", y.nodes[0].url())
		interrupted, err := c.interrupted(t, func() bool { return archived(dir) > 0 }, func() { end(c) })
		testkit.Must(t, y.nodes[0].start())
		if err != nil { // the node may still have to notice that the one before was killed
			testkit.MustThat(t, strings.Contains(c.output.String(), "another backup is being taken"), "backup: %v: %s", err, &c.output)
			idle(t.Context(), time.Second)
			continue
		}
		if interrupted {
			y.program("backup", "verify", dir).mustFail(t, "the backup is not whole")
			y.program("restore", dir, "--data", filepath.Join(t.TempDir(), "none")).mustFail(t, "the backup is not whole")
			return
		}
		y.program("backup", "verify", dir).mustRun(t)
	}
	t.Fatalf("the backup was done before the %s was killed, %d times: this proves nothing", victim, tries)
}

// hasHubs: there is a stream of a hub's events.
func (y *yard) hasHubs(js jetstream.JetStream) bool {
	found := false
	for name := range js.StreamNames(context.Background(), jetstream.WithStreamListSubject("y."+y.name+".l.>")).Name() {
		found = found || strings.HasPrefix(name, "Y_"+y.name+"_l=h-")
	}
	return found
}

// backUp takes a backup under load through the second node. It gives what was acknowledged before, and
// what was handled and delivered when its entries had been read.
func (w *work) backUp(t *testing.T) (dir string, before done, cut done) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "backup")
	before = w.done()
	c := w.yard.program("backup", dir, "--server", w.yard.nodes[1].url())
	testkit.Must(t, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for archived(dir) == 0 && len(ended) == 0 {
		idle(t.Context(), time.Millisecond)
	}
	cut = w.done()
	testkit.Must(t, <-ended, "%s", &c.output)
	w.yard.program("backup", "verify", dir).mustRun(t)
	return dir, before, cut
}

// judgeEvents wants all events to be there that were acknowledged before the backup, with their numbers,
// and no others at the numbers of those that were acknowledged after.
func (y *yard) judgeEvents(t testing.TB, before done, acked map[position]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	found := map[position]string{}
	for i, n := range y.nodes {
		client := testkit.Value(hub.Dial(ctx, n.connection(), hub.Config{Log: testkit.Quiet()}))(t)
		defer client.Close()
		for p := range partitions {
			info := testkit.Value(client.Hub(workHub).Partition(ctx, strconv.Itoa(p)))(t)
			all := testkit.Value(readAll(ctx, client.Hub(workHub), strconv.Itoa(p), info.Last))(t)
			testkit.Equal(t, int64(len(all)), info.Last+1, "events of partition %d at %s", p, n.name)
			for j, e := range all {
				at, text := position{p, e.Sequence}, fmt.Sprintf("%s %d", e.Sender, e.Number)
				testkit.MustEqual(t, e.Sequence, int64(j), "a number of partition %d at %s", p, n.name)
				testkit.MustThat(t, i == 0 || found[at] == text, "%v at %s is %q, and at another node %q", at, n.name, text, found[at])
				found[at] = text
			}
		}
	}
	for at, text := range before.acked {
		testkit.MustEqual(t, found[at], text, "what was acknowledged before the backup at %v", at)
	}
	for at, text := range acked {
		is, there := found[at]
		testkit.MustThat(t, !there || is == text, "%v is %q, and was acknowledged as %q", at, is, text)
	}
}

// judgeCheckpoints wants those of the processor to be behind what it had handled when the entries of the
// backup had been read, and so behind the ends of partitions.
func (y *yard) judgeCheckpoints(t testing.TB, handled map[position]bool) {
	t.Helper()
	list := testkit.Value(y.nodes[0].admin(t).Checkpoints(t.Context(), workHub, workGroup))(t)
	testkit.Equal(t, len(list.Checkpoints), partitions, "partitions with a checkpoint")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := testkit.Value(hub.Dial(ctx, y.nodes[1].connection(), hub.Config{Log: testkit.Quiet()}))(t)
	defer client.Close()
	for _, c := range list.Checkpoints {
		info := testkit.Value(client.Hub(workHub).Partition(ctx, c.Partition))(t)
		testkit.MustThat(t, c.Sequence != nil && *c.Sequence >= 0 && *c.Sequence <= info.Last, "the checkpoint of partition %s is %+v, and its last event %d", c.Partition, c, info.Last)
		p := testkit.Value(strconv.Atoi(c.Partition))(t)
		for n := int64(0); n <= *c.Sequence; n++ {
			testkit.MustThat(t, handled[position{p, n}], "the checkpoint of partition %d is %d, and event %d was not handled", p, *c.Sequence, n)
		}
	}
}
