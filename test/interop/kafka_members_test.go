//go:build linux

package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
)

// A member whose session lapses so is replaced by the others; a static one comes back before, also on a slow machine.
const (
	crewSession       = 6 * time.Second // the least that there is
	crewStaticSession = 3 * time.Minute
	// A member of KIP-848 is replaced when the session that the yard gives it has lapsed, which is 45 s.
	crewConsumerSession = 45 * time.Second
)

// kafkaCrew is a client that others wrote, of which two members at a time read a hub of their own in a group, and what of
// their protocol they use.
type kafkaCrew struct {
	name                string
	member              func(t *testing.T) *exec.Cmd
	static, cooperative bool
	protocol            string // of the group, as clients name it; empty: the classic one

	task    kafkaTask
	members []*kafkaMember  // all that there were, of which some are over
	marked  map[int32]int64 // what was committed at the last mark, by partition
	killed  *kafkaMember    // the last one
}

// kafkaCrews are those of make interop: each client once. With all each has every way that it knows.
func kafkaCrews(all bool) []*kafkaCrew {
	java := func(version string) func(t *testing.T) *exec.Cmd {
		return func(t *testing.T) *exec.Cmd { return kafkaJavaProgram(t, version, "Member.java") }
	}
	python := func(name string) func(t *testing.T) *exec.Cmd {
		return func(t *testing.T) *exec.Cmd { return kafkaPythonProgram(t, name) }
	}
	crews := []*kafkaCrew{
		{name: "java-4.3.1", member: java("4.3.1"), cooperative: true},
		{name: "java-3.9.1", member: java("3.9.1"), static: true},
		{name: "confluent-kafka", member: python("member_confluent.py"), cooperative: true},
		{name: "kafka-python", member: python("member_python.py"), static: true},
		{name: "kafkajs", member: func(t *testing.T) *exec.Cmd { return kafkaJSProgram(t, "member.js") }},
		{name: "sarama", member: goMemberProgram("sarama")},
		{name: "franz-go", member: goMemberProgram("franz"), cooperative: true},
	}
	if all {
		crews = append(crews,
			&kafkaCrew{name: "java-4.3.1-eager", member: java("4.3.1")},
			&kafkaCrew{name: "java-3.9.1-cooperative-static", member: java("3.9.1"), cooperative: true, static: true},
			&kafkaCrew{name: "confluent-kafka-static", member: python("member_confluent.py"), static: true},
			&kafkaCrew{name: "kafka-python-cooperative", member: python("member_python.py"), cooperative: true},
			&kafkaCrew{name: "sarama-static", member: goMemberProgram("sarama"), static: true},
			&kafkaCrew{name: "franz-go-static", member: goMemberProgram("franz"), static: true},
			&kafkaCrew{name: "java-4.3.1-848", member: java("4.3.1"), protocol: "consumer"},
			&kafkaCrew{name: "confluent-kafka-848", member: python("member_confluent.py"), protocol: "consumer"},
			&kafkaCrew{name: "franz-go-848", member: goMemberProgram("franz"), protocol: "consumer"},
		)
	}
	return crews
}

// goMemberProgram is a copy of the test binary that plays a member.
func goMemberProgram(role string) func(t *testing.T) *exec.Cmd {
	return func(*testing.T) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = environment(map[string]string{clientVariable: fmt.Sprintf(`{"Role": %q}`, role)})
		return cmd
	}
}

// TestKafkaMembers has two members of each client share a hub, to which something is sent all the time. One is killed with
// SIGKILL: the other takes over behind what was committed; a static member comes back to what it had, and nobody else
// notices. Then the yard is killed, or a node of it. In the end everything that was sent was read and is committed, and who
// comes later begins there. // K2
func TestKafkaMembers(t *testing.T) {
	t.Parallel()
	rounds := 1
	if *full {
		rounds = 3
	}
	crews := kafkaCrews(*full)
	l := layout{hubs: map[string]int{}}
	for _, c := range crews {
		l.hubs[c.name] = kafkaPartitions
	}
	y := startKafkaYard(t, l, nil)
	s := newCrewSender(t, kafkaTask{address: y.address()}, crews)
	for _, c := range crews {
		c.task = kafkaTask{address: y.address(), hub: c.name}
		c.start(t, "first")
		c.start(t, "second")
	}
	for _, c := range crews {
		c.awaitShared(t)
	}
	t.Log("proved: two members of each client share a hub")
	for range rounds {
		for _, c := range crews {
			c.killOne(t)
		}
		for _, c := range crews {
			c.replaceIt(t)
		}
		for _, c := range crews {
			c.awaitShared(t)
			c.awaitRead(t, s)
			c.check(t)
		}
		t.Log("proved: a member was killed, and another goes on behind what was committed")
		for _, c := range crews {
			c.mark()
		}
		y.kill(t)
		for _, c := range crews {
			c.awaitRead(t, s)
			c.check(t)
		}
		t.Log("proved: the yard was killed, and no commit is lost")
	}
	s.stop(t)
	for _, c := range crews {
		c.awaitRead(t, s)
		c.end(t)
		c.checkAll(t, s)
		if c.protocol != "" {
			c.task.checkKind(t)
		}
	}
	for _, c := range crews {
		if !c.static { // those that were there are members still
			c.late(t, s)
		}
	}
	y.stop(t)
	t.Logf("proved: members of %d groups have read all that was sent, and committed it; who comes later begins there", len(crews))
}

