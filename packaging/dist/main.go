// Command dist makes what people install: archives for each platform, packages for Debian and Red
// Hat, a container image, a Helm chart, a Homebrew formula, lists of what is inside, and checksums.
// The same commit, built with the same release of Go, gives the same bytes, wherever it is built.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("dist", flag.ExitOnError)
	source := flags.String("source", "..", "the clone of Eventyard to build")
	out := flags.String("out", "../dist", "the folder to write to: empty, or not there yet")
	version := flags.String("version", "", "the version, like 1.2.3 (default: what git describe says)")
	only := flags.String("only", "", "some of the platforms, like linux/amd64,darwin/arm64 (default: all)")
	licenses := flags.String("licenses", "", "make nothing but the licenses of what is in this program, and -out is their file")
	_ = flags.Parse(args) // which ends the process
	if *licenses != "" {
		return writeLicenses(ctx, *source, *licenses, *out)
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	r, err := newRelease(ctx, *source, *out, *version, chosen)
	if err != nil {
		return err
	}
	defer os.RemoveAll(r.stage)
	return r.make(ctx)
}

// platform is what a program is built for.
type platform struct{ os, arch string }

var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

func (p platform) String() string { return p.os + "/" + p.arch }

// choose reads a list of platforms; empty means all.
func choose(only string) ([]platform, error) {
	if only == "" {
		return platforms, nil
	}
	var chosen []platform
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(platforms, func(p platform) bool { return p.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("nothing is built for %q: choose from %v", name, platforms)
		}
		chosen = append(chosen, platforms[i])
	}
	return chosen, nil
}

// release is one version that is being made.
type release struct {
	source    string // the tree that it is built from
	out       string // where it goes
	stage     string // programs, manual pages and the like, until they are packed
	version   string // semantic, without v
	commit    string
	time      time.Time // of the commit: everything in a release has it
	platforms []platform
	// anew are compiled with a cache of their own, for tests: nothing that was compiled before serves them.
	anew  []platform
	cache string
}

func newRelease(ctx context.Context, source, out, version string, chosen []platform) (*release, error) {
	r := &release{version: version, platforms: chosen}
	var err error
	if r.source, err = filepath.Abs(source); err != nil {
		return nil, err
	}
	if r.out, err = filepath.Abs(out); err != nil {
		return nil, err
	}
	if found, _ := os.ReadDir(r.out); len(found) > 0 {
		return nil, fmt.Errorf("%s is not empty: remove it, or name another folder with -out", r.out)
	}
	if err := r.identify(ctx); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return nil, err
	}
	r.stage, err = os.MkdirTemp("", "eventyard-dist-")
	return r, err
}

// make makes everything, in the order in which one thing needs another.
func (r *release) make(ctx context.Context) error {
	fmt.Printf("eventyard %s of %s\n", r.version, r.time.Format(time.DateTime))
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"programs", r.programs},
		{"completions and manual pages", r.manuals},
		{"licenses and lists of materials", r.materials},
		{"archives", r.archives},
		{"packages", r.packages},
		{"image", r.image},
		{"chart", r.chart},
		{"formula", r.formula},
		{"checksums", r.checksums},
	} {
		began := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		fmt.Printf("  %-32s %6.1fs\n", step.what, time.Since(began).Seconds())
	}
	return nil
}

// linux are the chosen platforms that packages and images are made for.
func (r *release) linux() []platform {
	return slices.DeleteFunc(slices.Clone(r.platforms), func(p platform) bool { return p.os != "linux" })
}

// name is that of a file of the release: eventyard_1.2.3_linux_amd64.tar.gz.
func (r *release) name(p platform, end string) string {
	return fmt.Sprintf("eventyard_%s_%s_%s%s", r.version, p.os, p.arch, end)
}

// program is where the program for a platform is, until it is packed.
func (r *release) program(p platform) string {
	file := filepath.Join(r.stage, p.os+"_"+p.arch, "eventyard")
	if p.os == "windows" {
		file += ".exe"
	}
	return file
}

// staged is a file or folder of what is the same on all platforms.
func (r *release) staged(names ...string) string {
	return filepath.Join(append([]string{r.stage, "share"}, names...)...)
}
