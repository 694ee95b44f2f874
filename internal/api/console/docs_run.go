package console

import (
	"errors"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/yuin/goldmark/ast"
)

// A block of the docs that begins with ```sh run can be run in the console: it is one command that does what one
// of the console's forms does. So a click sends that form, filled in, and ends at the page where one sees what
// came of it; what is wrong is said on the form.

// runMark stands in an article's text before the command of such a block, and the mark's first character behind it.
const runMark = "\x01run "

// isRun tells whether a block of code is marked so.
func isRun(n ast.Node, source []byte) bool {
	block, ok := n.(*ast.FencedCodeBlock)
	return ok && block.Info != nil && slices.Contains(strings.Fields(string(block.Info.Segment.Value(source))), "run")
}

// runnable is a command as a form.
type runnable struct {
	right, hub string // what it takes, of the namespace or of a hub
	creates    string // the hub that it creates; empty: none
	action     string
	fields     [][2]string
}

var errNotRunnable = errors.New(`the docs mark a block to be run that is neither "eventyard hub create HUB [--partitions N]" nor "eventyard send HUB TEXT"`)

// readRun reads a command, in which {hub} stands for a hub's name.
func readRun(command, hub string) (runnable, error) {
	words, err := shellWords(command)
	if err != nil {
		return runnable{}, err
	}
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "{hub}", hub)
	}
	is := func(beginning ...string) bool {
		return len(words) > len(beginning) && slices.Equal(words[:len(beginning)], beginning)
	}
	switch {
	case is("eventyard", "send") && len(words) == 4:
		return runnable{right: "Send", hub: words[2], action: at("hubs", words[2], "send"), fields: [][2]string{{"body", words[3]}}}, nil
	case is("eventyard", "hub", "create") && len(words) == 4:
		return runnable{right: "Manage", creates: words[3], action: createHub.path, fields: [][2]string{{"name", words[3]}}}, nil
	case is("eventyard", "hub", "create") && len(words) == 6 && words[4] == "--partitions":
		return runnable{right: "Manage", creates: words[3], action: createHub.path, fields: [][2]string{{"name", words[3]}, {"partitions", words[5]}}}, nil
	}
	return runnable{}, fmt.Errorf("%w: %q", errNotRunnable, command)
}

// shellWords divides a command as a shell does, as far as the docs need it.
func shellWords(command string) (words []string, err error) {
	var word strings.Builder
	quote, begun := rune(0), false
	for _, r := range strings.TrimSpace(command) {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, begun = r, true
		case quote == 0 && strings.ContainsRune("\\$`|&;<>()*?#\n", r):
			return nil, fmt.Errorf("%w: %q", errNotRunnable, command)
		case quote == 0 && r == ' ':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("%w: %q", errNotRunnable, command)
	}
	return append(words, word.String()), nil
}

// offerRuns puts a form behind each block that can be run, for who may do what it does. A hub that is there
// already is not created again.
func offerRuns(v *visit, text, hub string, hubs []admin.Hub) string {
	var out strings.Builder
	for {
		before, rest, marked := strings.Cut(text, runMark)
		out.WriteString(before)
		if !marked {
			return out.String()
		}
		command, after, _ := strings.Cut(rest, runMark[:1])
		text = after
		r, err := readRun(command, hub)
		there := slices.ContainsFunc(hubs, func(h admin.Hub) bool { return strings.EqualFold(h.Name, r.creates) })
		if err == nil && !there && v.may(r.right, r.hub) {
			out.WriteString(r.form())
		}
	}
}

func (r runnable) form() string {
	safe := template.HTMLEscapeString
	var out strings.Builder
	out.WriteString(`<form class="acts" method="post" action="` + safe(r.action) + `">`)
	for _, f := range r.fields {
		out.WriteString(`<input type="hidden" name="` + f[0] + `" value="` + safe(f[1]) + `">`)
	}
	out.WriteString(`<button class="btn slim" type="submit">Run it here</button></form>` + "\n")
	return out.String()
}
