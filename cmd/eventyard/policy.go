package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/spf13/cobra"
)

const policyHelp = `A shared-access policy is a name with two keys and some of the rights send, listen and
manage, to the whole namespace or to one hub; or with the right metrics, to read those alone. Clients are let in by a policy's name and
key, which their connection string holds. There are two keys so that one can be
replaced while clients use the other.`

// policyCommands are those of `eventyard policy`.
type policyCommands struct{ *cli }

func (c policyCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "policy", Short: "Create, list, show, change, regenerate and delete shared-access policies", Long: policyHelp},
		c.create(), c.list(), c.show(), c.update(), c.regenerate(), c.delete())
}

// addHubFlag gives a command the hub whose policies it is about.
func (c *cli) addHubFlag(cmd *cobra.Command, hub *string) {
	cmd.Flags().StringVar(hub, "hub", "", "the `hub` that the policy is for; without it, the whole namespace")
}

// describePolicy names a policy in a sentence.
func describePolicy(name, hub string) string {
	if hub == "" {
		return "policy " + name
	}
	return "policy " + name + " of hub " + hub
}

// hubFlag is what a command says to be about a hub; nothing for the namespace.
func hubFlag(hub string) string {
	if hub == "" {
		return ""
	}
	return " --hub " + hub
}

func (c policyCommands) create() *cobra.Command {
	var request admin.PolicyRequest
	cmd := &cobra.Command{
		Use:   "create POLICY",
		Short: "Create a policy with fresh keys",
		Example: `  eventyard policy create till --hub orders --rights send
  eventyard policy create reports --rights listen
  eventyard policy create prometheus --rights metrics`,
	}
	addDefinitionFlags(cmd, spec.Policy, spec.Create, &request)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.Policy, error) {
		if len(request.Rights) == 0 {
			return admin.Policy{}, usagef(cmd, "policy create needs --rights: what the policy may do, one or more of send, listen, manage and metrics, like --rights send,listen")
		}
		if _, err := auth.ParseRights(request.Rights); err != nil {
			return admin.Policy{}, usagef(cmd, "--rights: %w", err)
		}
		request.Name = args[0]
		policy, err := client.CreatePolicy(cmd.Context(), request.Hub, request)
		switch list := "eventyard policy list" + hubFlag(request.Hub); {
		case isProblem(err, "policy-exists"):
			err = &advisedError{describePolicy(args[0], request.Hub) + " exists already", "see what it is with: " + list}
		case isProblem(err, "invalid-policy") && strings.Contains(err.Error(), "is no name"):
			err = &advisedError{err.Error(), "choose a name like till-1 or reports.daily; " + list + " shows those in use"}
		}
		return policy, err
	}, func(policy admin.Policy) error {
		return c.printf("created %s with the rights %s\neventyard connection-string --policy %s%s prints its connection string\n",
			describePolicy(policy.Name, policy.Hub), strings.Join(policy.Rights, ", "), policy.Name, hubFlag(policy.Hub))
	})
}

// list shows no keys to whoever looks over a shoulder, or reads a log. Programs may ask for them.
func (c policyCommands) list() *cobra.Command {
	var hub string
	var all, showKeys bool
	var uses map[string]admin.KeyUse
	cmd := &cobra.Command{
		Use: "list", Short: "List the policies of the namespace, of a hub, or all",
		Example: "  eventyard policy list\n  eventyard policy list --all-hubs\n  eventyard policy list --hub orders -o json --show-keys",
	}
	cmd.Flags().BoolVar(&showKeys, "show-keys", false, "with -o json: their keys and connection strings, too")
	cmd.Flags().BoolVarP(&all, "all-hubs", "a", false, "those of all hubs, too")
	c.addHubFlag(cmd, &hub)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, _ []string) ([]admin.Policy, error) {
		if form := cmd.Flags().Lookup("output"); showKeys && form.Value.String() != string(asJSON) {
			return nil, usagef(cmd, "--show-keys goes with -o json: give both; eventyard policy show POLICY shows those of one")
		}
		if all && hub != "" {
			return nil, usagef(cmd, "--all-hubs and --hub do not go together: give one of them")
		}
		get := client.PoliciesWithoutKeys
		if showKeys {
			get = client.Policies
		}
		list, err := get(cmd.Context(), hub)
		if err != nil {
			return nil, err
		}
		uses = keyUses(cmd, client)
		if all {
			ofHubs, err := policiesOfHubs(cmd.Context(), client, get)
			if err != nil {
				return nil, err
			}
			list = append(list, ofHubs...)
		}
		return append([]admin.Policy{}, list...), nil // no list at all would be null in JSON
	}, func(list []admin.Policy) error {
		err := printTable(c.cli, list, "there are none; create one with: eventyard policy create NAME --hub HUB --rights send",
			[]string{"POLICY", "HUB", "RIGHTS", "CREATED", "PRIMARY USED", "SECONDARY USED"}, func(p admin.Policy) []string {
				use := uses[strings.ToLower(policyPath(p))]
				return []string{p.Name, cmp.Or(p.Hub, "-"), strings.Join(p.Rights, ", "), showTime(p.Created), showTimeIfAny(use.Primary), showTimeIfAny(use.Secondary)}
			})
		if err == nil && hub == "" && !all {
			fmt.Fprintln(c.stderr, "these are of the whole namespace; --all-hubs shows those of hubs, too, and --hub HUB those of one")
		}
		return err
	})
}

