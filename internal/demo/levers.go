package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"golang.org/x/sync/errgroup"
)

// levers are what can be pulled, by name. Those of one card share its first lever's trial.
var levers = map[string]func(*demo, context.Context, string) error{
	"kill":      func(d *demo, ctx context.Context, who string) error { return d.endConsumers(ctx, "kill", who, 1) },
	"kill2":     func(d *demo, ctx context.Context, who string) error { return d.endConsumers(ctx, "kill", who, 2) },
	"stop":      func(d *demo, ctx context.Context, who string) error { return d.endConsumers(ctx, "stop", who, 1) },
	"add":       func(d *demo, _ context.Context, _ string) error { return d.addConsumer() },
	"co":        func(d *demo, ctx context.Context, _ string) error { return d.addCarbon(ctx) },
	"webhook":   func(d *demo, _ context.Context, _ string) error { return d.breakHook() },
	"mend":      func(d *demo, ctx context.Context, _ string) error { return d.mendHook(ctx) },
	"poison":    func(d *demo, ctx context.Context, _ string) error { return d.poison(ctx, 20) },
	"poison200": func(d *demo, ctx context.Context, _ string) error { return d.poison(ctx, 200) },
	"circuit":   func(d *demo, _ context.Context, _ string) error { return d.takeStore() },
	"store":     func(d *demo, _ context.Context, _ string) error { return d.returnStore() },
	"resume":    func(d *demo, ctx context.Context, _ string) error { return d.resume(ctx) },
	"plug":      func(d *demo, ctx context.Context, _ string) error { return d.pullPlug(ctx) },
	"quit":      func(d *demo, _ context.Context, _ string) error { d.quit(); return nil },
}

// Levers are the names that Config.Levers takes, in order.
func Levers() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(levers)), func(name string) bool { return name == "quit" })
}

func checkLevers(names []string) error {
	for _, name := range names {
		if !slices.Contains(Levers(), name) {
			return fmt.Errorf("there is no lever %q: use some of %s", name, strings.Join(Levers(), ", "))
		}
	}
	return nil
}

// pull pulls a lever; who is a consumer, or empty for any.
func (d *demo) pull(ctx context.Context, lever, who string) error {
	do, ok := levers[lever]
	if !ok {
		return fmt.Errorf("there is no lever %q", lever)
	}
	d.gate.RLock()
	defer d.gate.RUnlock()
	if d.ending {
		return fmt.Errorf("the demo is ending")
	}
	return do(d, ctx, who)
}

// step is a lever that is pulled after a time.
type step struct {
	after time.Duration
	lever string
}

// script spreads levers over the first four fifths of a time, so that there is some left to see what
// becomes of the last. Without a time they come ten seconds apart.
func script(names []string, total time.Duration) []step {
	each, first := 10*time.Second, 10*time.Second
	if total > 0 && len(names) > 0 {
		first = total / 5
		each = (total*4/5 - first) / time.Duration(len(names))
	}
	var steps []step
	for i, name := range names {
		steps = append(steps, step{first + each*time.Duration(i), name})
	}
	return steps
}

// endConsumers ends some consumers, by a kill or in good order.
func (d *demo) endConsumers(ctx context.Context, how, who string, n int) error {
	board, now := *d.board.Load(), time.Now()
	d.askOwners(ctx, &board) // they may have moved since
	var names, partitions []string
	for range n {
		c, err := d.staff.consumer(who)
		if err != nil {
			return err
		}
		if how == "kill" {
			c.kill()
		} else {
			c.stop()
		}
		names = append(names, c.name)
		partitions = append(partitions, board.ownedBy(c.name)...)
	}
	slices.SortFunc(partitions, byNumber)
	verb := map[string]string{"kill": "killed", "stop": "stopped"}[how]
	d.journal.note(now, verb+" "+listed(names))
	d.trials.begin(how, now, "", moved(verb, names, partitions, now, board.Books))
	return nil
}

func (d *demo) addConsumer() error {
	c, err := d.staff.addConsumer()
	if err != nil {
		return err
	}
	now := time.Now()
	d.journal.note(now, "added "+c.name)
	d.trials.begin("add", now, "", joined(c.name, now, d.board.Load().Books))
	return nil
}

// addCarbon gives each home a fifth sensor, and subscribes somebody to its alarms.
func (d *demo) addCarbon(ctx context.Context) error {
	d.staff.orderGateway(order{Carbon: true})
	if _, there := d.board.Load().hook(hookWithCarbon.name); there {
		return fmt.Errorf("every home has that sensor already")
	}
	if err := hookWithCarbon.create(ctx, d.client, d.url); err != nil {
		return err
	}
	now := time.Now()
	d.journal.note(now, "each home gets a sensor for carbon monoxide")
	d.trials.begin("co", now, "", carbon(now))
	return nil
}

