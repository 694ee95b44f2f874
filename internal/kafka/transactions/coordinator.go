package transactions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/groups"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/kafka/transactions/txn"
	"github.com/eventyard/eventyard/internal/parallel"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// prefix is what the keys of all transactional ids begin with.
const prefix = "kafka/transactions/"

const (
	// MaxIDBytes is the most that a transactional id may measure.
	MaxIDBytes = 256
	// DefaultMaxIDs is how many transactional ids may be stored.
	DefaultMaxIDs = 10_000
	// DefaultMaxPartitions is how many partitions all transactions together may have. Groups count as several.
	DefaultMaxPartitions = 400_000
	// DefaultRetention is how long an id is kept that nobody has used.
	DefaultRetention = 7 * 24 * time.Hour
	// finishTimeout bounds one try to carry a decision out, and endsAtOnce is in how many partitions at once.
	finishTimeout = 30 * time.Second
	endsAtOnce    = 16
)

// What listeners branch on besides package txn's errors.
var (
	// ErrInvalidID: a transactional id is empty or too long.
	ErrInvalidID = errors.New("a transactional id has 1 to 256 bytes")
	// ErrNotFound: nobody has used the transactional id.
	ErrNotFound = errors.New("there is no such transactional id")
	// ErrTooMany: as many transactional ids are stored as there may be, or may be of the account, and all were used lately.
	ErrTooMany = errors.New("as many transactional ids are stored as there may be, or as one account may have: use those that there are")
	// ErrTooManyPartitions: transactions have as many partitions and groups together as they may, or an account's do.
	ErrTooManyPartitions = errors.New("transactions that go on have as many partitions and groups as they may: end some first")
	// ErrRights: there is no right to what the transactional id is about, or it is about nothing yet and of another account.
	ErrRights = errors.New("there is no right to Send to all hubs that the transactional id has written to, or it has written to none yet and another policy made it: use a policy that has the right, or that one")
	// ErrStopping: the coordinator stops. Another try may succeed elsewhere.
	ErrStopping = errors.New("the coordinator of transactions is stopping: try again")
)

// Config is what a coordinator works with.
type Config struct {
	// Meta keeps transactions, Broker has the hubs and Groups the offsets. All are required.
	Meta   meta.Store
	Broker *broker.Broker
	Groups *groups.Coordinator
	// Mine reports whether this node is to see to a transactional id that nobody asks for; nil: to all.
	Mine func(id string) bool
	// Several: there are other nodes.
	Several bool
	// MaxIDs, MaxPartitions and Retention: zero means the default.
	MaxIDs        int
	MaxPartitions int
	Retention     time.Duration
	// Log nil means slog.Default().
	Log *slog.Logger
}

// Coordinator coordinates transactions. All methods may be called by many goroutines at once.
type Coordinator struct {
	cfg   Config // with its defaults
	table *mirror.Table[txn.Transaction]
	// weights are those of what the table holds.
	weights weights
	// work is decisions that are being carried out.
	work sync.WaitGroup

	mu      sync.Mutex
	under   map[string]*finishing // by id; guarded by mu, as are those that follow
	telling map[string]*telling   // of decisions that could not be carried out at once, by id
	ending  map[string]bool       // ids of which Run ends a transaction
	first   map[string]bool       // those that were due at the start, and were not tried yet
	stopped bool
}

// finishing is a decision that is being carried out.
type finishing struct {
	done chan struct{}
	err  error // set before done is closed
}

// May reports whether there is a right to Send to a hub.
type May func(hub string) bool

