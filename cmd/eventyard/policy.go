package main

import (
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/spf13/cobra"
)

const policyHelp = `A shared-access policy is a name with two keys and some of the rights send, listen and
manage, to the whole namespace or to one hub. Clients are let in by a policy's name and
key, which their connection string holds. There are two keys so that one can be made
anew while clients use the other.`

// policyCommands are those of `eventyard policy`.
type policyCommands struct{ *cli }

func (c policyCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "policy", Short: "Create, list, show, regenerate and delete shared-access policies", Long: policyHelp},
		c.create(), c.list(), c.show(), c.regenerate(), c.delete())
}

// addHubFlag gives a command the hub whose policies it is about.
func (c *cli) addHubFlag(cmd *cobra.Command, hub *string) {
	cmd.Flags().StringVar(hub, "hub", "", "the `hub` that the policy is for; without it, the whole namespace")
	_ = cmd.RegisterFlagCompletionFunc("hub", func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return c.completeHubs(cmd, nil, begun)
	})
}

// describePolicy names a policy in a sentence.
func describePolicy(name, hub string) string {
	if hub == "" {
		return "policy " + name
	}
	return "policy " + name + " of hub " + hub
}

// connectionStringOf is the command that prints a policy's connection string.
func connectionStringOf(name, hub string) string {
	return "eventyard connection-string --policy " + name + hubFlag(hub)
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
	var form output
	cmd := &cobra.Command{
		Use:   "create POLICY",
		Short: "Create a policy with fresh keys",
		Example: `  eventyard policy create till --hub orders --rights send
  eventyard policy create reports --rights listen`,
		Args: wantArgs("POLICY"),
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			if _, err := auth.ParseRights(request.Rights); err != nil {
				return usagef(cmd, "--rights: %w", err)
			}
			hub := request.Hub
			request.Name = args[0]
			policy, err := client.CreatePolicy(cmd.Context(), hub, request)
			if isProblem(err, "policy-exists") {
				return &advisedError{describePolicy(args[0], hub) + " exists already", "see what it is with: eventyard policy list" + hubFlag(hub)}
			}
			if isProblem(err, "invalid-policy") {
				return &advisedError{err.Error(), "choose a name like till-1 or reports.daily; eventyard policy list" + hubFlag(hub) + " shows those in use"}
			}
			if err != nil {
				return err
			}
			if form == asJSON {
				return writeJSON(c.stdout, policy)
			}
			_, err = fmt.Fprintf(c.stdout, "created %s with the rights %s\n%s prints its connection string\n",
				describePolicy(policy.Name, policy.Hub), strings.Join(policy.Rights, ", "), connectionStringOf(policy.Name, policy.Hub))
			return err
		}),
	}
	addDefinitionFlags(cmd, spec.Policy, spec.Create, &request)
	completeFlags(cmd, c.completeHubs, "hub")
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

func (c policyCommands) list() *cobra.Command {
	var hub string
	var form output
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the policies of the namespace, or of a hub",
		Args:  wantArgs(),
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, _ []string) error {
			policies, err := client.Policies(cmd.Context(), hub)
			if err != nil {
				return err
			}
			return c.printPolicies(form, policies)
		}),
	}
	c.addHubFlag(cmd, &hub)
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

// printPolicies shows no keys to whoever looks over a shoulder. Programs get them.
func (c policyCommands) printPolicies(form output, policies []admin.Policy) error {
	if form == asJSON {
		return writeJSON(c.stdout, append([]admin.Policy{}, policies...))
	}
	if len(policies) == 0 {
		fmt.Fprintln(c.stderr, "there are none; create one with: eventyard policy create NAME --hub HUB --rights send")
		return nil
	}
	t := newTable(c.stdout, "POLICY", "RIGHTS", "CREATED")
	for _, p := range policies {
		t.row(p.Name, strings.Join(p.Rights, ", "), showTime(p.Created))
	}
	return t.flush()
}

func (c policyCommands) show() *cobra.Command {
	var hub string
	var form output
	cmd := &cobra.Command{
		Use:   "show POLICY",
		Short: "Show a policy with its keys",
		Args:  wantArgs("POLICY"),
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			policy, err := client.Policy(cmd.Context(), hub, args[0])
			if err != nil {
				return err
			}
			return c.showPolicy(form, policy)
		}),
	}
	c.addHubFlag(cmd, &hub)
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

func (c policyCommands) showPolicy(form output, p admin.Policy) error {
	if form == asJSON {
		return writeJSON(c.stdout, p)
	}
	of := p.Hub
	if of == "" {
		of = "-"
	}
	_, err := fmt.Fprintf(c.stdout, "policy     %s\nhub        %s\nrights     %s\ncreated    %s\nprimary    %s\nsecondary  %s\n",
		p.Name, of, strings.Join(p.Rights, ", "), showTime(p.Created), p.PrimaryKey, p.SecondaryKey)
	return err
}

func (c policyCommands) regenerate() *cobra.Command {
	var hub, key string
	var yes bool
	var form output
	cmd := &cobra.Command{
		Use:   "regenerate POLICY",
		Short: "Make one of a policy's keys anew, which ends the old one",
		Args:  wantArgs("POLICY"),
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			if key != keyName(false) && key != keyName(true) {
				return usagef(cmd, "--key: %q is neither primary nor secondary", key)
			}
			question := fmt.Sprintf("Make the %s key of %s anew? Whoever uses the old one is let in no more.", key, describePolicy(args[0], hub))
			if err := c.confirm(cmd, yes, question); err != nil {
				return err
			}
			policy, err := client.RegeneratePolicy(cmd.Context(), hub, args[0], key)
			if err != nil {
				return err
			}
			if form == asJSON {
				return writeJSON(c.stdout, policy)
			}
			_, err = fmt.Fprintf(c.stdout, "the %s key of %s is a new one\n", key, describePolicy(policy.Name, policy.Hub))
			return err
		}),
	}
	cmd.Flags().StringVar(&key, "key", keyName(false), "which `key`: primary or secondary")
	_ = cmd.RegisterFlagCompletionFunc("key", cobra.FixedCompletions([]string{keyName(false), keyName(true)}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	c.addHubFlag(cmd, &hub)
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

func keyName(secondary bool) string {
	if secondary {
		return "secondary"
	}
	return "primary"
}

func (c policyCommands) delete() *cobra.Command {
	var hub string
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete POLICY",
		Short: "Delete a policy; its keys let nobody in any more",
		Args:  wantArgs("POLICY"),
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			if err := c.confirm(cmd, yes, "Delete "+describePolicy(args[0], hub)+", for good?"); err != nil {
				return err
			}
			if err := client.DeletePolicy(cmd.Context(), hub, args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.stdout, "deleted %s\n", describePolicy(args[0], hub))
			return err
		}),
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	c.addHubFlag(cmd, &hub)
	return c.addClientFlags(cmd)
}
