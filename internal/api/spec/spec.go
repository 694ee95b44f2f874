// Package spec says, once for each definition (hub, topic, subscription, function, policy), which
// fields it has. A field is one row: its name, what it means, its range and default, and where it
// may be set. From the rows follow the flags of the command line with their help, the keys of the
// configuration file, the checks of both and of the API's requests, the reference pages, and
// descriptions and bounds in the API's schema. The Go types of the fields, and with them the JSON, are package admin's.
package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/eventyard/eventyard/internal/config/quantity"
)

// Definition is a kind of thing that users define.
type Definition struct {
	// Name is the word for it, in a command and in a sentence.
	Name string
	// Type is the request of package admin that creates or changes one.
	Type   reflect.Type
	Fields []Field
}

// Definitions are all of them.
func Definitions() []Definition { return []Definition{Hub, Topic, Subscription, Function, Policy} }

// Field is one thing that a definition can be told.
type Field struct {
	// Name is the key in JSON and in the configuration file. Behind a dot it is one of an object:
	// oauth.tokenUrl.
	Name string
	// Flag is the flag without its dashes; empty: it follows from the name (maxEvents: max-events).
	Flag string
	// Was is a former name of the flag, which is taken still and shown nowhere.
	Was string
	// Value is the word that stands for the value in help; it also says what kind of text is
	// wanted: a duration, a file.
	Value string
	// Help is a phrase that goes on behind the name: "attempts for each event".
	Help string
	// Min and Max bound a number; zero: no bound. Zero says what 0 means where it is allowed
	// although Min is above it.
	Min, Max float64
	Zero     string
	// Least and Most bound a duration; zero: no bound. A duration of zero stands for the default.
	Least, Most time.Duration
	// Length is how many characters a text may have, each of them where there are several; zero: any.
	Length int
	// OneOf are the words that are allowed; none: any.
	OneOf []string
	// Default is what holds if the field is not given, as a text or a phrase; empty: nothing.
	// Required: it has to be given.
	Default  string
	Required bool
	// Secret values are never shown, and a flag may name the file that has one: @FILE.
	Secret bool
	// Not lists where it cannot be set, and Because tells why.
	Not     Where
	Because string
	// Needs is the name of the field without which it has no effect.
	Needs string

	// check judges a text beyond the type, range and words; nil: all are good.
	check func(text string) error
	// set reads a text where its type alone does not say how; nil: by type.
	set func(definition any, text string) error
}

// Where is a set of the ways to set a field.
type Where uint8

// The ways to set a field.
const (
	API    Where = 1 << iota // the JSON of the HTTP API
	File                     // the configuration file
	Create                   // a flag of the command that creates
	Update                   // a flag of the command that changes
)

// In tells whether the field can be set there.
func (f Field) In(w Where) bool { return f.Not&w == 0 }

// List gives the fields that can be set there, by all of the ways if there are several.
func (d Definition) List(w Where) []Field {
	return slices.DeleteFunc(slices.Clone(d.Fields), func(f Field) bool { return !f.In(w) })
}

// Field finds a field by its name.
func (d Definition) Field(name string) (Field, bool) {
	i := slices.IndexFunc(d.Fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return d.Fields[i], true
}

// Of finds the definition that a request of package admin belongs to.
func Of(t reflect.Type) (Definition, bool) {
	all := Definitions()
	i := slices.IndexFunc(all, func(d Definition) bool { return d.Type == t })
	if i < 0 {
		return Definition{}, false
	}
	return all[i], true
}

// FlagName is the flag without its dashes.
func (f Field) FlagName() string {
	if f.Flag != "" {
		return f.Flag
	}
	return Separated(f.Name, "-")
}

// Separated turns a key like log.syncInterval into log-sync-interval.
func Separated(key, separator string) string {
	var b strings.Builder
	for _, r := range key {
		switch {
		case r == '.':
			b.WriteString(separator)
		case unicode.IsUpper(r):
			b.WriteString(separator)
			b.WriteRune(unicode.ToLower(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Usage is the help of a field's flag.
func (d Definition) Usage(f Field) string {
	text := f.phrase()
	if needed, needs := d.Field(f.Needs); needs {
		text = "with --" + needed.FlagName() + ": " + text
	}
	if f.Secret {
		text += "; @FILE reads it from a file"
	}
	if d.Repeated(f) {
		text += "; may be repeated"
	}
	if f.Default != "" {
		text += " (default " + f.Default + ")"
	}
	return text
}

// Meaning is its help as a sentence.
func (f Field) Meaning() string {
	text := f.phrase()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// Sentence is its help in the configuration file, the reference and the API's schema.
func (f Field) Sentence() string {
	text := f.Meaning()
	if f.Default != "" {
		text += " Default: " + f.Default + "."
	}
	if f.Required {
		text += " Required."
	}
	return text
}

// phrase is the help with what is allowed.
func (f Field) phrase() string {
	text := f.Help
	if f.Bounded() {
		text += ", " + f.span()
	}
	if f.Zero != "" {
		text += "; 0: " + f.Zero
	}
	if len(f.OneOf) > 0 {
		text += ": " + either(f.OneOf)
	}
	return text
}

func either(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Bounded tells whether the row has a range.
func (f Field) Bounded() bool {
	return f.Min != 0 || f.Max != 0 || f.Least != 0 || f.Most != 0 || f.Length != 0
}

// span is the range in words.
func (f Field) span() string {
	switch {
	case f.Length != 0:
		return fmt.Sprintf("at most %d characters", f.Length)
	case f.Least != 0:
		return quantity.FormatHours(f.Least) + " to " + quantity.FormatHours(f.Most)
	case f.Most != 0:
		return "at most " + quantity.FormatHours(f.Most)
	case f.Max == 0:
		return "at least " + formatNumber(f.Min)
	case f.Value == "size":
		return quantity.FormatSize(int64(f.Min)) + " to " + quantity.FormatSize(int64(f.Max))
	}
	return formatNumber(f.Min) + " to " + formatNumber(f.Max)
}

func formatNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
