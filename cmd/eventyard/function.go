package main

import (
	"cmp"
	"context"
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
any instance, until somebody resumes it, or a probe succeeds (--probe). --notify names who is notified,
with a link that resumes.

Names have 1 to 100 letters, digits, '-', '_' and '.'.`

func (c functionCommands) create() *cobra.Command {
	var request admin.FunctionRequest
	var at admin.Checkpoints
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a function",
		Long:  functionCreateHelp,
		Example: `  eventyard function create billing --hub orders --group billing --endpoint http://localhost:5000/
  eventyard function create resize --hub images --endpoint http://localhost:5000/ --max-events 10 --retries 5 --retry-delay 1s --exponential
  eventyard function create mailer --hub orders --group mailer --endpoint http://localhost:5000/ --breaker 20/10s --notify mailto:ops@example.com`,
	}
	addDefinitionFlags(cmd, spec.Function, spec.Create, &request)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.Function, error) {
		if request.Hub == "" || request.Endpoint == nil {
			return admin.Function{}, usagef(cmd, "which events, and who is called? give --hub and --endpoint")
		}
		request.Name = args[0]
		at, _ = client.Checkpoints(cmd.Context(), request.Hub, cmp.Or(request.Group, request.Name)) // a new group has none
		made, err := client.CreateFunction(cmd.Context(), request)
		return made, adviseExisting(err, args[0])
	}, func(f admin.Function) error {
		if err := c.printFunctionMade("created", f); err != nil || len(at.Checkpoints) == 0 {
			return err
		}
		return c.printf("the group has checkpoints, for %d of its partitions: the function continues there; see them with: eventyard checkpoint list %s %s\n",
			len(at.Checkpoints), f.Hub, f.Group)
	})
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

func (c functionCommands) printFunctionMade(done string, f admin.Function) error {
	return c.printf("%s function %s: events of hub %s, as group %s, go to %s; what it cannot handle goes to %s\n",
		done, f.Name, f.Hub, f.Group, oneLine(f.Endpoint), showPoisonTarget(f.Poison))
}

func showPoisonTarget(target string) string {
	if target == "none" {
		return "nowhere (dropped)"
	}
	return target
}

func (c functionCommands) list() *cobra.Command {
	return listingStats(c.cli, &cobra.Command{Use: "list", Short: "List functions"}, func(stats bool) getter[[]admin.Function] {
		return func(cmd *cobra.Command, client *admin.Client, _ []string) ([]admin.Function, error) {
			if stats {
				return client.FunctionsWithStats(cmd.Context())
			}
			return client.Functions(cmd.Context())
		}
	}, "there are no functions yet; create one with: eventyard function create NAME --hub HUB --endpoint URL",
		columns[admin.Function]{[]string{"FUNCTION", "HUB", "GROUP", "STATE", "LAG", "FAILURES", "POISONED", "ENDPOINT"}, func(f admin.Function) []string {
			return []string{f.Name, f.Hub, f.Group, f.State, showWaiting(f.Lag), strconv.Itoa(f.Failures), showPoisoned(f), oneLine(f.Endpoint)}
		}},
		columns[admin.Function]{[]string{"FUNCTION", "STATE", "CALLS", "FAILED", "LAG", "POISONED"}, func(f admin.Function) []string {
			s := admin.FunctionStats{}
			if f.Stats != nil {
				s = *f.Stats
			}
			return []string{f.Name, f.State, rate(s.Calls), rate(s.FailedCalls), showWaiting(f.Lag), showPoisoned(f)}
		}})
}

func showWaiting(lag *int64) string {
	if lag == nil {
		return "?"
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
	cmd := &cobra.Command{
		Use:     "update NAME",
		Short:   "Change a function's settings",
		Long:    "Change a function's settings. What is not given stays as it is, whatever its default.",
		Example: "  eventyard function update billing --endpoint http://localhost:5001/ --retries 10",
	}
	addDefinitionFlags(cmd, spec.Function, spec.Update, &request)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.Function, error) {
		if reflect.DeepEqual(request, admin.FunctionRequest{}) {
			return admin.Function{}, usagef(cmd, "nothing to change: give one of the flags")
		}
		return client.UpdateFunction(cmd.Context(), args[0], request)
	}, func(f admin.Function) error { return c.printFunctionMade("changed", f) })
}

func (c functionCommands) pause() *cobra.Command {
	var reason string
	cmd := &cobra.Command{Use: "pause NAME", Short: "Stop its calls, in every instance, until it is resumed"}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for others to see")
	return c.changing(cmd, func(client *admin.Client, ctx context.Context, name string) (admin.Function, error) {
		return client.PauseFunction(ctx, name, reason)
	}, func(was admin.Function) string {
		if was.State == "paused" {
			return was.Name + " was paused already" + circuitReason(was.Circuit, "")
		}
		return "paused " + was.Name + "; it continues where it stopped with: eventyard function resume " + was.Name
	})
}

func (c functionCommands) resume() *cobra.Command {
	cmd := &cobra.Command{Use: "resume NAME", Short: "Resume it from its checkpoint"}
	return c.changing(cmd, (*admin.Client).ResumeFunction, func(was admin.Function) string {
		if was.Circuit.State == "closed" {
			return was.Name + " was not stopped"
		}
		return "resumed " + was.Name
	})
}

// changing completes a command that changes the state of a function. What it prints depends on how
// the function was before.
func (c functionCommands) changing(cmd *cobra.Command, change func(*admin.Client, context.Context, string) (admin.Function, error), describe func(was admin.Function) string) *cobra.Command {
	var was admin.Function
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (_ admin.Function, err error) {
		if was, err = client.Function(cmd.Context(), args[0]); err != nil {
			return was, err
		}
		return change(client, cmd.Context(), args[0])
	}, func(admin.Function) error { return c.printf("%s\n", describe(was)) })
}

// circuitReason tells since when a circuit is as it is, by whom, and why.
func circuitReason(s admin.CircuitState, by string) string {
	text := by
	if s.Since != nil {
		text = " since " + showTime(*s.Since) + by
	}
	if s.Reason != "" {
		text += ": " + oneLine(s.Reason)
	}
	return text
}

func (c functionCommands) delete() *cobra.Command {
	return c.deleting(&cobra.Command{Use: "delete NAME", Short: "Stop a function and forget it"},
		func(cmd *cobra.Command, client *admin.Client, args []string) (deletion, error) {
			f, err := client.Function(cmd.Context(), args[0])
			return deletion{
				question: fmt.Sprintf("Stop function %s and forget it? Group %s of hub %s with its checkpoints and the poison events stay.", f.Name, f.Group, f.Hub),
				do:       func() error { return client.DeleteFunction(cmd.Context(), f.Name) },
				done:     "deleted function " + f.Name,
			}, err
		})
}