// New makes a coordinator; it starts nothing.
func New(cfg Config) (*Coordinator, error) {
	if cfg.Meta == nil || cfg.Broker == nil || cfg.Groups == nil {
		return nil, errors.New("make the coordinator of transactions: a meta store, a broker and groups are required")
	}
	cfg.MaxIDs = cmp.Or(cfg.MaxIDs, DefaultMaxIDs)
	cfg.MaxPartitions = cmp.Or(cfg.MaxPartitions, DefaultMaxPartitions)
	cfg.Retention = cmp.Or(cfg.Retention, DefaultRetention)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	if cfg.Mine == nil {
		cfg.Mine = func(string) bool { return true }
	}
	c := &Coordinator{cfg: cfg, under: make(map[string]*finishing), telling: make(map[string]*telling), ending: make(map[string]bool), first: make(map[string]bool)}
	c.table = mirror.New(mirror.Config[txn.Transaction]{
		Store: cfg.Meta, Prefix: prefix, Name: "transactions", Decode: decode, Encode: encode, Apply: c.hear, Log: cfg.Log,
	})
	return c, nil
}

// hear tells the broker what transactions write to, also those that other nodes coordinate.
func (c *Coordinator) hear(updates []mirror.Update[txn.Transaction]) {
	c.weights.follow(updates)
	for _, u := range updates {
		for _, p := range u.New.Value.Partitions {
			if u.New.Exists() {
				c.cfg.Broker.Transacted(p.Log, int(p.Number), eventlog.Sequence(p.From))
			}
		}
	}
}

func decode(e meta.Entry) (t txn.Transaction, err error) {
	if err = json.Unmarshal(e.Value, &t); err != nil {
		err = fmt.Errorf("read transaction %s: %w", e.Key, err)
	}
	return t, err
}

func encode(t txn.Transaction) []byte {
	raw, err := json.Marshal(t)
	if err != nil {
		panic(err) // there is nothing in it that JSON could not have
	}
	return raw
}

// keyOf is the key of a transactional id, which is any text.
func keyOf(id string) string { return prefix + url.PathEscape(id) }

func idOf(key string) (string, error) { return url.PathUnescape(strings.TrimPrefix(key, prefix)) }

func checkID(id string) error {
	if id == "" || len(id) > MaxIDBytes {
		return ErrInvalidID
	}
	return nil
}

// errSame: the transaction is as it is to be.
var errSame = errors.New("nothing to change")

// change lets a transaction be changed, again if somebody else was faster. What says that there is nothing to change, or
// that it cannot be, does so of what is stored now: of an older state it might be wrong. There is none: how is given the
// zero value.
func (c *Coordinator) change(ctx context.Context, id string, how func(txn.Transaction) (txn.Transaction, error)) (next txn.Transaction, err error) {
	if err := checkID(id); err != nil {
		return txn.Transaction{}, err
	}
	fresh := !c.cfg.Several
	err = mirror.Uncontested(ctx, func() error {
		for {
			item, err := c.read(ctx, id)
			if err != nil {
				return err
			}
			if next, err = how(item.Value); err == nil && item.Exists() && reflect.DeepEqual(next, item.Value) {
				err = errSame
			}
			if err != nil && !fresh {
				if err := c.table.Fresh(ctx, prefix); err != nil {
					return err
				}
				fresh = true
				continue
			}
			if errors.Is(err, errSame) {
				return nil
			}
			if err != nil {
				return err
			}
			_, err = c.table.Put(ctx, mirror.Item[txn.Transaction]{Key: keyOf(id), Revision: item.Revision, Value: next})
			return err
		}
	})
	if err != nil {
		return txn.Transaction{}, fmt.Errorf("transactional id %.80q: %w", id, err)
	}
	return next, nil
}

// read reads a transaction, as this process knows it; one that does not exist where there is none.
func (c *Coordinator) read(ctx context.Context, id string) (mirror.Item[txn.Transaction], error) {
	item, err := c.table.Read(ctx, keyOf(id))
	if errors.Is(err, meta.ErrNotFound) {
		return mirror.Item[txn.Transaction]{Key: keyOf(id)}, nil
	}
	return item, err
}

// known gives a transaction as it is stored now.
func (c *Coordinator) known(ctx context.Context, id string) (txn.Transaction, error) {
	if err := checkID(id); err != nil {
		return txn.Transaction{}, err
	}
	if c.cfg.Several {
		if err := c.table.Fresh(ctx, prefix); err != nil {
			return txn.Transaction{}, err
		}
	}
	item, err := c.read(ctx, id)
	if err == nil && !item.Exists() {
		err = ErrNotFound
	}
	return item.Value, err
}

