package groups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/oldest"
	"github.com/eventyard/eventyard/internal/kafka/groups/member"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/looks"
)

// What bounds all groups together, unless a Config says otherwise.
const (
	// DefaultMaxGroups is how many groups may be stored, and how many may be in use at a node.
	DefaultMaxGroups = 10_000
	// DefaultMaxBytes is what the members of all groups in use may take at a node.
	DefaultMaxBytes = 64 << 20
	// DefaultRetention is how long offsets are kept after the last member has left, or, where there never
	// was one, after the last commit.
	DefaultRetention = 7 * 24 * time.Hour
)

const (
	// storeTimeout bounds what goes on in the store although nobody waits for it any more.
	storeTimeout = 30 * time.Second
	// sweepInterval is how often expired groups are looked for.
	sweepInterval = time.Hour
	// lookInterval is how often a node looks whether groups have become another's, and adoptInterval whether
	// others have left it groups whose members are silent: those of the rest come by themselves.
	lookInterval  = 5 * time.Second
	adoptInterval = time.Minute
	// restTime is how long a group without members stays loaded when nobody asks for it, and restInterval how
	// often that is looked for.
	restTime     = 10 * time.Minute
	restInterval = time.Minute
	// ownRestTime is the same for who has used up its share: a tool may look at many groups that nobody is in.
	ownRestTime = 10 * time.Second
	// tries is how often a write is repeated that was refused, or may have been made.
	tries = 4
)

// Config is what a coordinator works with.
type Config struct {
	// Meta keeps groups and offsets, and Broker knows the hubs. Both are required; the coordinator closes
	// neither.
	Meta   meta.Store
	Broker *broker.Broker
	// Node names this node, for operators.
	Node string
	// Mine reports whether this node is to coordinate a group, and may: not while others may have seen it dead. It is
	// asked with each request. Nil: it coordinates all. It does no I/O.
	Mine func(group string) bool
	// Several: there are other nodes, from which groups may come at any time.
	Several bool
	// InitialDelay is how long the first generation of a group waits for more members; 0: not at all.
	InitialDelay time.Duration
	// MaxGroups, MaxBytes and Retention: zero means the default.
	MaxGroups int
	MaxBytes  int
	Retention time.Duration
	// Notes takes what operators change, and who comes into a group and leaves it. nil takes none.
	Notes activity.Notes
	// Log nil means slog.Default().
	Log *slog.Logger
	// Metrics is where the counters are registered; nil means nowhere.
	Metrics prometheus.Registerer
}

// Coordinator coordinates the groups that are this node's. All methods may be called by many goroutines at
// once. They give ErrNotCoordinator for groups of other nodes.
type Coordinator struct {
	cfg     Config // with its defaults
	metrics *metrics
	looks   *looks.Looks // nil: there are no other nodes
	// work is writes and loads that are under way.
	work sync.WaitGroup
	// oldest are events that groups have yet to read.
	oldest oldest.Times
	// adopting is held while groups are taken over.
	adopting sync.Mutex
	// wake tells Run that something is due earlier than it thinks.
	wake chan struct{}
	// Stages are the offsets of groups in transactions.
	Stages *Stages

	mu sync.Mutex
	// all are the groups that are loaded, or are being loaded. Guarded by mu, as is what follows.
	all map[string]*group
	// loadedBy is how many of these an account has had loaded.
	loadedBy map[string]int
	// bytes is what their members take, and bytesBy what those of the groups that an account has made.
	bytes   int
	bytesBy map[string]int
	// stored is about how many groups the store has: Run counts them, and this node's own between.
	stored int
	// storedBy is how many of those an account has made.
	storedBy map[string]int
	// changed is how often that was counted since the start.
	changed int
	// alarm is when Run wakes up.
	alarm   time.Time
	stopped bool
}

// New makes a coordinator; it starts nothing.
func New(cfg Config) (*Coordinator, error) {
	if cfg.Meta == nil || cfg.Broker == nil {
		return nil, errors.New("make the coordinator of groups: a meta store and a broker are required")
	}
	cfg.MaxGroups = cmp.Or(cfg.MaxGroups, DefaultMaxGroups)
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, DefaultMaxBytes)
	cfg.Retention = cmp.Or(cfg.Retention, DefaultRetention)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	if cfg.Mine == nil {
		cfg.Mine = func(string) bool { return true }
	}
	c := &Coordinator{cfg: cfg, wake: make(chan struct{}, 1), all: make(map[string]*group), loadedBy: make(map[string]int), bytesBy: make(map[string]int), storedBy: make(map[string]int)}
	c.Stages = newStages(c)
	if cfg.Several {
		c.looks = looks.New(cfg.Meta)
	}
	var err error
	c.metrics, err = newMetrics(cfg.Metrics, c)
	return c, err
}

// find gives a group that is this node's, loaded. Where there is none it makes one, in memory, if create says
// so, and else gives ErrNotFound.
func (c *Coordinator) find(ctx context.Context, id string, create bool) (*group, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	if !c.cfg.Mine(id) {
		return nil, ErrNotCoordinator
	}
	g, err := c.enter(id, accountOf(ctx))
	if err != nil {
		return nil, err
	}
	select {
	case <-g.loaded:
	case <-ctx.Done():
		return nil, ErrStopping
	}
	if g.failed != nil {
		return nil, g.failed
	}
	if !create && g.unused() {
		return nil, ErrNotFound
	}
	return g, nil
}

