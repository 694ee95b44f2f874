package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// watch makes a board every second, until ctx ends.
func (d *demo) watch(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.observe(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// observe makes a new board. What cannot be asked for, because the yard is away, stays as it was.
func (d *demo) observe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	now := time.Now()
	b := &Board{}
	if last := d.board.Load(); last != nil {
		*b = *last
	}
	b.At, b.Started, b.Console, b.Levers, b.YardUp = now, d.started, d.yard.url()+"/console/", d.url+"/", d.yard.up.Load()
	b.Rate, b.ToPage, b.Machine = d.ledger.rate(d.cfg.Every), d.ledger.delay(), d.machine.load()
	sent, _ := d.ledger.counts()
	b.Acked = sent.total().Acked
	if b.YardUp {
		d.askOwners(ctx, b)
		d.askHooks(ctx, b)
		d.askScorer(ctx, b)
		d.askBooks(ctx, b)
	}
	b.Scorer.Notices = d.desk.mail()
	d.flow.measure(b, d.staff.all(), d.ledger.progressOf())
	d.keepPace(now)
	d.noteFirst(now)
	var ended []Trial
	b.Trials, ended = d.trials.judge(b)
	for _, t := range ended {
		d.journal.note(now, t.Lever+": "+t.Text)
	}
	b.Journal, b.Trend = d.journal.newest(), b.Trend.with(b)
	d.board.Store(b)
}

// keepPace halves the homes where this machine cannot do what was promised.
func (d *demo) keepPace(now time.Time) {
	reached, short := d.ledger.fallsShort(now)
	if !short || !d.yard.up.Load() {
		return
	}
	d.ledger.excuse(now.Add(paceSpan))
	d.staff.orderGateway(order{Halve: true})
	d.journal.note(now, fmt.Sprintf("every second home falls silent: for %.0f s only %d %% of what was promised could be sent on this machine", paceSpan.Seconds(), int(100*reached)))
}

// noteFirst says once how long it took until a home was on its page.
func (d *demo) noteFirst(now time.Time) {
	after, shown := d.ledger.firstShown(d.called)
	if shown && !d.flow.begun {
		d.flow.begun = true
		d.journal.note(now, fmt.Sprintf("the first home is on its page, %s after the command", seconds(after)))
	}
}

func (d *demo) askOwners(ctx context.Context, b *Board) {
	table, err := d.client.Ownership(ctx, sensorsHub, aggregatorGroup, 0)
	if err != nil {
		return
	}
	b.Owners = nil
	for _, p := range table.Partitions {
		b.Owners = append(b.Owners, OwnerRow{Partition: p.Partition, Owner: p.Owner, Next: p.Next})
	}
}

func (d *demo) askHooks(ctx context.Context, b *Board) {
	all, err := d.client.SubscriptionsWithStats(ctx, admin.SubscriptionRef{Topic: alarmsTopic})
	if err != nil {
		return
	}
	b.Hooks = nil
	for _, s := range all {
		row := HookRow{Name: s.Name}
		if s.Stats != nil {
			row.State, row.Delivered = s.Stats.Endpoint.State, s.Stats.Delivered
			row.Waiting = int64(s.Stats.Queued) + s.Stats.Parked + s.Stats.Behind
			for _, w := range s.Stats.Waiting {
				row.Waiting += w.Events
			}
			for _, n := range s.Stats.DeadLettered {
				row.Dead += n
			}
			for _, n := range s.Stats.Dropped {
				row.Dead += n
			}
			if s.Stats.Endpoint.Until != nil {
				row.Until = *s.Stats.Endpoint.Until
			}
		}
		b.Hooks = append(b.Hooks, row)
	}
}

func (d *demo) askScorer(ctx context.Context, b *Board) {
	f, err := d.client.Function(ctx, scorer)
	if err != nil {
		return
	}
	row := ScorerRow{State: f.State, Poisoned: b.Scorer.Poisoned, Innocent: b.Scorer.Innocent}
	if f.Circuit.Since != nil {
		row.Since = *f.Circuit.Since
	}
	if f.Lag != nil {
		row.Waiting = *f.Lag
	}
	if away, err := d.client.Poison(ctx, f.Poison, admin.PoisonQuery{Max: 1000}); err == nil {
		row.Poisoned, row.Innocent = 0, 0
		for _, p := range away {
			if strings.HasPrefix(p.Key, poisonKey) {
				row.Poisoned++
			} else {
				row.Innocent++
			}
		}
	}
	b.Scorer = row
}

// booksEvery is how often the container is read for the books.
const booksEvery = 2 * time.Second

func (d *demo) askBooks(ctx context.Context, b *Board) {
	if time.Since(d.flow.booked) < booksEvery {
		return
	}
	before, _ := d.ledger.counts()
	h, err := d.audit.look(ctx)
	if err != nil {
		return
	}
	after, twice := d.ledger.counts()
	d.flow.booked = time.Now()
	b.Books = liveBooks(before, after, h, twice)
}

// flow measures how fast consumers are. The watching goroutine alone uses it.
type flow struct {
	past   map[string]int64 // events by consumer, a moment ago
	at     time.Time
	booked time.Time // when the books were last looked at
	begun  bool      // the first home was on its page
}

// measure fills in the rows of consumers.
func (f *flow) measure(b *Board, consumers []*child, now map[string]progress) {
	span := b.At.Sub(f.at).Seconds()
	b.Consumers, b.Aggregated, b.Behind = nil, 0, 0
	past := map[string]int64{}
	for _, c := range consumers {
		row := ConsumerRow{Name: c.name, Process: c.process(), Started: c.started, Partitions: b.ownedBy(c.name)}
		if why, at := c.fate(); why != "" {
			row.Fate = why
			if !at.IsZero() {
				row.Fate += " " + clock(at)
			}
			if !at.IsZero() && len(row.Partitions) > 0 { // nobody reads them yet
				b.Behind = max(b.Behind, b.At.Sub(at))
			}
		}
		p := now[c.name]
		past[c.name] = p.events
		if !f.at.IsZero() && span > 0 {
			row.Rate = float64(p.events-f.past[c.name]) / span
		}
		if !row.Gone() && b.At.Sub(p.at) < 5*time.Second {
			row.Behind = p.behind
			b.Behind = max(b.Behind, p.behind)
		}
		b.Aggregated += row.Rate
		b.Consumers = append(b.Consumers, row)
	}
	f.past, f.at = past, b.At
}

// journal is what has happened lately. Any goroutine may use it.
type journal struct {
	mu      sync.Mutex
	entries []Entry // the newest first
	total   int
}

// keptEntries is how many lines the journal has.
const keptEntries = 50

func (j *journal) note(at time.Time, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append([]Entry{{at, text}}, j.entries...)
	j.entries = j.entries[:min(len(j.entries), keptEntries)]
	j.total++
}

func (j *journal) newest() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}

// since gives what was noted after a number of entries, the oldest first, and the number now.
func (j *journal) since(seen int) ([]Entry, int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fresh := slices.Clone(j.entries[:min(j.total-seen, len(j.entries))])
	slices.Reverse(fresh)
	return fresh, j.total
}
