package main

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/spf13/cobra"
)

// functionCommands are those of `eventyard function`.
type functionCommands struct{ *cli }

func (c functionCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "function", Aliases: []string{"fn"}, Short: "Have programs called with events: create, watch, pause and resume functions"},
		c.create(), c.list(), c.show(), c.update(),
		c.pause(), c.resume(), c.delete())
}

const functionCreateHelp = `Have a program called with the events of a hub: batches are posted to its URL, in the order of each
partition. An answer of 2xx says that all are done; docs/guides/functions-http.md shows the rest.

A call that fails is made again (--retries, --retry-delay, --exponential). What still fails is
divided, so that only the guilty events are put away, into the hub NAME-poison, which is made, or where
--poison says: a hub, topic:NAME, or none, which drops them. See them with eventyard poison list.

When more events fail than --breaker allows, the circuit opens: nothing more is read or put away, in
any instance, until somebody resumes it, or a probe succeeds (--probe). --notify says who is told,
with a link that resumes.

Names have 1 to 100 letters, digits, '-', '_' and '.'.`

func (c functionCommands) create() *cobra.Command {
	var request admin.FunctionRequest
	var form output
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a function",
		Long:  functionCreateHelp,
		Example: `  eventyard function create billing --hub orders --group billing --endpoint http://localhost:5000/
  eventyard function create resize --hub images --endpoint http://localhost:5000/ --batch 10 --retries 5 --retry-delay 1s --exponential
  eventyard function create mailer --hub orders --group mailer --endpoint http://localhost:5000/ --breaker 20/10s --notify mailto:ops@example.com`,
		Args: wantArgs("NAME"),
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			if request.Hub == "" || request.Endpoint == nil {
				return usagef(cmd, "which events, and who is called? give --hub and --endpoint")
			}
			request.Name = args[0]
			made, err := client.CreateFunction(cmd.Context(), request)
			if err != nil {
				return adviseExisting(err, args[0])
			}
			return c.printFunctionMade(form, "created", made)
		}),
	}
	addDefinitionFlags(cmd, spec.Function, spec.Create, &request)
	form.addTo(cmd)
	completeFlags(cmd, c.completeHubs, "hub", "poison")
	return c.addClientFlags(cmd)
}

// adviseExisting says how to see the function that has the name, which may be spelled otherwise.
func adviseExisting(err error, name string) error {
	var p *admin.Problem
	if !isProblem(err, "function-exists") || !errors.As(err, &p) {
		return err
	}
	if strings.Contains(p.Detail, "in case alone") {
		return &advisedError{p.Detail, "see which there are with: eventyard function list"}
	}
	return &advisedError{fmt.Sprintf("function %q exists already", name), "see what it is with: eventyard function show " + name}
}

func (c functionCommands) printFunctionMade(form output, done string, f admin.Function) error {
	if form == asJSON {
		return writeJSON(c.stdout, f)
	}
	_, err := fmt.Fprintf(c.stdout, "%s function %s: events of hub %s, as group %s, go to %s; what it cannot handle goes to %s\n",
		done, f.Name, f.Hub, f.Group, oneLine(f.Endpoint), showPoisonTarget(f.Poison))
	return err
}

func showPoisonTarget(target string) string {
	if target == "none" {
		return "nowhere (dropped)"
	}
	return target
}

func (c functionCommands) list() *cobra.Command {
	var form output
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List functions",
		Args:  wantArgs(),
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, _ []string) error {
			all, err := client.Functions(cmd.Context())
			if err != nil {
				return err
			}
			if form == asJSON {
				return writeJSON(c.stdout, append([]admin.Function{}, all...))
			}
			return c.printFunctions(all)
		}),
	}
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

func (c functionCommands) printFunctions(all []admin.Function) error {
	if len(all) == 0 {
		fmt.Fprintln(c.stderr, "there are no functions yet; create one with: eventyard function create NAME --hub HUB --endpoint URL")
		return nil
	}
	t := newTable(c.stdout, "FUNCTION", "HUB", "GROUP", "STATE", "LAG", "FAILURES", "POISONED", "ENDPOINT")
	for _, f := range all {
		t.row(f.Name, f.Hub, f.Group, f.State, showWaiting(f.Lag), strconv.Itoa(f.Failures), showPoisoned(f), oneLine(f.Endpoint))
	}
	return t.flush()
}