// findOrMake has something done to a group, which is made where there is none.
func (c *Coordinator) findOrMake(ctx context.Context, id string, do func(g *group) error) error {
	for {
		g, err := c.find(ctx, id, true)
		if err == nil {
			err = do(g)
		}
		if !errors.Is(err, errUnused) {
			return err
		}
	}
}

// joined gives a group to who says to be in it.
func (c *Coordinator) joined(ctx context.Context, id string) (*group, error) {
	g, err := c.find(ctx, id, false)
	if errors.Is(err, ErrNotFound) {
		err = member.ErrUnknown
	}
	return g, err
}

// enter gives a group that is loaded, or begins to load it, for an account.
func (c *Coordinator) enter(id, account string) (*group, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, ErrStopping
	}
	if g := c.all[id]; g != nil {
		g.used = time.Now()
		return g, nil
	}
	full := func() bool {
		return len(c.all) >= c.cfg.MaxGroups || account != "" && c.loadedBy[account] >= c.cfg.share()
	}
	if full() {
		c.restLocked(time.Now(), time.Minute, "")
		c.restLocked(time.Now(), ownRestTime, account)
		if full() {
			return nil, ErrBusy
		}
	}
	g := newGroup(c, id, account)
	c.all[id] = g
	c.loadedBy[account]++
	c.work.Go(g.load)
	return g, nil
}

// restLocked forgets groups that nobody is in, and that nobody has asked for in a time; only those of an account, if one
// is named. Loaded again they are as they were; who still holds the one before is fenced off as any other coordinator is.
func (c *Coordinator) restLocked(now time.Time, after time.Duration, account string) {
	for id, g := range c.all {
		if g.resting && now.Sub(g.used) >= after && (account == "" || g.account == account) {
			delete(c.all, id)
			less(c.loadedBy, g.account)
			c.countLocked(g, g.payer, 0)
		}
	}
}

// countLocked notes what the members of a group take, and who has made it.
func (c *Coordinator) countLocked(g *group, payer string, bytes int) {
	c.bytes += bytes - g.bytes
	if c.bytesBy[g.payer] -= g.bytes; c.bytesBy[g.payer] <= 0 {
		delete(c.bytesBy, g.payer)
	}
	if bytes > 0 {
		c.bytesBy[payer] += bytes
	}
	g.payer, g.bytes = payer, bytes
}

// errUnused: the group was given up because nobody had used it. Another is made.
var errUnused = fmt.Errorf("%w: nobody had used it", ErrNotFound)

// forget takes a group out that was given up.
func (c *Coordinator) forget(g *group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[g.id] == g {
		delete(c.all, g.id)
		less(c.loadedBy, g.account)
	}
	c.countLocked(g, g.payer, 0)
}

// note keeps what others ask of a group without its lock: when it is due, what it takes and for whom, and whether it
// could be forgotten.
func (c *Coordinator) note(g *group, due time.Time, payer string, bytes int, resting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[g.id] != g {
		return // it was forgotten, and nobody counts it any more
	}
	c.countLocked(g, payer, bytes)
	g.due, g.resting = due, resting
	if !due.IsZero() && (c.alarm.IsZero() || due.Before(c.alarm)) {
		c.alarm = due
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// grow refuses what would have the members of all groups take more than they may, or those of the groups of an account
// more than half of that. What takes no more than before is let through, however much that is.
func (c *Coordinator) grow(payer string, bytes int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if bytes > 0 && (c.bytes+bytes > c.cfg.MaxBytes || payer != "" && c.bytesBy[payer]+bytes > c.cfg.MaxBytes/2) {
		return ErrBusy
	}
	return nil
}

// room: one more group may be stored for an account.
func (c *Coordinator) room(account string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stored < c.cfg.MaxGroups && (account == "" || c.storedBy[account] < c.cfg.share())
}

// share is how many groups one account may have, of those that are stored and of those in use here: the other half
// stays for others.
func (c Config) share() int { return max(c.MaxGroups/2, 1) }

// counted notes that so many groups more of an account are stored than before.
func (c *Coordinator) counted(account string, more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stored += more
	c.storedBy[account] += more
	c.changed++
}

// less counts one less for an account.
func less(counts map[string]int, account string) {
	if counts[account]--; counts[account] <= 0 {
		delete(counts, account)
	}
}

// accountKey is what the account of who asks has in a context.
type accountKey struct{}

// For has what follows be counted for an account, of which there may be so many groups only.
func For(ctx context.Context, account string) context.Context {
	return context.WithValue(ctx, accountKey{}, account)
}

func accountOf(ctx context.Context) string {
	account, _ := ctx.Value(accountKey{}).(string)
	return account
}

// stopping: Run has ended, or is about to.
func (c *Coordinator) stopping() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopped
}

// loadedGroups gives those that are loaded now.
func (c *Coordinator) loadedGroups() []*group {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*group, 0, len(c.all))
	for _, g := range c.all {
		select {
		case <-g.loaded:
			all = append(all, g)
		default:
		}
	}
	return all
}
