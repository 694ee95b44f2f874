package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/internal/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// argumentNames say in a sentence what stands in upper case in a line of usage.
var argumentNames = map[string]string{"HUB": "the hub's name", "GROUP": "the group's name", "FROM": "the group to copy from", "TO": "the group to copy to", "POLICY": "the policy's name", "FILE": "a file", "FOLDER": "a folder",
	"TOPIC": "the topic's name", "SUBSCRIPTION": "the subscription's name", "NUMBER": "a dead letter's number", "REPLICAS": "how many servers are to keep each event: 1, 3 or 5",
	"DATA": "the event's data, as JSON or text", "NAME": "the function's name", "FUNCTION": "the function's name", "ID": "a poison event's id", "EVENT": "an event as it is published", "EVENTID": "an event's id, or HUB/PARTITION/SEQUENCE", "CONTEXT": "the context's name", "CONTAINER": "the container's name", "STATE": "on or off", "PARTITION": "the partition's id", "INSTANCE": "the instance's id", "FIGURE": "what it is a series of", "TARGET": "where a notice goes, like mailto:ops@example.com"}

// argumentsOf are the names of the arguments in a command's line of usage, up to its flags.
func argumentsOf(cmd *cobra.Command) []string {
	names := strings.Fields(cmd.Use)[1:]
	if flag := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, "-") }); flag >= 0 {
		names = names[:flag]
	}
	return names
}

// wantArgs takes the arguments that the line of usage names: any number of the last if its name
// ends in dots, and one less if it stands in brackets.
func wantArgs(cmd *cobra.Command, args []string) error {
	names := argumentsOf(cmd)
	least, most := len(names), len(names)
	if least > 0 {
		last := names[least-1]
		if strings.HasPrefix(last, "[") {
			least--
		}
		if strings.HasSuffix(strings.TrimSuffix(last, "]"), "...") {
			most = math.MaxInt
		}
	}
	_, command, _ := strings.Cut(cmd.CommandPath(), " ")
	_, form, _ := strings.Cut(cmd.Use, " ")
	line := strings.TrimSpace(cmd.CommandPath() + " " + form)
	switch {
	case len(args) < least:
		return fmt.Errorf("%s needs %s: %s", command, argumentNames[strings.TrimSuffix(names[len(args)], "...")], line)
	case len(args) > most:
		return fmt.Errorf("%q is one argument too many: %s", args[most], line)
	}
	return nil
}

// explainFlag says what is wrong with a flag, without the words of the parser.
func explainFlag(cmd *cobra.Command, err error) error {
	var (
		value   *pflag.InvalidValueError
		missing *pflag.ValueRequiredError
		unknown *pflag.NotExistError
		number  *strconv.NumError
	)
	switch {
	case errors.As(err, &value) && isField(value.GetFlag()):
		return explainField(value.GetFlag(), value.Unwrap())
	case errors.As(err, &number) && errors.As(err, &value) && errors.Is(number, strconv.ErrRange):
		return fmt.Errorf("--%s: %q is out of range", value.GetFlag().Name, value.GetValue())
	case errors.As(err, &number) && errors.As(err, &value):
		return fmt.Errorf("--%s: %q is %s", value.GetFlag().Name, value.GetValue(), cmp.Or(noneOf[value.GetFlag().Value.Type()], "no whole number"))
	case errors.As(err, &value) && value.GetFlag().Value.Type() == durationFlag:
		return fmt.Errorf("--%s: %w", value.GetFlag().Name, value.Unwrap())
	case errors.As(err, &value):
		return fmt.Errorf("--%s %s: %w", value.GetFlag().Name, value.GetValue(), value.Unwrap())
	case errors.As(err, &missing):
		return fmt.Errorf("--%s needs a value", missing.GetFlag().Name)
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return fmt.Errorf("there is no flag -%s", unknown.GetSpecifiedName())
	case errors.As(err, &unknown):
		return noFlag(cmd, unknown.GetSpecifiedName())
	}
	return err
}

