package console

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
)

// action is what a form does: calls of the API, named as its table has them.
type action struct {
	path  string
	calls []string
	// sheet is the form, on a page of its own; nil: it is a button of another page.
	sheet func(v *visit) (*sheet, error)
	// do does it. What the API refuses is shown on the form.
	do func(v *visit) (outcome, error)
}

// outcome is what comes of an action: another page with a sentence of what was done, or the form
// again, with what it would do or with what was asked for.
type outcome struct {
	to, done string
	n        int
	sheet    *sheet
	// text is for the script, and no page.
	text string
}

// sheet is a form with a question.
type sheet struct {
	Title, About string
	Fields       []field
	// Note is what it would do, in numbers, and Tests the conditions that it comes from.
	Note    *note
	Tests   []journeyTest
	Buttons []button
	// Back is where one goes who leaves it.
	Back string
	// Command does the same on the command line.
	Command string
	// Secrets are shown once.
	Secrets []secret
	Problem *frame.Refusal
}

// field is something to be filled in. Kind is text, number, area, select, check or hidden.
type field struct {
	Name, Label, Kind, Value, Hint, Placeholder string
	Options                                     []option
	Optional                                    bool
	// More: few want it, so that it is folded away.
	More bool
}

// Plain are the fields that everybody sees, and Folded those that few want.
func (s *sheet) Plain() []field  { return s.fields(false) }
func (s *sheet) Folded() []field { return s.fields(true) }

func (s *sheet) fields(more bool) (some []field) {
	for _, f := range s.Fields {
		if f.More == more {
			some = append(some, f)
		}
	}
	return some
}

// Unfolded: there is something in what is folded away.
func (s *sheet) Unfolded() bool {
	return slices.ContainsFunc(s.Folded(), func(f field) bool { return f.Value != "" })
}

type option struct{ Value, Text string }

// note is a sentence in a box; Tone is good, odd or bad.
type note struct{ Tone, Icon, Text, More string }

// button sends the form. Tone is main or danger; Step says which of the form's steps it is.
type button struct{ Text, Tone, Step string }

// secret is a key or a connection string.
type secret struct{ Label, Text string }

// Steps of forms that say first what they would do.
const (
	look = "look"
	act  = "act"
)

// step is the one that was asked for.
func (v *visit) step() string { return v.r.PostFormValue("step") }

// value is what a form was sent with, or what it has at first.
func (v *visit) value(name, first string) string {
	if v.r.Form == nil {
		_ = v.r.ParseMultipartForm(1 << 20) // what cannot be read is not there
	}
	if given, ok := v.r.Form[name]; ok && len(given) > 0 {
		return given[0]
	}
	return first
}

// show answers with the form.
func (a *action) show(v *visit) error {
	s, err := a.sheet(v)
	if err != nil {
		return err
	}
	return v.showSheet(http.StatusOK, s)
}

// run does what the form says.
func (a *action) run(v *visit) error {
	done, err := a.do(v)
	if said, ok := refusalOf(err); ok && a.sheet != nil {
		s, err := a.sheet(v)
		if err != nil {
			return err
		}
		s.Problem = &said
		return v.showSheet(said.Status, s)
	}
	switch {
	case err != nil:
		return err
	case done.sheet != nil:
		return v.showSheet(http.StatusOK, done.sheet)
	case done.text != "":
		v.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(v.w, done.text)
		return nil
	}
	n := ""
	if done.n > 0 {
		n = strconv.Itoa(done.n)
	}
	http.Redirect(v.w, v.r, more(done.to, "done", done.done, "n", n), http.StatusSeeOther)
	return nil
}

func (v *visit) showSheet(status int, s *sheet) error {
	section := sectionOf(v.r.URL.Path)
	return v.show(status, "sheet", &screen{
		Title: s.Title, Section: section, Crumbs: []crumb{{Name: "Back", Link: s.Back}, {Name: s.Title}}, View: s, secret: len(s.Secrets) > 0,
	})
}

