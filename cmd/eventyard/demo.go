package main

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/demo"
	"github.com/spf13/cobra"
)

const demoHelp = `Run a whole scenario on this machine: a hundred thousand homes whose sensors report once a
minute, a yard, five consumers that add the reports up into blobs, webhooks for alarms, a
function that scores what is odd, and a page on which a resident watches a home.

Every program is a process of its own. Kill consumers, add some, break a webhook, poison the
stream, kill the yard itself, on the page that is printed or by keys: the books say at any time
what became of every reading that was acknowledged. They are shown at the end, too, and where
they do not balance the command fails.

All of it is in a temporary folder, and gone when it ends. Where this machine is too slow for so
many homes, the command says so and goes on with half of them.`

// demoCommand is `eventyard demo`.
type demoCommand struct{ *cli }

func (c demoCommand) command() *cobra.Command {
	cfg := demo.Config{Out: c.stdout, In: c.stdin}
	var levers string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a scenario with things to break, and books that balance",
		Long:  demoHelp,
		Example: `  eventyard demo
  eventyard demo --homes 10000 --lease 5s
  eventyard demo --for 60s --levers kill,co,webhook,poison,circuit,plug`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if levers != "" {
				cfg.Levers = strings.Split(levers, ",")
			}
			if err := cfg.Check(); err != nil {
				return usagef(cmd, "%w", err)
			}
			var err error
			if cfg.Program, err = os.Executable(); err != nil {
				return err
			}
			return demo.Run(cmd.Context(), cfg)
		},
	}
	f := cmd.Flags()
	f.IntVar(&cfg.Homes, "homes", 100_000, "how many homes report")
	addDuration(f, &cfg.Every, "every", time.Minute, "how often each home reports, and how long an aggregate is")
	f.IntVar(&cfg.Consumers, "consumers", 5, "how many consumers there are at first")
	addDuration(f, &cfg.Lease, "lease", 30*time.Second, "how long a dead consumer keeps its partitions")
	f.StringVar(&cfg.Blobs, "blobs", "", "write aggregates to the account of this `connection string`, and not to the yard")
	f.StringVar(&cfg.Keep, "keep", "", "keep data and logs in this `folder`, which is empty or not there yet")
	addDuration(f, &cfg.For, "for", 0, "end after this time; without it Ctrl-C ends it")
	f.StringVar(&levers, "levers", "", "pull these levers by and by: `"+strings.Join(demo.Levers(), ",")+"`")
	f.StringVar(&cfg.Listen, "listen", "127.0.0.1:8090", "`address` of the pages with levers and residents' homes")
	f.StringVar(&cfg.HTTP, "http", "127.0.0.1:8080", "`address` of the yard's HTTP listener; another one if it is taken")
	f.StringVar(&cfg.AMQP, "amqp", "127.0.0.1:5672", "`address` of the yard's AMQP listener; another one if it is taken")
	cmd.AddCommand(
		c.part("gateway", "Send what homes report", demo.Gateway),
		c.part("consumer", "Add up what homes report", demo.Consumer),
		c.part("watcher", "Remember the newest of every home", demo.Watcher),
	)
	return cmd
}

// part is a process that the demo starts by itself.
func (c demoCommand) part(name, short string, run func(context.Context, io.Reader, io.Writer) error) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), c.stdin, c.stdout) },
	}
}
