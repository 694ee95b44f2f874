package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/test/bench/measure"
)

// options are the command line.
type options struct {
	only       []string
	cluster    bool
	period     time.Duration
	rounds     int
	dir        string
	startBytes int64
	write      string
	profile    string
}

// measurement is one chapter of the report.
type measurement struct {
	name string
	run  func(ctx context.Context, b *bench) error
	// apart: it has a place of its own in the document, and is measured when it is named.
	apart bool
}

// measurements are all there are of one machine or of several nodes, in the order of the report.
func measurements(cluster bool) []measurement {
	if cluster {
		return clusterMeasurements()
	}
	return []measurement{
		{name: "append-always", run: measureAppendAlways},
		{name: "append-os", run: measureAppendOS},
		{name: "read", run: measureRead},
		{name: "singles", run: measureSingles},
		{name: "allocations", run: measureAllocations},
		{name: "layouts", run: measureLayouts},
		{name: "jetstream", run: measureJetStream},
		{name: "start", run: measureStart},
		{name: "ingest", run: measureIngest},
		{name: "egress", run: measureEgress},
		{name: "listener", run: measureListener},
		{name: "processor", run: measureProcessor},
		{name: "balance", run: measureBalance},
		{name: "grid", run: measureGrid},
		{name: "grid-scale", run: measureGridScale},
		{name: "functions", run: measureFunctions},
		{name: "latency", run: measureLatency},
		{name: "connections", run: measureConnections},
		{name: "traces", run: measureTraces, apart: true},
	}
}

// bench is one run of the program.
type bench struct {
	options
	report report
	stderr io.Writer
	folder string // the run's own, removed at its end
	used   int    // folders made in it
	built  string // the yard's program, once it is built
}

// run is the whole program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	opts, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	chosen, err := choose(opts.only, opts.cluster)
	if err != nil {
		return err
	}
	// The yard's program runs in a folder of its own, from which a relative path leads elsewhere.
	if opts.dir, err = filepath.Abs(opts.dir); err != nil {
		return err
	}
	// The suffix keeps the folder out of version control when it is made in the repository.
	folder, err := os.MkdirTemp(opts.dir, "bench-*.out")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	b := &bench{options: opts, stderr: stderr, folder: folder}
	b.report.about = slices.Concat([]string{"Date: " + time.Now().UTC().Format(time.DateOnly)}, measure.Machine(folder),
		[]string{fmt.Sprintf("Run: %d rounds of %s each; medians, with the least and the most beside them", opts.rounds, opts.period)})
	if err := b.measure(ctx, chosen); err != nil {
		return err
	}
	text := b.report.markdown()
	fmt.Fprint(stdout, text)
	if opts.write != "" {
		return measure.ReplaceMarked(opts.write, opts.mark(), text)
	}
	return nil
}

func (b *bench) measure(ctx context.Context, chosen []measurement) error {
	if b.profile != "" {
		f, err := os.Create(b.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	for _, m := range chosen {
		if err := m.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// progress tells the person in front of the screen what is going on.
func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(b.stderr, format+"\n", args...)
}

func parse(args []string, stderr io.Writer) (options, error) {
	var (
		o       options
		only    string
		seconds float64
		gib     float64
		quick   bool
	)
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&only, "only", "", "measure these alone, separated by commas: "+strings.Join(names(false), ", ")+
		"; with -cluster "+strings.Join(names(true), ", "))
	flags.BoolVar(&o.cluster, "cluster", false, "measure a yard of several nodes on three NATS servers")
	flags.Float64Var(&seconds, "seconds", 3, "how long each measurement works")
	flags.IntVar(&o.rounds, "rounds", 3, "how often each is measured; the median is shown")
	flags.StringVar(&o.dir, "dir", ".", "where to write; has to be on a real disk for the figures to mean anything")
	flags.Float64Var(&gib, "start-gib", 0, "data to start with, in GiB; 0 means 10, or 2 where there is little room")
	flags.StringVar(&o.write, "write", "", "also put the result between the marks in this file")
	flags.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of all that is measured to this file")
	flags.BoolVar(&quick, "quick", false, "a short run, to see that everything works")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	if quick {
		seconds, o.rounds, gib = 0.3, 1, 0.25
	}
	if seconds <= 0 || o.rounds < 1 || gib < 0 {
		return o, errors.New("-seconds and -rounds have to be positive, -start-gib not negative")
	}
	if o.write != "" && len(o.only) > 0 && o.apart() == "" {
		return o, errors.New("-write keeps the figures of one whole run: leave out -only, or name one that has a place of its own")
	}
	o.period = time.Duration(seconds * float64(time.Second))
	o.startBytes = int64(gib * (1 << 30))
	return o, nil
}

// mark names the place of the result in a document.
func (o options) mark() string {
	switch {
	case o.cluster:
		return "bench cluster"
	case o.apart() != "":
		return "bench " + o.apart()
	}
	return "bench"
}

// apart is the one measurement that was named, if it has a place of its own.
func (o options) apart() string {
	for _, m := range measurements(o.cluster) {
		if m.apart && len(o.only) == 1 && o.only[0] == m.name {
			return m.name
		}
	}
	return ""
}

func names(cluster bool) []string {
	var all []string
	for _, m := range measurements(cluster) {
		all = append(all, m.name)
	}
	return all
}

// choose picks measurements by name; no names mean all but those apart.
func choose(only []string, cluster bool) ([]measurement, error) {
	all := measurements(cluster)
	if len(only) == 0 {
		return slices.DeleteFunc(all, func(m measurement) bool { return m.apart }), nil
	}
	for _, name := range only {
		if !slices.Contains(names(cluster), name) {
			return nil, fmt.Errorf("no measurement %q: there are %s", name, strings.Join(names(cluster), ", "))
		}
	}
	return slices.DeleteFunc(all, func(m measurement) bool { return !slices.Contains(only, m.name) }), nil
}
