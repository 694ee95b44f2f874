package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// Config is what the demo runs with. All fields but Blobs, Keep, For and Levers are needed.
type Config struct {
	Program   string        // the program that children are started from
	Homes     int           // how many report
	Every     time.Duration // how often each does
	Lease     time.Duration // how long a dead consumer keeps its partitions
	Consumers int           // at first
	Listen    string        // where the demo's own pages are
	HTTP      string        // where the yard's HTTP listener should be, and its AMQP listener
	AMQP      string
	Blobs     string        // connection string of an account for aggregates; empty: the yard's own
	Keep      string        // folder for data and logs, which stays; empty: a temporary one
	For       time.Duration // 0: until ctx ends
	Levers    []string      // to be pulled in this order

	In  io.Reader // keys, if it is a terminal
	Out io.Writer // the view
}

// Check tells what is wrong with a configuration.
func (c Config) Check() error {
	switch {
	case c.Homes < 1 || c.Homes > 1_000_000:
		return errors.New("--homes is 1 to 1000000")
	case c.Every < time.Second || c.Every > time.Hour || c.Every%time.Second != 0:
		return errors.New("--every is whole seconds, 1s to 1h")
	case c.Lease < time.Second || c.Lease > 10*time.Minute:
		return errors.New("--lease is 1s to 10m")
	case c.Consumers < 1 || c.Consumers > sensorPartitions:
		return fmt.Errorf("--consumers is 1 to %d, the number of partitions", sensorPartitions)
	case c.For < 0:
		return errors.New("--for is a time like 60s")
	}
	return checkLevers(c.Levers)
}

// watchers is how many processes watch for residents.
const watchers = 2

// ErrUnbalanced: something was lost, or counted twice.
var ErrUnbalanced = errors.New("the books do not balance: run it again with --keep FOLDER, and look at the logs there")

// demo is the parent.
type demo struct {
	cfg     Config
	dir     string
	called  time.Time // when the command was
	started time.Time // when all was there
	yard    *yard
	client  *admin.Client
	desk    *desk
	url     string // of the desk and the pages
	ledger  *ledger
	staff   *staff
	audit   *auditor
	trials  trials
	journal journal
	machine machine
	flow    flow
	board   atomic.Pointer[Board]
	last    *Board             // before the consumers left; for the last words
	quit    context.CancelFunc // ends the run as its time would
	restart sync.WaitGroup     // of a yard whose plug was pulled

	poisonings atomic.Int64 // events sent that the scorer cannot take

	gate   sync.RWMutex // held for reading while a lever is pulled
	ending bool         // no lever can be pulled any more
}

// Run runs the demo until its time is over or ctx ends, and then shows the books. ErrUnbalanced where
// they do not balance.
func Run(ctx context.Context, cfg Config) error {
	dir, remove, err := folder(cfg.Keep)
	if err != nil {
		return err
	}
	defer remove()
	d := &demo{cfg: cfg, dir: dir, called: time.Now(), started: time.Now(), desk: &desk{}, ledger: newLedger(time.Now())}
	fmt.Fprintf(cfg.Out, "starting a yard, %s, %d watchers and a gateway for %s homes\n", consumersWord(cfg.Consumers), watchers, thousands(cfg.Homes))
	ctx, d.quit = context.WithCancel(ctx)
	defer d.quit()
	stop, err := d.open(ctx)
	defer stop()
	if err != nil {
		return err
	}
	return d.run(ctx)
}

// folder gives an empty folder, and what removes it.
func folder(keep string) (dir string, remove func(), err error) {
	if keep == "" {
		dir, err = os.MkdirTemp("", "eventyard-demo-")
		return dir, func() { _ = os.RemoveAll(dir) }, err
	}
	dir, err = filepath.Abs(keep)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return "", nil, err
	}
	if found, err := os.ReadDir(dir); err != nil || len(found) > 0 {
		return "", nil, errors.Join(fmt.Errorf("%s is not empty: each run needs a folder of its own", dir), err)
	}
	return dir, func() {}, nil
}

// open starts everything. What it gives ends all of it, also after an error.
func (d *demo) open(ctx context.Context) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, s := range slices.Backward(stops) {
			s()
		}
	}
	l, err := net.Listen("tcp", d.cfg.Listen)
	if err != nil {
		return stop, fmt.Errorf("%w\n  --listen 127.0.0.1:0 takes any port that is free", err)
	}
	d.url = "http://" + l.Addr().String()
	mux := http.NewServeMux()
	if err := d.desk.routes(mux); err != nil {
		return stop, err
	}
	d.pages(mux)
	stops = append(stops, serve(l, mux))

	d.yard = newYard(d.cfg.Program, d.dir, d.cfg.HTTP, d.cfg.AMQP)
	stops = append(stops, d.yard.stop)
	if err := d.yard.start(ctx); err != nil {
		return stop, err
	}
	if d.client, err = d.yard.client(); err != nil {
		return stop, err
	}
	s, err := furnish(ctx, d.client, d.cfg, d.url)
	if err != nil {
		return stop, err
	}
	storage, err := openStorage(s)
	if err != nil {
		return stop, err
	}
	if err := storage.create(ctx); err != nil {
		return stop, fmt.Errorf("create the container %s: %w", s.Container, err)
	}
	d.audit = &auditor{storage: storage, client: d.client, began: d.started, settled: map[string]map[page]int64{}}
	d.staff = &staff{program: d.cfg.Program, dir: d.dir, settings: s, ledger: d.ledger}
	stops = append(stops, func() { d.staff.leave(20 * time.Second) })
	if err := d.staff.begin(d.cfg.Consumers, watchers); err != nil {
		return stop, err
	}
	return stop, d.staff.await(ctx)
}

