package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

// circuitCommands are those of `eventyard circuit`.
type circuitCommands struct{ *cli }

func (c circuitCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "circuit", Short: "See and switch the circuit breakers of functions, wherever they run", Long: circuitHelp},
		c.list(), c.show(), c.setState("open"), c.setState("close"), c.notify())
}

const circuitHelp = `See and switch the circuit breakers of functions, those in programs of your own, too, if their store is the yard. A circuit is

  closed       events are handled
  open         too many failed: every instance stands still until somebody closes it, or a probe succeeds
  half-open    one instance tries one event
  held         an operator has stopped the function (eventyard circuit open, function pause), and only an operator ends it

While it is not closed nothing is lost: no checkpoint moves, and nothing more is put away.`

// circuitFlags say whose function is meant where its name alone does not.
type circuitFlags struct{ hub, group string }

func (f *circuitFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.hub, "hub", "", "`name` of its hub, where several groups have a function of that name")
	cmd.Flags().StringVar(&f.group, "group", "", "`name` of its group, likewise")
}

func (f *circuitFlags) which(name string) admin.CircuitRef {
	return admin.CircuitRef{Function: name, Hub: f.hub, Group: f.group}
}

func (c circuitCommands) list() *cobra.Command {
	var form output
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the circuits of all functions",
		Args:  wantArgs(),
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, _ []string) error {
			all, err := client.Circuits(cmd.Context())
			if err != nil {
				return err
			}
			if form == asJSON {
				return writeJSON(c.stdout, append([]admin.Circuit{}, all...))
			}
			return c.printCircuits(all)
		}),
	}
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

func (c circuitCommands) printCircuits(all []admin.Circuit) error {
	if len(all) == 0 {
		fmt.Fprintln(c.stderr, "there are no circuits: each function has one from its first trouble on, or since it was created in the yard")
		return nil
	}
	t := newTable(c.stdout, "FUNCTION", "HUB", "GROUP", "STATE", "SINCE", "FAILURES", "LAG", "WHY")
	for _, one := range all {
		since := "-"
		if one.Since != nil {
			since = showTime(*one.Since)
		}
		if one.Opened != nil { // probes are part of it
			since = showTime(*one.Opened)
		}
		t.row(one.Function, one.Hub, one.Group, one.State, since, strconv.Itoa(one.Failures), showWaiting(one.Lag), oneLine(one.Reason))
	}
	return t.flush()
}

func (c circuitCommands) show() *cobra.Command {
	var flags circuitFlags
	var form output
	cmd := &cobra.Command{
		Use:               "show FUNCTION",
		Short:             "Show a circuit with its failures",
		Args:              wantArgs("FUNCTION"),
		ValidArgsFunction: c.completeCircuits,
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			one, err := client.Circuit(cmd.Context(), flags.which(args[0]))
			if err != nil {
				return err
			}
			if form == asJSON {
				return writeJSON(c.stdout, one)
			}
			return printCircuit(c.stdout, one)
		}),
	}
	flags.addTo(cmd)
	form.addTo(cmd)
	completeFlags(cmd, c.completeHubs, "hub")
	return c.addClientFlags(cmd)
}

func printCircuit(w io.Writer, one admin.Circuit) error {
	p := newEntries(w)
	p.add("function", "%s, of hub %s, as group %s", one.Function, one.Hub, one.Group)
	addCircuit(p, one.CircuitState)
	if one.Opened != nil {
		p.add("opened", "%s", showTime(*one.Opened))
	}
	p.add("failures", "%s, %s since its instances started", showFailures(one.Failures, one.State), thousands(one.Total))
	for _, instance := range sortedKeys(one.Instances) {
		p.add("", "%s  %s", oneLine(instance), thousands(one.Instances[instance]))
	}
	p.add("lag", "%s", showWaiting(one.Lag))
	return p.w.Flush()
}

// circuitSwitchCommand opens or closes.
func (c circuitCommands) setState(what string) *cobra.Command {
	var flags circuitFlags
	var reason string
	var form output
	short := map[string]string{
		"open":  "Stop a function in every instance, until its circuit is closed",
		"close": "Let a function go on in every instance, each from its checkpoint",
	}[what]
	cmd := &cobra.Command{
		Use:               what + " FUNCTION",
		Short:             short,
		Example:           "  eventyard circuit " + what + " billing\n  eventyard circuit " + what + " billing --hub orders --group billing --reason 'the database is being moved'",
		Args:              wantArgs("FUNCTION"),
		ValidArgsFunction: c.completeCircuits,
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			change := client.OpenCircuit
			if what == "close" {
				change = client.CloseCircuit
			}
			one, err := change(cmd.Context(), flags.which(args[0]), reason)
			if err != nil {
				return err
			}
			if form == asJSON {
				return writeJSON(c.stdout, one)
			}
			_, err = fmt.Fprintf(c.stdout, "the circuit of %s is %s\n", one.Function, one.State)
			return err
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for others to see")
	flags.addTo(cmd)
	form.addTo(cmd)
	completeFlags(cmd, c.completeHubs, "hub")
	return c.addClientFlags(cmd)
}

func (c circuitCommands) notify() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "notify-test TARGET",
		Short:   "Send a test notice, to try the settings of mail and webhooks",
		Example: "  eventyard circuit notify-test mailto:ops@example.com",
		Args:    wantArgs("TARGET"),
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			if err := client.TestNotice(cmd.Context(), args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.stdout, "sent a test notice to %s\n", oneLine(args[0]))
			return err
		}),
	}
	return c.addClientFlags(cmd)
}