func showWaiting(lag *int64) string {
	if lag == nil {
		return "unknown"
	}
	return thousands(*lag)
}

func showPoisoned(f admin.Function) string {
	switch {
	case f.Poisoned == nil:
		return "-"
	case f.PoisonedMore:
		return thousands(*f.Poisoned) + " or more"
	}
	return thousands(*f.Poisoned)
}

func (c functionCommands) update() *cobra.Command {
	var request admin.FunctionRequest
	var form output
	cmd := &cobra.Command{
		Use:               "update NAME",
		Short:             "Change a function's settings",
		Long:              "Change a function's settings. What is not given stays as it is, whatever its default.",
		Example:           "  eventyard function update billing --endpoint http://localhost:5001/ --retries 10",
		Args:              wantArgs("NAME"),
		ValidArgsFunction: c.completeFunctions,
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			if reflect.DeepEqual(request, admin.FunctionRequest{}) {
				return usagef(cmd, "nothing to change: give one of the flags")
			}
			f, err := client.UpdateFunction(cmd.Context(), args[0], request)
			if err != nil {
				return err
			}
			return c.printFunctionMade(form, "changed", f)
		}),
	}
	addDefinitionFlags(cmd, spec.Function, spec.Update, &request)
	form.addTo(cmd)
	completeFlags(cmd, c.completeHubs, "poison")
	return c.addClientFlags(cmd)
}

func (c functionCommands) pause() *cobra.Command {
	var reason string
	var form output
	cmd := &cobra.Command{
		Use:               "pause NAME",
		Short:             "Stop its calls, in every instance, until it is resumed",
		Args:              wantArgs("NAME"),
		ValidArgsFunction: c.completeFunctions,
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			was, err := client.Function(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			f, err := client.PauseFunction(cmd.Context(), args[0], reason)
			if err != nil {
				return err
			}
			if was.State == "paused" {
				return c.printFunctionState(form, f, f.Name+" was paused already"+circuitReason(was.Circuit))
			}
			return c.printFunctionState(form, f, "paused "+f.Name+"; it goes on where it stopped with: eventyard function resume "+f.Name)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for others to see")
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

func (c functionCommands) resume() *cobra.Command {
	var form output
	cmd := &cobra.Command{
		Use:               "resume NAME",
		Short:             "Let it go on from its checkpoint",
		Args:              wantArgs("NAME"),
		ValidArgsFunction: c.completeFunctions,
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			was, err := client.Function(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			f, err := client.ResumeFunction(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if was.Circuit.State == "closed" {
				return c.printFunctionState(form, f, f.Name+" was not stopped")
			}
			return c.printFunctionState(form, f, "resumed "+f.Name)
		}),
	}
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

// circuitReason tells since when a circuit is as it is, and why.
func circuitReason(s admin.CircuitState) string {
	text := ""
	if s.Since != nil {
		text = " since " + showTime(*s.Since)
	}
	if s.Reason != "" {
		text += ": " + oneLine(s.Reason)
	}
	return text
}

func (c functionCommands) printFunctionState(form output, f admin.Function, line string) error {
	if form == asJSON {
		return writeJSON(c.stdout, f)
	}
	_, err := fmt.Fprintln(c.stdout, line)
	return err
}

func (c functionCommands) delete() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:               "delete NAME",
		Short:             "Stop a function and forget it",
		Args:              wantArgs("NAME"),
		ValidArgsFunction: c.completeFunctions,
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			f, err := client.Function(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			question := fmt.Sprintf("Stop function %s and forget it? Group %s of hub %s with its checkpoints and the poison events stay.", f.Name, f.Group, f.Hub)
			if err := c.confirm(cmd, yes, question); err != nil {
				return err
			}
			if err := client.DeleteFunction(cmd.Context(), f.Name); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.stdout, "deleted function %s\n", f.Name)
			return err
		}),
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c.addClientFlags(cmd)
}
