package nodes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// director lets a plan happen.
type director struct {
	*yard
	rand      *rand.Rand
	going     sync.WaitGroup // what takes its time
	busy      map[string]bool
	mu        sync.Mutex // guards busy
	instances []*instance
	crashed   []*instance
}

// play is a whole simulation: trouble, then peace, then the end.
func (y *yard) play() {
	d := &director{yard: y, rand: luck(y.plan.seed, "director"), busy: map[string]bool{}}
	for y.node(d.rand) == nil {
		time.Sleep(time.Second)
	}
	publishing, quiet := context.WithCancel(context.Background())
	working, rest := context.WithCancel(context.Background())
	var senders, readers sync.WaitGroup
	for i := range y.plan.senders {
		senders.Go(func() { y.send(publishing, fmt.Sprint("s", i), i%y.plan.partitions) })
	}
	for i := range y.plan.producers {
		senders.Go(func() { y.produce(publishing, int64(i), i%y.plan.partitions) })
	}
	for p := range y.plan.partitions {
		readers.Go(func() { y.visit(working, p) })
		for _, name := range names {
			readers.Go(func() { y.follow(working, name, p) })
		}
	}
	for range y.plan.instances {
		d.instances = append(d.instances, y.join(working))
	}
	for end := time.Now().Add(y.plan.lasts); time.Now().Before(end) && !y.judge.failed(); {
		time.Sleep(between(d.rand, y.plan.every/2, y.plan.every*3/2))
		d.act(y.plan.acts[d.rand.IntN(len(y.plan.acts))], working)
	}
	d.going.Wait()
	y.weather(calm(), 0)
	if !y.judge.failed() { // else there may be none
		d.peace()
	}
	quiet()
	senders.Wait()
	if !y.judge.failed() {
		d.completion()
	}
	rest()
	readers.Wait()
	for _, i := range append(d.instances, d.crashed...) {
		<-i.ended
		i.die()
	}
	if !y.judge.failed() {
		d.verdict()
	}
	for _, name := range names {
		n := y.named(name)
		n.stop()
		<-n.ended
	}
}

// takes gives a node that nothing befalls now, for something that lasts.
func (d *director) takes() (name string, free func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name = names[d.rand.IntN(len(names))]
	if d.busy[name] {
		return "", nil
	}
	d.busy[name] = true
	return name, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.busy, name)
	}
}

func (d *director) act(a act, working context.Context) {
	lasts := between(d.rand, time.Second, 40*time.Second)
	switch a {
	case kill, restart, freeze, cutOff:
		if name, free := d.takes(); free != nil {
			d.going.Go(func() {
				defer free()
				d.befall(a, name, lasts)
			})
		}
	case noLeader:
		d.judge.says("no stream has a leader for %v", lasts)
		d.servers.LoseLeaders(lasts)
	case minority:
		d.judge.says("the servers have no majority for a minute")
		if d.stopServers(time.Minute); d.rand.IntN(2) == 0 {
			d.stopServers(0)
			d.servers.LoseLeaders(time.Minute)
		}
		time.Sleep(time.Minute)
	case weather:
		faults := rough(d.rand)
		d.judge.says("weather for %v: %+v", lasts, faults)
		d.weather(faults, 0.1)
		time.Sleep(lasts)
		d.weather(calm(), 0)
	case crash:
		i := d.rand.IntN(len(d.instances))
		d.judge.says("%s crashes", d.instances[i].id)
		d.instances[i].die()
		d.crashed = append(d.crashed, d.instances[i])
		d.instances[i] = d.join(working)
	}
}

// befall does something to a node, and waits until it is over.
func (d *director) befall(a act, name string, lasts time.Duration) {
	switch n := d.named(name); a {
	case kill:
		d.judge.says("%s is killed for %v", name, lasts)
		n.kill()
		<-n.ended
		time.Sleep(lasts)
		d.replace(name)
		d.judge.says("%s is started again", name)
	case restart:
		d.judge.says("%s is restarted", name)
		n.stop()
		<-n.ended
		d.replace(name)
	case freeze:
		d.judge.says("%s is frozen for %v", name, lasts)
		d.freeze(name, lasts)
		time.Sleep(lasts)
		for p := range d.plan.partitions {
			d.judge.look(p)
		}
	case cutOff:
		d.judge.says("%s is cut off for %v", name, lasts)
		d.cutOff(name, lasts)
		time.Sleep(lasts)
	}
}

// peace looks whether everybody gets on by himself.
func (d *director) peace() {
	d.judge.says("peace")
	time.Sleep(2 * time.Minute)
	before := d.judge.counted()
	time.Sleep(time.Minute)
	after := d.judge.counted()
	for _, what := range []string{"acknowledged", "produced", "called", "visits"} {
		if after[what] <= before[what] {
			d.judge.fail("in a minute of peace nothing more is %s: %d", what, after[what])
		}
	}
}

// peaceTime is how long everything may take to be done once nothing happens any more.
const peaceTime = 10 * time.Minute

// completion waits, with nobody sending any more, until all is done.
func (d *director) completion() {
	left := ""
	for end := time.Now().Add(peaceTime); time.Now().Before(end); time.Sleep(time.Second) {
		ends, err := d.ends(d.named(names[0]))
		if err != nil {
			left = err.Error()
		} else if left = d.judge.unfinished(ends); left == "" {
			d.judge.says("all is done")
			return
		}
	}
	d.judge.fail("after %v of peace: %s", peaceTime, left)
}

// ends asks a node where the partitions end, with all that was acknowledged.
func (d *director) ends(n *node) (ends []int64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return call(ctx, n, func(ctx context.Context) (ends []int64, err error) {
		for number := range d.plan.partitions {
			info, err := n.broker.Partition(ctx, hubName, strconv.Itoa(number))
			if err != nil {
				return nil, err
			}
			ends = append(ends, int64(info.Last)+1)
		}
		return ends, nil
	}, nil)
}

// verdict has every node, and a new one, read everything.
func (d *director) verdict() {
	stranger := d.start("stranger")
	for !stranger.serving.Load() {
		time.Sleep(time.Second)
	}
	for _, n := range []*node{d.named("a"), d.named("b"), d.named("c"), stranger} {
		if !n.serving.Load() {
			d.judge.fail("node %s does not serve in the end; what it met last: %v\n%s", n.name, n.hurdle.Load(), starting())
			continue
		}
		ends, err := d.ends(n)
		if err != nil {
			d.judge.fail("node %s in the end: %v", n.name, err)
			continue
		}
		for number, end := range ends {
			texts, err := d.readAll(n, number, end)
			if err != nil {
				d.judge.fail("node %s reads partition %d in the end: %v", n.name, number, err)
				continue
			}
			d.judge.compare(n.name, number, texts)
		}
	}
	stranger.stop()
	<-stranger.ended
}

// starting tells where the nodes stand that are about to start.
func starting() string {
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	var found []string
	for goroutine := range strings.SplitSeq(string(all), "\n\n") {
		if strings.Contains(goroutine, "(*node).patiently(") {
			found = append(found, goroutine)
		}
	}
	return strings.Join(found, "\n\n")
}

// readAll reads a partition from its first event to an end.
func (d *director) readAll(n *node, number int, end int64) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return call(ctx, n, func(ctx context.Context) (texts []string, err error) {
		_, err = read(ctx, n, number, 0, end, func(at int64, text string) { texts = append(texts, text) })
		return texts, err
	}, nil)
}
