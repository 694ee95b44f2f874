package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/test/bench/measure"
)

// options are the command line.
type options struct {
	only, peers []string
	period      time.Duration
	rounds      int
	partitions  int
	// warm is how many events each server is sent and asked for before the first round.
	warm  int64
	dir   string
	write string
	quick bool
}

// chapter is a part of the race, with its own tables.
type chapter struct {
	name string
	run  func(ctx context.Context, b *bench) error
}

// chapters are all there are, in the order of the report.
var chapters = []chapter{
	{"kafka", raceKafka},
	{"java", raceJava},
	{"amqp", raceAMQP},
	{"own", raceOwn},
	{"start", raceStart},
}

// kinds are the servers that can be chosen.
var kinds = []string{"yard", "sink", "kafka", "artemis", "rabbitmq", "nats", "redis"}

// bench is one run of the program.
type bench struct {
	options
	report  report
	stderr  io.Writer
	folder  string      // the run's own, removed at its end
	trusted *tls.Config // of the certificate that all servers have
	topics  int         // made so far
	// out are the guests that have failed.
	out map[peer]bool
}

// run is the whole program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	opts, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	// Servers run in folders of their own, from which a relative path leads elsewhere.
	if opts.dir, err = filepath.Abs(opts.dir); err != nil {
		return err
	}
	// The suffix keeps the folder out of version control when it is made in the repository.
	folder, err := os.MkdirTemp(opts.dir, "peers-*.out")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	b := &bench{options: opts, stderr: stderr, folder: folder}
	if b.trusted, err = b.makeCertificate(); err != nil {
		return err
	}
	began := time.Now()
	took, err := b.runChapters(ctx)
	b.report.about = slices.Concat([]string{"Date: " + time.Now().UTC().Format(time.DateOnly)}, measure.Machine(folder),
		[]string{fmt.Sprintf("Run: %d rounds of %s each, %s in all (%s); medians, with the least and the most beside them",
			opts.rounds, opts.period, time.Since(began).Round(time.Second), strings.Join(took, ", "))})
	text := b.report.markdown()
	fmt.Fprint(stdout, text) // of a run that failed what it has come to
	if err == nil && opts.write != "" {
		return measure.ReplaceMarked(opts.write, "bench peers", text)
	}
	return err
}

// runChapters runs those that were chosen, and tells how long each took.
func (b *bench) runChapters(ctx context.Context) (took []string, err error) {
	for _, c := range chapters {
		if len(b.only) > 0 && !slices.Contains(b.only, c.name) {
			continue
		}
		b.progress("chapter %s", c.name)
		began := time.Now()
		err := c.run(ctx, b)
		took = append(took, fmt.Sprintf("%s %s", c.name, time.Since(began).Round(time.Second)))
		if err != nil {
			return took, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return took, nil
}

func parse(args []string, stderr io.Writer) (options, error) {
	var (
		o           options
		only, peers string
		seconds     float64
	)
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&only, "only", "", "race these chapters alone, separated by commas: "+strings.Join(chapterNames(), ", "))
	flags.StringVar(&peers, "peers", "", "race these servers alone, separated by commas: "+strings.Join(kinds, ", "))
	flags.Float64Var(&seconds, "seconds", 1.5, "how long each measurement works")
	flags.IntVar(&o.rounds, "rounds", 5, "how often each is measured, but where 1 and 128 partitions are raced; the median is shown")
	flags.IntVar(&o.partitions, "partitions", 16, "partitions of each Kafka topic, but where 1 and 128 are raced as well")
	flags.StringVar(&o.dir, "dir", ".", "where to write; has to be on a real disk for the figures to mean anything")
	flags.StringVar(&o.write, "write", "", "also put the result between the marks in this file")
	flags.BoolVar(&o.quick, "quick", false, "a short run, to see that everything works: one round of 0.3 s, unless -rounds and -seconds say otherwise")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	o.warm = 600_000
	if o.quick {
		given := map[string]bool{}
		flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
		if !given["seconds"] {
			seconds = 0.3
		}
		if !given["rounds"] {
			o.rounds = 1
		}
		o.warm = 2_000
	}
	if seconds <= 0 || o.rounds < 1 || o.partitions < 1 {
		return o, errors.New("-seconds, -rounds and -partitions have to be positive")
	}
	o.period = time.Duration(seconds * float64(time.Second))
	var err error
	if o.only, err = chosen("chapter", only, chapterNames()); err != nil {
		return o, err
	}
	if o.peers, err = chosen("server", peers, kinds); err != nil {
		return o, err
	}
	if o.write != "" && (len(o.only) > 0 || len(o.peers) > 0) {
		return o, errors.New("-write keeps the figures of one whole run: leave out -only and -peers")
	}
	return o, nil
}

func chapterNames() (all []string) {
	for _, c := range chapters {
		all = append(all, c.name)
	}
	return all
}

// chosen splits a list of names, all of which there have to be.
func chosen(what, list string, all []string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	names := strings.Split(list, ",")
	for _, name := range names {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("no %s %q: there are %s", what, name, strings.Join(all, ", "))
		}
	}
	return names, nil
}

// wants tells whether a kind of server takes part.
func (o options) wants(kind string) bool { return len(o.peers) == 0 || slices.Contains(o.peers, kind) }

// progress tells the person in front of the screen what is going on.
func (b *bench) progress(format string, args ...any) { fmt.Fprintf(b.stderr, format+"\n", args...) }

// leaveOut notes in the report who is missing, and why.
func (b *bench) leaveOut(name string, why error) {
	b.progress("  without %s: %v", name, why)
	b.report.leaveOut(name, why)
}