// refusalOf is what the API, or a form, said of what was asked for.
func refusalOf(err error) (frame.Refusal, bool) {
	if err == nil {
		return frame.Refusal{}, false
	}
	if _, ok := errors.AsType[*admin.Problem](err); ok {
		return (&exchange{}).Judge(err), true
	}
	said, ok := errors.AsType[*frame.Refusal](err)
	if !ok {
		return frame.Refusal{}, false
	}
	return *said, true
}

// wrongInput says what is wrong with a field.
func wrongInput(detail string) error {
	return &frame.Refusal{Status: http.StatusUnprocessableEntity, Code: "invalid-input", Title: "This cannot be done", Detail: detail}
}

// typed checks that a name was written out, as what cannot be undone wants it.
func (v *visit) typed(name string) error {
	if v.r.PostFormValue("name") == name {
		return nil
	}
	return wrongInput("The name that you typed is not " + name + ". Nothing was deleted.")
}

// deletion is the form of what cannot be undone.
func deletion(what, name, about, back, command string) *sheet {
	return &sheet{
		Title: "Delete " + what + " " + name, About: about, Back: back, Command: command,
		Fields:  []field{{Name: "name", Label: "Type " + name + " to confirm", Kind: "text"}},
		Buttons: []button{{"Delete", "danger", act}},
	}
}

// integer reads a number that may be left out.
func (v *visit) integer(name string) (*int, error) {
	text := strings.TrimSpace(v.r.PostFormValue(name))
	if text == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil, wrongInput(strconv.Quote(text) + " is not a whole number.")
	}
	return &n, nil
}

// filled gives a field's text, nil where it was left empty.
func (v *visit) filled(name string) *string {
	text := strings.TrimSpace(v.r.PostFormValue(name))
	if text == "" {
		return nil
	}
	return &text
}

// linesOf reads lines of a name and a value; nil: there are none.
func linesOf(text string) (all map[string]string, err error) {
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case ok && name != "":
			if all == nil {
				all = map[string]string{}
			}
			all[strings.TrimSpace(name)] = strings.TrimSpace(value)
		case strings.TrimSpace(line) != "":
			return nil, wrongInput(strconv.Quote(cutText(line, 100)) + " is no line of a name and a value: write it as name: value. Nothing was done.")
		}
	}
	return all, nil
}

// words are the parts of a text with commas.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// shell writes a word as a command line takes it.
func shell(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,@%+", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// command is a line of the command line.
func command(parts ...string) string {
	for i, p := range parts {
		parts[i] = shell(p)
	}
	return "eventyard " + strings.Join(parts, " ")
}

// doneSentences say what an action has done. They are chosen by a word in the path, and hold nothing
// else of it but a number.
var doneSentences = map[string]func(n int) string{
	"created":   func(int) string { return "Created." },
	"changed":   func(int) string { return "Saved." },
	"deleted":   func(int) string { return "Deleted." },
	"again":     func(int) string { return "Sent again." },
	"sent":      func(n int) string { return plural(n, "event was stored.", "events were stored.") },
	"moved":     func(n int) string { return plural(n, "checkpoint was moved.", "checkpoints were moved.") },
	"release":   func(int) string { return "The partition was released. Another instance takes it over." },
	"forgotten": func(int) string { return "The instance is forgotten." },
	"noticed":   func(int) string { return "The test notice was sent." },
	"published": func(int) string { return "Published." },
	"redriven": func(n int) string {
		return plural(n, "event is on its way again.", "events are on their way again.")
	},
	"checking": func(int) string { return "All events are being read. What is found stands below." },
	"purged":   func(n int) string { return plural(n, "dead letter was deleted.", "dead letters were deleted.") },
	"probed":   func(int) string { return "The next event decides whether the endpoint is healthy." },
	"paused":   func(int) string { return "Paused. Events wait in the log." },
	"resumed":  func(int) string { return "Resumed." },
	"held":     func(int) string { return "Held until somebody resumes it." },
	"rotated":  func(int) string { return "There is a new key. The old one remains valid for 24 hours." },
}

func doneSentence(r *http.Request) string {
	query := r.URL.Query()
	say := doneSentences[query.Get("done")]
	if say == nil {
		return ""
	}
	n, _ := strconv.Atoi(query.Get("n"))
	return say(n)
}