// kafkaMember is one process. What it says is gathered in its story.
type kafkaMember struct {
	*process
	name  string
	close func() error // of its input, upon which it leaves
	over  bool

	read      int // bytes of its output that are in the story
	has       []int32
	changes   int             // how often it said what it has
	spans     []kafkaSpan     // what it has read
	committed map[int32]int64 // by partition, the last one that was acknowledged
	marked    int             // how many spans it had at the last mark
}

// kafkaSpan are records of a partition that came in a row.
type kafkaSpan struct {
	partition   int32
	first, last int64
}

// start starts a member, under the instance id of its name where it is static.
func (c *kafkaCrew) start(t *testing.T, name string) {
	t.Helper()
	cmd := c.member(t)
	more := []string{"YARD_KAFKA=" + c.task.address, "YARD_HUB=" + c.task.hub, "YARD_GROUP=" + c.task.group()}
	session := crewSession
	if c.static {
		session = crewStaticSession
		more = append(more, "YARD_INSTANCE="+name)
	}
	if c.cooperative {
		more = append(more, "YARD_COOPERATIVE=1")
	}
	if c.protocol != "" {
		more = append(more, "YARD_PROTOCOL="+c.protocol)
	}
	cmd.Env = append(append(cmd.Env, more...), fmt.Sprint("YARD_SESSION=", session.Milliseconds()))
	input := testkit.Value(cmd.StdinPipe())(t)
	c.members = append(c.members, &kafkaMember{process: launch(t, cmd), name: name, close: input.Close, committed: map[int32]int64{}})
}

// alive are the members that were not killed, with all that they have said until now.
func (c *kafkaCrew) alive(t *testing.T) (all []*kafkaMember) {
	t.Helper()
	for _, m := range c.members {
		if m.over {
			continue
		}
		m.listen()
		select {
		case <-m.done:
			t.Fatalf("%s: member %s has ended: %v\n%s", c.name, m.name, m.err, m.out)
		default:
			all = append(all, m)
		}
	}
	return all
}

// listen takes in what the member has said.
func (m *kafkaMember) listen() {
	text := m.out.String()[m.read:]
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			return // it comes
		}
		m.read += len(line)
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		var span kafkaSpan
		var next int64
		switch fields[0] {
		case "has":
			m.has, m.changes = nil, m.changes+1
			for _, field := range fields[1:] {
				var p int32
				if _, err := fmt.Sscan(field, &p); err == nil {
					m.has = append(m.has, p)
				}
			}
		case "read":
			if n, _ := fmt.Sscanf(line, "read %d %d %d", &span.partition, &span.first, &span.last); n == 3 {
				m.spans = append(m.spans, span)
			}
		case "committed":
			if n, _ := fmt.Sscanf(line, "committed %d %d", &span.partition, &next); n == 2 {
				m.committed[span.partition] = max(m.committed[span.partition], next)
			}
		}
	}
}

// awaitShared waits until both members have a part, and together all.
func (c *kafkaCrew) awaitShared(t *testing.T) {
	t.Helper()
	var members []*kafkaMember
	defer func() {
		if t.Failed() {
			c.show(t)
		}
	}()
	testkit.Eventually(t, c.name+": two members share the hub", func() bool {
		members = c.alive(t)
		var all []int32
		for _, m := range members {
			if len(m.has) == 0 {
				return false
			}
			all = append(all, m.has...)
		}
		slices.Sort(all)
		return slices.Equal(all, []int32{0, 1, 2, 3})
	})
}

