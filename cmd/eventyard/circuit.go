package main

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

// circuitCommands are those of `eventyard circuit`.
type circuitCommands struct{ *cli }

func (c circuitCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "circuit", Short: "See and switch the circuit breakers of functions, wherever they run", Long: circuitHelp},
		c.list(), c.show(), c.history(), c.setState("open"), c.setState("close"), c.notify())
}

const circuitHelp = `See and switch the circuit breakers of functions, those in programs of your own, too, if their store is the yard. A circuit is

  closed       events are handled
  open         too many failed: every instance stands still until somebody closes it, or a probe succeeds
  half-open    one instance tries one event
  held         an operator has stopped the function (eventyard circuit open, function pause), and only an operator ends it

While it is not closed nothing is lost: no checkpoint moves, and nothing more is put away.`

// circuitFlags say whose function is meant where its name alone does not.
type circuitFlags struct{ hub, group string }

func (c circuitCommands) addCircuitFlags(cmd *cobra.Command, f *circuitFlags) {
	cmd.Flags().StringVar(&f.hub, "hub", "", "`name` of its hub, where several groups have a function of that name")
	cmd.Flags().StringVar(&f.group, "group", "", "`name` of its group, likewise")
}

func (f circuitFlags) which(name string) admin.CircuitRef {
	return admin.CircuitRef{Function: name, Hub: f.hub, Group: f.group}
}

func (c circuitCommands) list() *cobra.Command {
	return listing(c.cli, &cobra.Command{Use: "list", Short: "List the circuits of all functions"},
		func(cmd *cobra.Command, client *admin.Client, _ []string) ([]admin.Circuit, error) {
			return client.Circuits(cmd.Context())
		}, "there are no circuits: each function has one from its first trouble on, or since it was created in the yard",
		[]string{"FUNCTION", "HUB", "GROUP", "STATE", "SINCE", "FAILURES", "LAG", "WHY"}, func(one admin.Circuit) []string {
			since := cmp.Or(one.Opened, one.Since) // probes are part of being open
			return []string{one.Function, one.Hub, one.Group, one.State, showTimeIfAny(since), strconv.Itoa(one.Failures),
				showWaiting(one.Lag), oneLine(one.Reason)}
		})
}

func (c circuitCommands) show() *cobra.Command {
	var flags circuitFlags
	cmd := &cobra.Command{Use: "show FUNCTION", Short: "Show a circuit with its failures"}
	c.addCircuitFlags(cmd, &flags)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.Circuit, error) {
		return client.Circuit(cmd.Context(), flags.which(args[0]))
	}, func(one admin.Circuit) error { return printCircuit(c.stdout, one) })
}

func printCircuit(w io.Writer, one admin.Circuit) error {
	p := newEntries(w)
	p.add("function", "%s, of hub %s, as group %s", one.Function, one.Hub, one.Group)
	addCircuit(p, one.CircuitState)
	if one.Opened != nil {
		p.add("opened", "%s", showTime(*one.Opened))
	}
	p.add("failures", "%s, %s since its instances started", showFailures(one.Failures, one.State), thousands(one.Total))
	for _, instance := range slices.Sorted(maps.Keys(one.Instances)) {
		p.add("", "%s  %s", oneLine(instance), thousands(one.Instances[instance]))
	}
	p.add("lag", "%s", showWaiting(one.Lag))
	return p.w.Flush()
}

func (c circuitCommands) history() *cobra.Command {
	var flags circuitFlags
	cmd := &cobra.Command{Use: "history FUNCTION", Short: "Show how a circuit has changed, and the failures by second and instance"}
	c.addCircuitFlags(cmd, &flags)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.CircuitHistory, error) {
		return client.CircuitHistory(cmd.Context(), flags.which(args[0]))
	}, func(h admin.CircuitHistory) error {
		if err := printTable(c.cli, h.Changes, "the circuit has not changed since the yard started", []string{"AT", "STATE", "BY", "WHY"}, func(one admin.CircuitChange) []string {
			return []string{showTime(one.At), one.State, oneLine(cmp.Or(one.By, "-")), oneLine(one.Reason)}
		}); err != nil || len(h.Seconds) == 0 {
			return err
		}
		p := newEntries(c.stdout)
		for _, s := range h.Seconds {
			p.add("failed "+showTime(s.At), "%s", thousands(int64(s.Failures)))
		}
		for _, instance := range slices.Sorted(maps.Keys(h.Opening)) {
			p.add("by "+oneLine(instance), "%s", thousands(int64(h.Opening[instance])))
		}
		return p.w.Flush()
	})
}

// setState opens or closes.
func (c circuitCommands) setState(what string) *cobra.Command {
	var flags circuitFlags
	var reason string
	cmd := &cobra.Command{
		Use:     what + " FUNCTION",
		Short:   "Stop a function in every instance, until its circuit is closed",
		Example: "  eventyard circuit " + what + " billing\n  eventyard circuit " + what + " billing --hub orders --group billing --reason 'the database is being moved'",
	}
	change := (*admin.Client).OpenCircuit
	if what == "close" {
		cmd.Short, change = "Resume a function in every instance, each from its checkpoint", (*admin.Client).CloseCircuit
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for others to see")
	c.addCircuitFlags(cmd, &flags)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.Circuit, error) {
		return change(client, cmd.Context(), flags.which(args[0]), reason)
	}, func(one admin.Circuit) error {
		return c.printf("the circuit of %s is %s\n", one.Function, one.State)
	})
}

func (c circuitCommands) notify() *cobra.Command {
	return c.asking(&cobra.Command{
		Use:     "notify-test TARGET",
		Short:   "Send a test notice, to try the settings of mail and webhooks",
		Example: "  eventyard circuit notify-test mailto:ops@example.com",
	}, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		if err := client.TestNotice(cmd.Context(), args[0]); err != nil {
			return err
		}
		return c.printf("sent a test notice to %s\n", oneLine(args[0]))
	})
}