// Init gives a transactional id to a producer, and says which it is. What others have begun is aborted before.
func (c *Coordinator) Init(ctx context.Context, id string, by txn.Claim, timeout time.Duration, may May) (txn.Claim, error) {
	account := accountOf(ctx)
	for range mirror.MaxTries {
		t, err := c.change(ctx, id, func(t txn.Transaction) (txn.Transaction, error) {
			fresh := c.cfg.Broker.NewProducerID()
			if t.State == "" {
				if by != txn.None {
					return t, txn.ErrProducer
				}
				if c.full(account) {
					return t, ErrTooMany
				}
				t, err := txn.New(fresh, timeout, time.Now())
				t.By = account
				return t, err
			}
			if err := c.theirs(ctx, t, may); err != nil {
				return t, err
			}
			return t.Init(by, timeout, fresh, time.Now())
		})
		if errors.Is(err, ErrTooMany) && c.makeRoom(ctx, account) {
			continue
		}
		if err != nil && !errors.Is(err, txn.ErrConcurrent) {
			return txn.None, err
		}
		if err == nil && !t.State.Decided() {
			return txn.Claim{Producer: t.Producer, Epoch: t.Epoch}, nil
		}
		if err := c.finish(ctx, id); err != nil {
			return txn.None, c.delayed(id, err)
		}
	}
	return txn.None, txn.ErrConcurrent
}

// delayed is the error of who finds a transaction that cannot be ended now.
func (c *Coordinator) delayed(id string, err error) error {
	c.cfg.Log.Warn("a transaction that is decided could not be ended yet; trying again", "transaction", id, "error", err)
	return txn.ErrConcurrent
}

// allowed refuses who has no right to hubs that the last transaction has written to: else a right to any hub would be
// enough to disturb the producers of others.
func (c *Coordinator) allowed(t txn.Transaction, may May) error {
	if may == nil {
		return nil
	}
	logs := make(map[string]bool)
	for _, log := range t.Logs {
		logs[log] = true
	}
	for _, p := range t.Partitions {
		logs[p.Log] = true
	}
	for log := range logs {
		if name := broker.HubOf(c.cfg.Broker, log); name != "" && !may(name) {
			return ErrRights
		}
	}
	return nil
}

// theirs refuses who may not change a transactional id. While it is about no hub, a right to one says nothing: it is
// whose account has made it.
func (c *Coordinator) theirs(ctx context.Context, t txn.Transaction, may May) error {
	if may != nil && len(t.Logs)+len(t.Partitions) == 0 && t.By != "" && t.By != accountOf(ctx) {
		return ErrRights
	}
	return c.allowed(t, may)
}

// AddPartitions makes partitions part of a producer's transaction. Rights to their hubs are the caller's to judge; to those
// that are part of it already, may says.
func (c *Coordinator) AddPartitions(ctx context.Context, id string, by txn.Claim, partitions []txn.Partition, may May) error {
	var all []txn.Partition
	known := make(map[Place]bool)
	for _, p := range partitions {
		if at := (Place{p.Log, p.Number}); !known[at] {
			known[at] = true
			all = append(all, p)
		}
	}
	if len(all) > txn.MaxPartitions {
		return txn.ErrTooLarge
	}
	for i, p := range all {
		name := broker.HubOf(c.cfg.Broker, p.Log)
		_, next, err := c.cfg.Broker.Span(ctx, name, strconv.Itoa(int(p.Number)))
		if err != nil {
			return err
		}
		all[i].From = int64(next)
	}
	_, err := c.add(ctx, id, by, all, "", may)
	return err
}

