package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// director lets a plan happen. All is done by one goroutine, but for what takes its time.
type director struct {
	*world
	dice  *dice
	up    []*run   // running, paused ones too
	free  []string // ids of those that crashed or left
	names int
	going sync.WaitGroup
	trace []string
}

func (d *director) say(format string, args ...any) {
	d.trace = append(d.trace, fmt.Sprintf("%v %s", since(), fmt.Sprintf(format, args...)))
}

// play is a whole simulation: trouble, then peace, then the end.
func (w *world) play() *director {
	d := &director{world: w, dice: w.dice.of("director", 0)}
	publishing, quit := context.WithCancel(context.Background())
	d.going.Go(func() { w.publish(publishing) })
	for range w.plan.instances {
		d.join()
	}
	for end := time.Now().Add(w.plan.lasts); time.Now().Before(end); {
		time.Sleep(d.dice.between(w.plan.every/2, w.plan.every*3/2))
		d.act(pick(d.dice, w.plan.acts))
	}
	quit()
	d.going.Wait() // pauses and weather end, who leaves has left
	d.peace()
	for _, r := range d.up {
		d.going.Go(func() { w.stop(r) })
	}
	d.going.Wait()
	w.late.Wait()
	return d
}

func (d *director) act(a act) {
	switch a {
	case join:
		d.join()
	case leave:
		if r := d.leaving(); r != nil {
			d.say("%v is stopped", r)
			d.free = append(d.free, r.id)
			d.going.Go(func() { d.world.stop(r) })
		}
	case crash:
		if r := d.leaving(); r != nil {
			d.say("%v crashes", r)
			d.kill(r)
			d.free = append(d.free, r.id)
		}
	case comeBack:
		d.comeBack()
	case pause:
		d.pause()
	case cutOff:
		d.cutOff()
	case storm:
		d.storm()
	case static:
		d.static()
	case clock:
		d.weather.setClock(d.dice.between(-48*time.Hour, 48*time.Hour))
	}
}

func (d *director) join() {
	if len(d.up) < d.plan.most {
		d.names++
		d.run(fmt.Sprintf("i%02d", d.names))
	}
}

func (d *director) run(id string) {
	r := d.start(id)
	d.say("%v starts", r)
	d.up = append(d.up, r)
}

// leaving takes one from those that run; the last one stays.
func (d *director) leaving() *run {
	if len(d.up) < 2 {
		return nil
	}
	i := d.dice.below(len(d.up))
	r := d.up[i]
	d.up = slices.Delete(d.up, i, i+1)
	return r
}

// comeBack starts one again whose last run is over, with its old id.
func (d *director) comeBack() {
	if len(d.free) == 0 || len(d.up) >= d.plan.most {
		return
	}
	id := d.free[len(d.free)-1]
	d.free = d.free[:len(d.free)-1]
	d.run(id)
}

func (d *director) pause() {
	r := pick(d.dice, d.up)
	lasts := d.dice.between(time.Second, 3*leaseTime)
	d.say("%v pauses for %v", r, lasts)
	r.disturb()
	resume := r.gate.pause()
	d.going.Go(func() {
		time.Sleep(lasts)
		r.disturb()
		resume()
	})
}

func (d *director) cutOff() {
	r := pick(d.dice, d.up)
	lasts := d.dice.between(time.Second, 3*leaseTime)
	d.say("%v cannot reach the store for %v", r, lasts)
	r.cut.Store(true)
	d.going.Go(func() {
		time.Sleep(lasts)
		r.cut.Store(false)
	})
}

func (d *director) storm() {
	kind := pick(d.dice, []sky{slow, down, lossy})
	lasts := d.dice.between(time.Second, 3*leaseTime)
	d.say("the store is %v for %v", kind, lasts)
	d.weather.set(kind)
	d.going.Go(func() {
		time.Sleep(lasts)
		d.weather.set(fair)
	})
}

func (d *director) static() {
	lasts := d.dice.between(time.Second, 2*time.Minute)
	d.say("lines are bad for %v", lasts)
	d.weather.setLine(true)
	d.going.Go(func() {
		time.Sleep(lasts)
		d.weather.setLine(false)
	})
}

// peaceTime is how long the group may take to finish and to become even once nothing happens any
// more. Balanced moves one partition in each round for each instance: that of 64 partitions is what
// it takes.
const peaceTime = 15 * time.Minute

// peace waits until all is done and even.
func (d *director) peace() {
	d.say("peace")
	var left, uneven string
	for end := time.Now().Add(peaceTime); time.Now().Before(end); time.Sleep(5 * time.Second) {
		if left, uneven = d.ledger.left(), d.uneven(); left == "" && uneven == "" {
			d.say("all is done and even")
			return
		}
	}
	if left != "" {
		d.ledger.breakRule(ruleAllDone, "after %v of peace: %s", peaceTime, left)
	}
	if uneven != "" {
		d.ledger.breakRule(ruleEven, "after %v of peace: %s", peaceTime, uneven)
	}
}

// left tells of a partition in which not all is done and saved.
func (l *ledger) left() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range slices.Sorted(maps.Keys(l.accounts)) {
		if a := l.accounts[p]; a.saved != a.last {
			return fmt.Sprintf("partition %s: published to %d, done to %d, saved to %d; held by %q, epoch %d\n    %s",
				p, a.last, a.handled, a.saved, a.held.Owner, a.held.Epoch, strings.Join(a.trace, "\n    "))
		}
	}
	return ""
}

// uneven tells how the partitions are spread where that is not evenly among those that run.
func (d *director) uneven() string {
	leases, err := d.store.Leases(context.Background(), d.group())
	if err != nil {
		return err.Error()
	}
	owned := map[string]int{}
	for _, r := range d.up {
		owned[r.id] = 0
	}
	for _, lease := range leases {
		if _, up := owned[lease.Owner]; !up {
			return fmt.Sprintf("partition %s is owned by %q, which does not run", lease.Partition, lease.Owner)
		}
		owned[lease.Owner]++
	}
	counts := slices.Sorted(maps.Values(owned))
	if len(leases) != d.plan.partitions || counts[len(counts)-1]-counts[0] > 1 {
		return fmt.Sprintf("%d of %d partitions are owned: %v", len(leases), d.plan.partitions, owned)
	}
	return ""
}