// show shows what members have said.
func (c *kafkaCrew) show(t *testing.T) {
	t.Helper()
	for _, m := range c.members {
		var rest strings.Builder // the others are many
		for line := range strings.Lines(m.out.String()) {
			if !strings.HasPrefix(line, "read ") && !strings.HasPrefix(line, "committed ") {
				rest.WriteString(line)
			}
		}
		t.Logf("%s: member %s (over: %v) has read %v, knows that %v is committed, and said:\n%.6000s", c.name, m.name, m.over, m.lastRead(), m.committed, rest.String())
	}
}

// lastRead is, by partition, where the member read last.
func (m *kafkaMember) lastRead() map[int32]int64 {
	last := map[int32]int64{}
	for _, span := range m.spans {
		last[span.partition] = span.last
	}
	return last
}

// floor is, by partition, what all members together know to be committed.
func (c *kafkaCrew) floor() map[int32]int64 {
	floor := map[int32]int64{}
	for _, m := range c.members {
		for p, next := range m.committed {
			floor[p] = max(floor[p], next)
		}
	}
	return floor
}

// mark notes what is committed now: check wants that nothing of it is read after this.
func (c *kafkaCrew) mark() {
	for _, m := range c.members {
		m.listen()
		m.marked = len(m.spans)
	}
	c.marked = c.floor()
}

// killOne kills the member that is there longest, and starts it again at once if it is static.
func (c *kafkaCrew) killOne(t *testing.T) {
	t.Helper()
	c.killed = c.alive(t)[0]
	c.killed.kill()
	c.killed.over = true
	c.mark()
	if c.static {
		c.start(t, c.killed.name)
	}
}

// replaceIt waits until the other member has taken over, and starts a new one. A static member has what it had.
func (c *kafkaCrew) replaceIt(t *testing.T) {
	t.Helper()
	members := c.alive(t)
	rest := members[0]
	defer func() {
		if t.Failed() {
			c.show(t)
		}
	}()
	if !c.static {
		c.awaitLapse(t)
		testkit.Eventually(t, c.name+": who is left has all partitions", func() bool { return len(c.alive(t)[0].has) == kafkaPartitions })
		c.start(t, c.killed.name)
		return
	}
	before := rest.changes
	testkit.Eventually(t, c.name+": the static member has what it had", func() bool { c.alive(t); return slices.Equal(members[1].has, c.killed.has) })
	testkit.MustEqual(t, rest.changes, before, "%s: how often the other member was told what it has", c.name)
}

