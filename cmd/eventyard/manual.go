package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/eventyard/eventyard/internal/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manualCommand writes the manual pages that packages install. It is hidden: who has the program
// has the same text by --help.
func manualCommand() *cobra.Command {
	return &cobra.Command{
		Use: "manual FOLDER", Short: "Write the manual pages of all commands", Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error { return writeManual(cmd.Root(), args[0]) },
	}
}

// writeManual writes a page for each command, and one for the configuration file.
func writeManual(root *cobra.Command, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var settings bytes.Buffer
	if err := config.WriteReference(&settings); err != nil {
		return err
	}
	pages := map[string]string{"eventyard.yaml.5": settingsPage(settings.String())}
	addPages(pages, root)
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func addPages(pages map[string]string, cmd *cobra.Command) {
	pages[pageName(cmd)+".1"] = commandPage(cmd)
	for _, member := range cmd.Commands() {
		if member.IsAvailableCommand() {
			addPages(pages, member)
		}
	}
}

// pageName is what man is asked for: eventyard-hub-create.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// commandPage is a command's help as a manual page. Texts keep their lines, which are written to be
// read so.
func commandPage(cmd *cobra.Command) string {
	p := newManualPage(pageName(cmd), "1", cmd.Short)
	p.section("SYNOPSIS", cmd.UseLine())
	p.section("DESCRIPTION", cmd.Long)
	p.members(cmd)
	p.options(cmd.LocalFlags())
	p.section("EXAMPLES", cmd.Example)
	if cmd.HasParent() {
		p.section("SEE ALSO", pageName(cmd.Parent())+"(1), eventyard.yaml(5)")
	}
	return p.String()
}

func settingsPage(reference string) string {
	p := newManualPage("eventyard.yaml", "5", "settings of a yard, with their defaults")
	p.section("DESCRIPTION", reference)
	p.section("SEE ALSO", "eventyard-serve(1), eventyard-config(1)")
	return p.String()
}

// manualPage is a page being written, in the language of man(7).
type manualPage struct{ strings.Builder }

// newManualPage begins one. It has no date, so that the same program always writes the same.
func newManualPage(name, chapter, short string) *manualPage {
	p := &manualPage{}
	fmt.Fprintf(p, ".TH %q %s \"\" \"Eventyard %s\" \"Eventyard\"\n", strings.ToUpper(name), chapter, thisBuild().Version)
	fmt.Fprintf(p, ".ad l\n.SH NAME\n%s \\- %s\n", roff(name), roff(short))
	return p
}

// section adds a text whose lines stay as they are; an empty one has no section.
func (p *manualPage) section(title, text string) {
	if text = strings.Trim(text, "\n"); text != "" {
		fmt.Fprintf(p, ".SH %s\n.nf\n%s\n.fi\n", title, roff(text))
	}
}

func (p *manualPage) members(cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	p.WriteString(".SH COMMANDS\n")
	for _, member := range cmd.Commands() {
		if member.IsAvailableCommand() {
			fmt.Fprintf(p, ".TP\n.B %s(1)\n%s\n", roff(pageName(member)), roff(member.Short))
		}
	}
}

func (p *manualPage) options(flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.WriteString(".SH OPTIONS\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		written := "--" + f.Name
		if f.Shorthand != "" {
			written = "-" + f.Shorthand + ", " + written
		}
		fmt.Fprintf(p, ".TP\n\\fB%s\\fR \\fI%s\\fR\n%s\n", roff(written), roff(value), roff(usage))
	})
}

// roff writes a text so that man shows it as it is.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line // else it would be a request
		}
	}
	return strings.Join(lines, "\n")
}