// run shows what happens until the time is over, then closes the books.
func (d *demo) run(ctx context.Context) error {
	d.started = time.Now()
	d.observe(ctx)
	view := newView(d)
	var parts sync.WaitGroup
	watching, rest := context.WithCancel(context.WithoutCancel(ctx)) // goes on while the books are closed
	parts.Go(func() { d.watch(watching) })
	parts.Go(func() { view.run(watching) })
	missed := d.perform(ctx)
	d.journal.note(time.Now(), "no more is sent; the books are closed when everything has arrived")
	books, err := d.close(watching)
	rest()
	parts.Wait()
	d.conclude(books, err)
	switch {
	case err != nil:
		return err
	case !books.balanced():
		return ErrUnbalanced
	}
	return missed
}

// perform pulls the levers that were asked for, and waits for the end. It says which of them could not be pulled, or
// not any more.
func (d *demo) perform(ctx context.Context) (missed error) {
	if d.cfg.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.cfg.For)
		defer cancel()
	}
	for _, step := range script(d.cfg.Levers, d.cfg.For) {
		select {
		case <-time.After(time.Until(d.started.Add(step.after))):
		case <-ctx.Done():
			return errors.Join(missed, fmt.Errorf("the demo ended before the lever %s was pulled: give it more time by --for", step.lever))
		}
		if err := d.pull(context.WithoutCancel(ctx), step.lever, ""); err != nil {
			d.journal.note(time.Now(), fmt.Sprintf("%s: %v", step.lever, err))
			missed = errors.Join(missed, fmt.Errorf("the lever %s could not be pulled: %w", step.lever, err))
		}
	}
	<-ctx.Done()
	return missed
}

// patience is how long the demo waits at its end for what is on its way.
const patience = 10 * time.Minute

// close has everything come to rest: no more is sent, everything is read, and every period has its
// blob. Then it counts.
func (d *demo) close(ctx context.Context) (Books, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("events are still on their way, or the yard does not answer"))
	defer cancel()
	d.gate.Lock() // waits for levers that are being pulled
	d.ending = true
	d.gate.Unlock()
	d.restart.Wait()
	if len(d.staff.working()) == 0 {
		if _, err := d.staff.addConsumer(); err != nil {
			return Books{}, err
		}
	}
	if err := d.until(ctx, "what the levers did", d.settled); err != nil {
		return Books{}, err
	}
	d.mend(ctx)
	d.staff.orderGateway(order{Finish: true})
	if err := d.until(ctx, "the last reports", func(context.Context) bool { return d.ledger.hasEnded() }); err != nil {
		return Books{}, err
	}
	d.staff.orderConsumers(order{Finish: true})
	if err := d.until(ctx, "the consumers", d.atRest); err != nil {
		return Books{}, err
	}
	d.last = d.board.Load()
	d.staff.leave(20 * time.Second)
	h, err := d.audit.read(ctx)
	if err != nil {
		return Books{}, err
	}
	sent, twice := d.ledger.counts()
	return finalBooks(sent, h, twice), nil
}

// atRest tells whether every event is in a finished blob.
func (d *demo) atRest(ctx context.Context) bool {
	h, err := d.audit.look(ctx)
	return err == nil && h.drained() && len(h.open) == 0
}

// settled tells whether everything that levers were pulled for was seen.
func (d *demo) settled(context.Context) bool {
	b := d.board.Load()
	return !slices.ContainsFunc(b.Trials, func(t Trial) bool { return !t.Done })
}

// until waits for something.
func (d *demo) until(ctx context.Context, what string, is func(context.Context) bool) error {
	for !is(ctx) {
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		}
	}
	return nil
}

// conclude writes the last words.
func (d *demo) conclude(books Books, err error) {
	b, out := d.last, d.cfg.Out
	if err != nil {
		fmt.Fprintf(out, "the books are not closed: %s\n", d.board.Load().Books)
		return
	}
	for _, t := range b.Trials {
		fmt.Fprintf(out, "%-8s %s\n", t.Lever, t.Text)
	}
	if after, ok := d.ledger.firstShown(d.called); ok {
		fmt.Fprintf(out, "the first home was on its page %s after the command\n", seconds(after))
	}
	fmt.Fprintf(out, "%s homes, %s events a second promised, %.0f %% reached\n%s\n",
		thousands(b.Rate.Homes), thousands(int64(b.Rate.Promised)), 100*b.Rate.Reached, books)
	if d.cfg.Keep != "" {
		fmt.Fprintf(out, "data and logs are in %s\n", d.dir)
	}
	if books.balanced() {
		fmt.Fprintln(out, "The books balance.")
	}
}