// awaitLapse waits as long as the session of a member of KIP-848 lasts, which is nearly as long as one is patient here, or
// until the other has taken over.
func (c *kafkaCrew) awaitLapse(t *testing.T) {
	t.Helper()
	if c.protocol == "" {
		return
	}
	for lapsed := time.After(crewConsumerSession); len(c.alive(t)[0].has) < kafkaPartitions; {
		select {
		case <-lapsed:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// awaitRead waits until something was read and committed of each partition that was sent after this was called or, where
// the sender has stopped, all of it.
func (c *kafkaCrew) awaitRead(t *testing.T, s *crewSender) {
	t.Helper()
	want := s.next(c.name)
	defer func() {
		if t.Failed() {
			t.Logf("%s: committed is %v, want %v", c.name, c.floor(), want)
			c.show(t)
		}
	}()
	testkit.Eventually(t, c.name+": what is sent is read and committed", func() bool {
		c.alive(t)
		floor := c.floor()
		for p, next := range want {
			if floor[int32(p)] < next {
				return false
			}
		}
		return true
	})
}

// check finds that nothing was read since the mark that had been committed by then.
func (c *kafkaCrew) check(t *testing.T) {
	t.Helper()
	for _, m := range c.members {
		for _, span := range m.spans[m.marked:] {
			if span.first < c.marked[span.partition] {
				c.show(t)
				t.Fatalf("%s: member %s read offset %d of partition %d, %d was committed", c.name, m.name, span.first, span.partition, c.marked[span.partition])
			}
		}
	}
}

// end has the members leave.
func (c *kafkaCrew) end(t *testing.T) {
	t.Helper()
	for _, m := range c.alive(t) {
		testkit.Must(t, m.close())
	}
	for _, m := range c.members {
		if !m.over {
			testkit.Must(t, m.finish(t, time.Minute), "%s: member %s:\n%s", c.name, m.name, m.out)
			m.listen()
			m.over = true
		}
	}
}

// checkAll finds that everything was read by somebody, and is committed.
func (c *kafkaCrew) checkAll(t *testing.T, s *crewSender) {
	t.Helper()
	var spans []kafkaSpan
	for _, m := range c.members {
		spans = append(spans, m.spans...)
	}
	slices.SortFunc(spans, func(a, b kafkaSpan) int { return int(a.first - b.first) })
	read := make([]int64, kafkaPartitions)
	for _, span := range spans {
		testkit.MustThat(t, span.first <= read[span.partition], "%s: nobody has read offset %d of partition %d", c.name, read[span.partition], span.partition)
		read[span.partition] = max(read[span.partition], span.last+1)
	}
	testkit.Slices(t, read, s.next(c.name), "%s: what was read", c.name)
	testkit.Slices(t, c.task.committed(t), s.next(c.name), "%s: what is committed", c.name)
}

// late sends one record more, and finds that it is all that a member reads that comes now.
func (c *kafkaCrew) late(t *testing.T, s *crewSender) {
	t.Helper()
	want := s.next(c.name)
	s.send(c.name)
	c.start(t, "late")
	c.awaitRead(t, s)
	for _, span := range c.alive(t)[0].spans {
		testkit.Equal(t, span, kafkaSpan{span.partition, want[span.partition], want[span.partition]}, "%s: what a member has read that came later", c.name)
	}
	c.end(t)
}

// committed is, by partition, what the group of a task has committed.
func (k kafkaTask) committed(t *testing.T) []int64 {
	t.Helper()
	group := kmsg.NewOffsetFetchRequestGroup()
	group.Group = k.group()
	fetch := kmsg.NewPtrOffsetFetchRequest()
	fetch.Groups = append(fetch.Groups, group)
	answer := testkit.Value(fetch.RequestWith(t.Context(), k.franz(t)))(t)
	testkit.MustEqual(t, len(answer.Groups), 1, "groups")
	testkit.MustEqual(t, len(answer.Groups[0].Topics), 1, "hubs with offsets; the code is %d", answer.Groups[0].ErrorCode)
	all := make([]int64, kafkaPartitions)
	for _, p := range answer.Groups[0].Topics[0].Partitions {
		all[p.Partition] = p.Offset
	}
	return all
}

// crewSender sends a number to each partition of some hubs all the time: that of its offset.
type crewSender struct {
	client *kgo.Client
	end    func()

	mu     sync.Mutex
	sent   map[string][]int64 // by hub and partition, how many; guarded by mu
	failed error              // guarded by mu
	over   bool               // guarded by mu
}

func newCrewSender(t *testing.T, k kafkaTask, crews []*kafkaCrew) *crewSender {
	t.Helper()
	plain := kgo.ProducerBatchCompression(kgo.NoCompression()) // KafkaJS by itself knows gzip alone
	s := &crewSender{sent: map[string][]int64{}, client: k.franz(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), plain, soon)}
	for _, c := range crews {
		s.sent[c.name] = make([]int64, kafkaPartitions)
	}
	ended, done := make(chan struct{}), make(chan struct{})
	s.end = sync.OnceFunc(func() { close(ended); <-done })
	t.Cleanup(s.end)
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				for _, c := range crews {
					s.send(c.name)
				}
			case <-ended:
				return
			}
		}
	}()
	return s
}

// send sends one record more to each partition of a hub.
func (s *crewSender) send(hub string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.sent[hub] {
		record := &kgo.Record{Topic: hub, Partition: int32(p), Value: fmt.Append(nil, s.sent[hub][p])}
		s.sent[hub][p]++
		s.client.Produce(context.Background(), record, func(_ *kgo.Record, err error) {
			if err != nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.failed = err
			}
		})
	}
}

// stop sends no more by itself. What was sent is acknowledged then.
func (s *crewSender) stop(t *testing.T) {
	t.Helper()
	s.end()
	testkit.Must(t, s.client.Flush(t.Context()))
	s.mu.Lock()
	defer s.mu.Unlock()
	testkit.Must(t, s.failed)
	s.over = true
}

// next is, by partition, the offset behind what is sent to a hub: behind the record that is sent next, unless the sender has
// stopped.
func (s *crewSender) next(hub string) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.sent[hub])
	for p := range all {
		if !s.over {
			all[p]++
		}
	}
	return all
}