// AddGroup makes offsets of a group part of a producer's transaction, as AddPartitions does.
func (c *Coordinator) AddGroup(ctx context.Context, id string, by txn.Claim, group string, may May) error {
	if _, err := c.cfg.Groups.Stages.Of(group, ""); err != nil { // before it is stored: it could never be ended
		return err
	}
	if !utf8.ValidString(group) { // the entry, which is JSON, would have another name than the offsets
		return fmt.Errorf("%w, and is UTF-8 in a transaction", groups.ErrInvalidID)
	}
	t, err := c.add(ctx, id, by, nil, group, may)
	if err != nil {
		return err
	}
	stage, err := c.cfg.Groups.Stages.Of(group, name(id, t))
	if err != nil {
		return err
	}
	return stage.Open(ctx)
}

// name is that of one transaction of an id, fit for keys.
func name(id string, t txn.Transaction) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16]) + "-" + strconv.FormatInt(t.Number, 10)
}

func (c *Coordinator) add(ctx context.Context, id string, by txn.Claim, partitions []txn.Partition, group string, may May) (txn.Transaction, error) {
	for range mirror.MaxTries {
		t, err := c.change(ctx, id, func(t txn.Transaction) (txn.Transaction, error) {
			if t.State == "" {
				return t, txn.ErrProducer
			}
			if err := c.theirs(ctx, t, may); err != nil {
				return t, err
			}
			next, err := t.Add(by, partitions, group, time.Now())
			if err == nil && !c.weights.room(t.By, weight(next)-weight(t), c.cfg.MaxPartitions) {
				err = ErrTooManyPartitions
			}
			return next, err
		})
		if !errors.Is(err, txn.ErrConcurrent) {
			return t, err
		}
		if err := c.finish(ctx, id); err != nil {
			return t, c.delayed(id, err)
		}
	}
	return txn.Transaction{}, txn.ErrConcurrent
}

// StageOffsets adds positions of a group to a producer's transaction. It is for the group's coordinator.
func (c *Coordinator) StageOffsets(ctx context.Context, id string, by txn.Claim, group string, who groups.Committer, positions map[groups.Partition]groups.Position) error {
	t, err := c.known(ctx, id)
	if err == nil {
		err = t.TakesOffsets(by, group)
	}
	if errors.Is(err, ErrNotFound) {
		err = txn.ErrProducer
	}
	if err != nil {
		return err
	}
	stage, err := c.cfg.Groups.Stages.Of(group, name(id, t))
	if err != nil {
		return err
	}
	return stage.Put(ctx, who, positions)
}

// End decides what becomes of a producer's transaction, and carries that out. When it returns without an error the
// decision is durable; what could not be carried out yet will be.
func (c *Coordinator) End(ctx context.Context, id string, by txn.Claim, commit bool, may May) error {
	t, err := c.change(ctx, id, func(t txn.Transaction) (txn.Transaction, error) {
		if t.State == "" {
			return t, txn.ErrProducer
		}
		if err := c.theirs(ctx, t, may); err != nil {
			return t, err
		}
		return t.End(by, commit, time.Now())
	})
	if err != nil || !t.State.Decided() {
		return err
	}
	if err := c.finish(ctx, id); err != nil {
		_ = c.delayed(id, err)
	}
	return nil
}

// Verify says why a producer may not write to a partition in its transaction; nil: it may.
func (c *Coordinator) Verify(ctx context.Context, id string, by txn.Claim, log string, number int32) error {
	t, err := c.known(ctx, id)
	if errors.Is(err, ErrNotFound) {
		err = txn.ErrProducer
	}
	if err == nil {
		err = t.Takes(by, log, number)
	}
	return err
}

// Place is a partition of a hub, which is named by its log.
type Place struct {
	Log    string
	Number int32
}

// Open gives the partitions that transactions write to which are not decided there, or are but may not have been told,
// and for each a number below which nothing of them lies.
func (c *Coordinator) Open(ctx context.Context) (map[Place]eventlog.Sequence, error) {
	if c.cfg.Several {
		if err := c.table.Fresh(ctx, prefix); err != nil {
			return nil, err
		}
	}
	items, err := c.table.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	all := make(map[Place]eventlog.Sequence)
	for _, item := range items {
		for _, p := range item.Value.Partitions {
			at := Place{p.Log, p.Number}
			if from, known := all[at]; !known || eventlog.Sequence(p.From) < from {
				all[at] = eventlog.Sequence(p.From)
			}
		}
	}
	return all, nil
}