func (d *demo) breakHook() error {
	if d.desk.broken.Swap(true) {
		return fmt.Errorf("%s is broken already", brokenHook)
	}
	now := time.Now()
	d.journal.note(now, brokenHook+" answers 503 from now on")
	d.trials.begin("webhook", now, "", broken(now))
	return nil
}

func (d *demo) mendHook(ctx context.Context) error {
	if !d.desk.broken.Swap(false) {
		return fmt.Errorf("%s works", brokenHook)
	}
	now := time.Now()
	d.journal.note(now, brokenHook+" answers again")
	d.trials.begin("webhook", now, "", mended(now))
	if h, _ := d.board.Load().hook(brokenHook); h.State != "probation" {
		return nil // it gets the next event anyway
	}
	return d.client.ProbeSubscription(ctx, admin.SubscriptionRef{Name: brokenHook, Topic: alarmsTopic})
}

// poisonKey begins the keys of events that the scorer cannot take.
const poisonKey = "poison-"

// mostPoison is how many events the demo can count that were put away.
const mostPoison = 1000

// poison sends events whose value is no number.
func (d *demo) poison(ctx context.Context, n int) error {
	total := int(d.poisonings.Add(int64(n)))
	if total > mostPoison {
		d.poisonings.Add(int64(-n))
		return fmt.Errorf("%d poison events are enough: start the demo again for more", total-n)
	}
	client, err := hub.Dial(ctx, d.staff.settings.Connection, hub.Config{Name: "poisoner"})
	if err != nil {
		return err
	}
	defer client.Close()
	now := time.Now()
	var sends errgroup.Group
	for i := range n {
		bad, err := event.JSON("motion", map[string]any{"home": homeName(i), "sensor": "motion", "at": now, "value": "a lot"})
		if err != nil {
			return err
		}
		bad.Key = fmt.Sprintf("%s%d", poisonKey, i)
		sends.Go(func() error { return client.Hub(odditiesHub).Send(ctx, bad) })
	}
	if err := sends.Wait(); err != nil {
		return err
	}
	d.journal.note(now, fmt.Sprintf("sent %d events that %s cannot take", n, scorer))
	d.trials.begin("poison", now, "", poisoned(n, total, now))
	return nil
}

func (d *demo) takeStore() error {
	if d.desk.away.Swap(true) {
		return fmt.Errorf("the scorer's store is away already")
	}
	now := time.Now()
	d.journal.note(now, "the scorer's store is away")
	d.trials.begin("circuit", now, "", opened(now))
	return nil
}

// returnStore brings the scorer's store back, and leaves the circuit to whoever follows the link of its notice.
func (d *demo) returnStore() error {
	if !d.desk.away.Swap(false) {
		return fmt.Errorf("the scorer's store is there")
	}
	now := time.Now()
	d.journal.note(now, "the scorer's store is back")
	d.trials.begin("circuit", now, "", returned(now))
	return nil
}

// resume brings the scorer's store back and closes the circuit.
func (d *demo) resume(ctx context.Context) error {
	d.desk.away.Store(false)
	if _, err := d.client.CloseCircuit(ctx, admin.CircuitRef{Function: scorer}, "resumed in the demo"); err != nil {
		return err
	}
	now := time.Now()
	d.journal.note(now, scorer+": resumed")
	d.trials.begin("circuit", now, "", resumed(now))
	return nil
}

// pullPlug kills the yard, and has it come back while everybody else goes on.
func (d *demo) pullPlug(ctx context.Context) error {
	if !d.yard.up.Load() {
		return fmt.Errorf("the yard is away already")
	}
	now := time.Now()
	d.ledger.excuse(now.Add(4 * paceSpan))
	d.journal.note(now, "killed the yard")
	d.trials.begin("plug", now, "", replugged(now, d.board.Load().Books))
	d.restart.Go(func() {
		if err := d.yard.pull(ctx); err != nil {
			d.journal.note(time.Now(), fmt.Sprintf("the yard did not come back: %v", err))
			return
		}
		d.ledger.excuse(time.Now().Add(2 * paceSpan))
	})
	return nil
}

// mend undoes what levers have broken, before the demo ends.
func (d *demo) mend(ctx context.Context) {
	if d.desk.broken.Load() {
		_ = d.mendHook(ctx) // nobody waits for it any more
	}
	if d.desk.away.Load() || d.board.Load().Scorer.Open() {
		_ = d.resume(ctx)
	}
}