// noneOf says what a text is not, by the type of its flag.
var noneOf = map[string]string{boolFlag: "neither true nor false", "float64": "no number"}

// lacksFlag begins the annotations that say why a command has no flag of a name.
const lacksFlag = "lacks --"

// lacks has a command say why it has no such flag, to who gives it all the same.
func lacks(cmd *cobra.Command, flag, why string) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[lacksFlag+flag] = why
}

func noFlag(cmd *cobra.Command, name string) error {
	var names, longer []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names = append(names, f.Name)
		if strings.HasPrefix(f.Name, name+"-") {
			longer = append(longer, "--"+f.Name)
		}
	})
	near, lacked := config.DidYouMean(name, names), name
	for annotation := range cmd.Annotations { // --partition is as wrong as --partitions
		if of, is := strings.CutPrefix(annotation, lacksFlag); is && near == "" && config.DidYouMean(name, []string{of}) != "" {
			lacked = of
		}
	}
	switch why, other := cmd.Annotations[lacksFlag+lacked], otherName(cmd, name); {
	case why != "":
		return fmt.Errorf("there is no flag --%s: %s", name, why)
	case other != "":
		return fmt.Errorf("there is no flag --%s; did you mean %s?", name, other)
	case near != "":
		return fmt.Errorf("there is no flag --%s; did you mean --%s?", name, near)
	case len(longer) > 0:
		return fmt.Errorf("there is no flag --%s; did you mean %s?", name, strings.Join(longer, " or "))
	}
	return fmt.Errorf("there is no flag --%s", name)
}

// takeFormer has a command take flags by former names, too, which help does not show.
func takeFormer(cmd *cobra.Command, now map[string]string) {
	if len(now) == 0 {
		return
	}
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if renamed := now[name]; renamed != "" {
			name = renamed
		}
		return pflag.NormalizedName(name)
	})
}

// family makes a command that only holds others.
func family(cmd *cobra.Command, members ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(members...)
	return holdOnly(cmd)
}

// holdOnly makes a command show its help, and suggest a member for a word that is none.
func holdOnly(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return noMember(cmd, args[0])
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// knownShell wants a shell that there is a script for, where it stands in place of one.
func knownShell(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var shells []string
	for _, member := range cmd.Commands() {
		shells = append(shells, member.Name())
	}
	if near := config.DidYouMean(args[0], shells); near != "" {
		return noMember(cmd, args[0])
	}
	return fmt.Errorf("there is no script for %q: choose one of %s", args[0], strings.Join(shells, ", "))
}

func noMember(cmd *cobra.Command, word string) error {
	var names, longer []string
	for _, member := range cmd.Commands() {
		if !member.IsAvailableCommand() {
			continue
		}
		names = append(names, member.Name())
		if strings.HasPrefix(member.Name(), strings.ToLower(word)) {
			longer = append(longer, member.Name())
		}
	}
	err := fmt.Errorf("%q is no command of %q", word, cmd.CommandPath())
	if near := cmp.Or(config.DidYouMean(word, names), strings.Join(longer, `" or "`)); near != "" {
		err = fmt.Errorf(`%w: did you mean "%s"?`, err, near)
	}
	return err
}

// helpCommand tells about a command, and fails where there is none of that name.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, words []string) error {
			about := cmd.Root()
			for _, word := range words {
				member, _, err := about.Find([]string{word})
				if err != nil || member == about {
					return usagef(about, "%w", noMember(about, word))
				}
				about = member
			}
			about.InitDefaultHelpFlag()
			about.InitDefaultVersionFlag()
			return about.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, words []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			about, _, err := cmd.Root().Find(words)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []cobra.Completion
			for _, member := range about.Commands() {
				if member.IsAvailableCommand() {
					names = append(names, cobra.CompletionWithDesc(member.Name(), member.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}
