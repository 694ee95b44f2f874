package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/spf13/cobra"
)

// run is the whole program: it carries out one command line and returns its error.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	c := &cli{stdin: stdin, stdout: stdout, stderr: stderr}
	root := c.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !c.began {
		// What cobra finds wrong before a command begins is the command line.
		return &usageError{command: cmd.CommandPath(), err: err}
	}
	return withNext(cmd, err)
}

// cli is what the commands share. Each family of commands is a type of its own over it, in the file
// of its name.
type cli struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	server     string // --server
	connection string // --connection-string
	ca         string // --ca
	context    string // --context
	addressed  bool   // a context says where the yard is
	began      bool   // the command line was understood
}

// keepOrder makes help list commands as they were added, which is the order of their use.
// It is a variable of cobra's, for the whole process.
var keepOrder = sync.OnceFunc(func() { cobra.EnableCommandSorting = false })

func (c *cli) root() *cobra.Command {
	keepOrder()
	root := &cobra.Command{
		Use:           "eventyard",
		Short:         "An event broker in one program",
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       thisBuild().Version,
	}
	root.SetIn(c.stdin)
	root.SetOut(c.stdout) // before there is a completion command, which remembers it
	root.SetErr(c.stderr)
	root.SetVersionTemplate("eventyard {{.Version}}\n")
	root.SetFlagErrorFunc(explainFlag)
	holdOnly(root)
	root.SetUsageTemplate(usageTemplate)
	root.AddGroup(
		&cobra.Group{ID: "yard", Title: "The yard:"},
		&cobra.Group{ID: "hubs", Title: "Hubs and groups:"},
		&cobra.Group{ID: "events", Title: "Events:"},
		&cobra.Group{ID: "grid", Title: "Topics and webhooks:"},
		&cobra.Group{ID: "functions", Title: "Functions:"},
		&cobra.Group{ID: "access", Title: "Access:"},
		&cobra.Group{ID: "more", Title: "More:"},
	)
	root.SetCompletionCommandGroupID("more")
	add := func(group string, commands ...*cobra.Command) {
		for _, cmd := range commands {
			cmd.GroupID = group
			root.AddCommand(cmd)
		}
	}
	backups := backupCommands{c}
	add("yard", serveCommand{c}.command(), demoCommand{c}.command(), doctorCommand{c}.command(), storageCommands{c}.command(), clusterCommands{c}.command(), c.statusCommand(), c.seriesCommand(), activityCommand{c}.command(), configCommands{c}.command(), backups.command(), backups.restore(), backups.copy())
	add("hubs", hubCommands{c}.command(), groupCommands{c}.command(), checkpointCommands{c}.command())
	add("events", sendCommand{c}.command(), readCommand{c}.command(), eventCommands{c}.command())
	add("grid", topicCommands{c}.command(), subscriptionCommands{c}.command(), deadCommands{c}.command(), c.listenCommand())
	add("functions", functionCommands{c}.command(), circuitCommands{c}.command(), poisonCommands{c}.command())
	add("access", policyCommands{c}.command(), connectionCommand{c}.command(), connectionCommands{c}.command(), blobCommands{c}.command(), certCommands{c}.command(), secretsCommands{c}.command(), contextCommands{c}.command())
	help := helpCommand()
	add("more", help, c.versionCommand(), manualCommand())
	root.SetHelpCommand(help)
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Short = "Print a script that completes commands in your shell"
		holdOnly(completion).Args = knownShell
	}
	c.prepare(root)
	return root
}

// prepare makes every command take the arguments that its line of usage names, and note when it
// begins: what goes wrong before that is the command line.
func (c *cli) prepare(cmd *cobra.Command) {
	if body := cmd.RunE; body != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			c.began = true
			return body(cmd, args)
		}
		if cmd.Args == nil {
			cmd.Args = wantArgs
		}
	}
	for _, member := range cmd.Commands() {
		c.prepare(member)
	}
}

// usageError: the command line is wrong, and nothing was done.
type usageError struct {
	command string // whose help tells more
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

func usagef(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{command: cmd.CommandPath(), err: fmt.Errorf(format, args...)}
}

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	// exitUndelivered: an event was found, and not everybody has it who should.
	exitUndelivered = 3
	// exitInterrupted is what shells say of programs that Ctrl-C has ended.
	exitInterrupted = 130
)

// servesUntilStopped tells whether a command is meant to run until it is told to stop, so that it has
// done all of its work then.
func servesUntilStopped(args []string) bool {
	return len(args) > 0 && slices.Contains([]string{"serve", "demo", "listen"}, args[0])
}

// report prints an error, with what to try next on a line of its own, and gives the
// exit code that says the same.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	code := exitFailure
	var usage *usageError
	if errors.As(err, &usage) {
		code = exitUsage
	}
	if errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled) {
		code = exitInterrupted
	}
	if errors.Is(err, errUndelivered) {
		return exitUndelivered
	}
	if errors.Is(err, errReported) {
		return code
	}
	fmt.Fprintf(stderr, "%s %v\n", newPaint(stderr).red("error:"), err)
	if next := nextFor(err); next != "" {
		fmt.Fprintf(stderr, "  %s\n", next)
	}
	return code
}