// Described is a transactional id for who looks at it.
type Described struct {
	ID string
	txn.Transaction
}

// Describe gives a transactional id to who has a right to its hubs.
func (c *Coordinator) Describe(ctx context.Context, id string, may May) (Described, error) {
	t, err := c.known(ctx, id)
	if err == nil {
		err = c.allowed(t, may)
	}
	return Described{id, t}, err
}

// List gives all transactional ids that there is a right to.
func (c *Coordinator) List(ctx context.Context, may May) ([]Described, error) {
	items, err := c.table.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var all []Described
	for _, item := range items {
		id, err := idOf(item.Key)
		if err == nil && c.allowed(item.Value, may) == nil {
			all = append(all, Described{id, item.Value})
		}
	}
	return all, nil
}

// finish carries a decision out, and waits for that as long as ctx allows. It goes on all the same. Who comes while it is
// under way waits for it.
func (c *Coordinator) finish(ctx context.Context, id string) error {
	c.mu.Lock()
	f := c.under[id]
	if f == nil {
		if c.stopped {
			c.mu.Unlock()
			return ErrStopping
		}
		f = &finishing{done: make(chan struct{})}
		c.under[id] = f
		c.work.Go(func() { c.carryOut(context.WithoutCancel(ctx), id, f) })
	}
	c.mu.Unlock()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Coordinator) carryOut(ctx context.Context, id string, f *finishing) {
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	f.err = c.conclude(ctx, id)
	c.mu.Lock()
	delete(c.under, id)
	c.mu.Unlock()
	close(f.done)
}

// errOver: the transaction was ended by somebody else.
var errOver = errors.New("the transaction was ended meanwhile")

// conclude tells all partitions and groups what was decided, and stores that they know.
func (c *Coordinator) conclude(ctx context.Context, id string) error {
	t, err := c.known(ctx, id)
	if err != nil || !t.State.Decided() {
		return err
	}
	check := func(ctx context.Context) error {
		now, err := c.known(ctx, id)
		if err == nil && (now.Number != t.Number || now.State != t.State) {
			err = errOver
		}
		return err
	}
	know, err := c.knowing(id, t)
	if err != nil {
		return err
	}
	commit := t.State == txn.PrepareCommit
	errs := make([]error, len(t.Partitions)+len(t.Groups))
	for i, group := range t.Groups {
		if know.groups[group] {
			continue
		}
		stage, err := c.cfg.Groups.Stages.Of(group, name(id, t))
		if err == nil {
			err = stage.Settle(ctx, commit)
		} else if errors.Is(err, groups.ErrInvalidID) {
			err = nil // there never was a stage of it
		}
		errs[len(t.Partitions)+i] = err
	}
	// Each try begins elsewhere, so that partitions that do not answer do not always come before others.
	begin := rand.IntN(len(t.Partitions) + 1)
	parallel.Each(len(t.Partitions), endsAtOnce, func(i int) {
		i = (begin + i) % len(t.Partitions)
		p := t.Partitions[i]
		if know.partitions[Place{p.Log, p.Number}] {
			return
		}
		errs[i] = c.cfg.Broker.EndTransaction(ctx, p.Log, int(p.Number), record.Marker(t.Producer, t.Epoch, commit, time.Now()), check)
	})
	if err := cmp.Or(errs...); err != nil {
		if slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, errOver) }) {
			c.forgetKnown(id)
			return nil
		}
		c.remember(id, know, t, errs)
		return err
	}
	_, err = c.change(ctx, id, func(now txn.Transaction) (txn.Transaction, error) {
		if now.Number != t.Number || now.State != t.State {
			return now, errSame
		}
		return now.Complete(time.Now()), nil
	})
	if err == nil {
		c.forgetKnown(id)
	} else {
		c.remember(id, know, t, errs)
	}
	return err
}
