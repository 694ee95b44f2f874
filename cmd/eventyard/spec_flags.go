package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// addDefinitionFlags gives a command the flags of a definition. What they are given goes into
// request, a pointer, and nothing else does: an update leaves the rest.
func addDefinitionFlags(cmd *cobra.Command, d spec.Definition, where spec.Where, request any) {
	cmd.Flags().SortFlags = false // the rows are in an order that can be read
	was := map[string]string{}
	for _, row := range d.List(where) {
		flag := cmd.Flags().VarPF(&fieldFlag{row: row, of: d, request: request}, row.FlagName(), "", d.Usage(row))
		if flag.Value.Type() == boolFlag {
			flag.NoOptDefVal = "true"
		}
		if len(row.OneOf) > 0 {
			completeFlags(cmd, cobra.FixedCompletions(row.OneOf, cobra.ShellCompDirectiveNoFileComp), flag.Name)
		}
		if row.Was != "" {
			was[row.Was] = flag.Name
		}
	}
	takeFormer(cmd, was)
	for _, row := range d.Fields {
		if !row.In(where) {
			lacks(cmd, row.FlagName(), row.Because)
		}
	}
}

// checkTogether refuses flags that would have no effect without another.
func checkTogether(cmd *cobra.Command, d spec.Definition, where spec.Where) error {
	for _, row := range d.List(where) {
		needed, needs := d.Field(row.Needs)
		if needs && cmd.Flags().Changed(row.FlagName()) && !cmd.Flags().Changed(needed.FlagName()) {
			return usagef(cmd, "--%s goes with --%s: give both", row.FlagName(), needed.FlagName())
		}
	}
	return nil
}

// fieldFlag is a field of a definition as a flag.
type fieldFlag struct {
	row     spec.Field
	of      spec.Definition
	request any
	given   string
}

// boolFlag is the type of a flag that may stand without a value.
const boolFlag = "bool"

// String is what was given last: what is not given has no value, whatever its default.
func (f *fieldFlag) String() string { return f.given }

// Type is the word that stands for the value in help.
func (f *fieldFlag) Type() string {
	if kind := f.of.Kind(f.row); kind.Kind() == reflect.Bool || kind == reflect.TypeFor[admin.Pull]() {
		return boolFlag
	}
	return f.row.Value
}

// Set reads a value. One empty value of a list means none.
func (f *fieldFlag) Set(text string) (err error) {
	f.given = text
	switch {
	case f.of.Repeated(f.row) && text == "":
		f.row.Clear(f.request)
		return nil
	case f.row.Value == "file" && text != "":
		text, err = readFile(strings.TrimPrefix(text, "@"), f.of.Kind(f.row) == reflect.TypeFor[json.RawMessage]())
	case f.of.Kind(f.row) == reflect.TypeFor[json.RawMessage]():
		return nil // no file is named, as by a variable that was never set
	case f.row.Secret && strings.HasPrefix(text, "@"):
		text, err = readSecret(text)
	case f.Type() == boolFlag:
		if given, wrong := strconv.ParseBool(text); wrong == nil { // 1 and t as well
			text = strconv.FormatBool(given)
		}
	}
	if err == nil {
		err = f.row.Check(text)
	}
	if err == nil {
		err = f.row.Set(f.request, text)
	}
	return err
}

// readSecret gives a secret as it is written, or where @FILE stands in its place what that file has: others can see a
// command line.
func readSecret(text string) (string, error) {
	file, named := strings.CutPrefix(text, "@")
	if !named {
		return text, nil
	}
	content, err := readFile(file, false)
	return strings.TrimSpace(content), err
}

func readFile(name string, wantJSON bool) (string, error) {
	content, err := os.ReadFile(name)
	if err == nil && wantJSON && !json.Valid(content) {
		err = fmt.Errorf("%s is no JSON", name)
	}
	return string(content), err
}

func isField(flag *pflag.Flag) bool {
	_, is := flag.Value.(*fieldFlag)
	return is
}

// explainField says what is wrong with the value of a field. It repeats none that may be a secret.
func explainField(flag *pflag.Flag, err error) error {
	var value *spec.ValueError
	if errors.As(err, &value) {
		return fmt.Errorf("--%s %s: %s", flag.Name, value.Value, value.Reason)
	}
	return fmt.Errorf("--%s: %w", flag.Name, err)
}