// policiesOfHubs are those of each hub, in the order of hubs.
func policiesOfHubs(ctx context.Context, client *admin.Client, get func(context.Context, string) ([]admin.Policy, error)) (all []admin.Policy, err error) {
	hubs, err := client.Hubs(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range hubs {
		found, err := get(ctx, h.Name)
		if err != nil && !isProblem(err, "not-found") { // it may have been deleted meanwhile
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// policyPath is a policy where its uses are told.
func policyPath(p admin.Policy) string {
	if p.Hub == "" {
		return "policies/" + p.Name
	}
	return "hubs/" + url.PathEscape(p.Hub) + "/policies/" + p.Name
}

func (c policyCommands) show() *cobra.Command {
	var hub string
	cmd := &cobra.Command{Use: "show POLICY", Short: "Show a policy with its keys"}
	c.addHubFlag(cmd, &hub)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.Policy, error) {
		return client.Policy(cmd.Context(), hub, args[0])
	}, func(p admin.Policy) error {
		return c.printf("policy     %s\nhub        %s\nrights     %s\ncreated    %s\n%sprimary    %s\nsecondary  %s\n",
			p.Name, cmp.Or(p.Hub, "-"), strings.Join(p.Rights, ", "), showTime(p.Created),
			quotaRow(11, p.Quota.Events, "events", p.Quota.Bytes), p.PrimaryKey, p.SecondaryKey)
	})
}

func (c policyCommands) update() *cobra.Command {
	var hub string
	var request admin.PolicyRequest
	cmd := &cobra.Command{
		Use:     "update POLICY",
		Short:   "Change the quota of all who use a policy",
		Example: "  eventyard policy update till --hub orders --quota-events 100",
	}
	addDefinitionFlags(cmd, spec.Policy, spec.Update, &request)
	c.addHubFlag(cmd, &hub)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.Policy, error) {
		if request.Quota == nil {
			return admin.Policy{}, usagef(cmd, "nothing to change: give --quota-events or --quota-bytes")
		}
		return client.UpdatePolicy(cmd.Context(), hub, args[0], admin.PolicyChange{Quota: request.Quota})
	}, func(p admin.Policy) error {
		return c.printf("changed %s\n%s", describePolicy(p.Name, p.Hub), quotaRow(len("quota "), p.Quota.Events, "events", p.Quota.Bytes))
	})
}

func (c policyCommands) regenerate() *cobra.Command {
	var hub, key string
	cmd := &cobra.Command{Use: "regenerate POLICY", Short: "Replace one of a policy's keys; the old one ends at once"}
	cmd.Flags().StringVar(&key, "key", keyName(false), "which `key`: primary or secondary")
	completeFlags(cmd, cobra.FixedCompletions([]string{keyName(false), keyName(true)}, cobra.ShellCompDirectiveNoFileComp), "key")
	yes := addYesFlag(cmd)
	c.addHubFlag(cmd, &hub)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.Policy, error) {
		if key != keyName(false) && key != keyName(true) {
			return admin.Policy{}, usagef(cmd, "--key: %q is neither primary nor secondary", key)
		}
		question := fmt.Sprintf("Replace the %s key of %s? Clients that use the old one lose access.", key, describePolicy(args[0], hub))
		if err := c.confirm(cmd, *yes, question); err != nil {
			return admin.Policy{}, err
		}
		return client.RegeneratePolicy(cmd.Context(), hub, args[0], key)
	}, func(policy admin.Policy) error {
		return c.printf("the %s key of %s is a new one\n", key, describePolicy(policy.Name, policy.Hub))
	})
}

func keyName(secondary bool) string {
	if secondary {
		return "secondary"
	}
	return "primary"
}

func (c policyCommands) delete() *cobra.Command {
	var hub string
	cmd := &cobra.Command{Use: "delete POLICY", Short: "Delete a policy; its keys are refused from then on"}
	c.addHubFlag(cmd, &hub)
	return c.deleting(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (deletion, error) {
		which := describePolicy(args[0], hub)
		return deletion{
			question: "Delete " + which + ", for good?",
			do:       func() error { return client.DeletePolicy(cmd.Context(), hub, args[0]) },
			done:     "deleted " + which,
		}, nil
	})
}
