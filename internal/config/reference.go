package config

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/api/spec"
)

// Examples of the lists, as the reference shows them: a line of YAML for each field.
const (
	hubExample = `hubs:
  - name: orders
    partitions: 4
    retention: {age: 24h, bytes: 1GiB}
    groups: [billing]
`
	policyExample = `policies:
  - name: till
    hub: orders
    rights: [send]
    primaryKey: 16-characters-or-more-that-nobody-guesses
    secondaryKey: another-one-while-the-first-is-replaced
`
	topicExample = `topics:
  - name: orders
    schema: cloudevents
`
	subscriptionExample = `subscriptions:
  - name: billing
    topic: orders
    endpoint: https://billing.example.com/hook
    types: [order.placed]
    filters: [data.total NumberGreaterThan 100]
    deadLetter: folder:dead
`
	functionExample = `functions:
  - name: billing
    hub: orders
    group: billing
    endpoint: http://127.0.0.1:5000/
    retries: 5
    breaker: 100/30s
    notify: ["mailto:ops@example.com"]
`
)

// WriteReference prints every setting with its default and its other names. What it
// prints is itself an eventyard.yaml that changes nothing.
func WriteReference(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# eventyard.yaml: every setting with its default.\n" +
		"# Flags win over environment variables, these over this file. Durations are\n" +
		"# written like 90s, 24h or 7d, sizes like 64MiB or 1GB.\n")
	settings := Settings()
	var inside []string
	for _, s := range settings {
		b.WriteString("\n")
		path := strings.Split(s.Key, ".")
		sections, key := path[:len(path)-1], path[len(path)-1]
		for i, section := range sections { // those that the setting before was not in
			if i >= len(inside) || !slices.Equal(inside[:i+1], sections[:i+1]) {
				fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", i), section)
			}
		}
		inside = sections
		indent := strings.Repeat("  ", strings.Count(s.Key, "."))
		comment(&b, indent, s.Help)
		comment(&b, indent, "Flag --"+s.Flag+", variable "+s.Env+".")
		fmt.Fprintf(&b, "%s%s: %s\n", indent, key, cmp.Or(s.Default, `""`))
	}
	writeListReference(&b, "hubs", spec.Hub, hubExample)
	writeListReference(&b, "policies", spec.Policy, policyExample)
	writeListReference(&b, "topics", spec.Topic, topicExample)
	writeListReference(&b, "subscriptions", spec.Subscription, subscriptionExample)
	writeListReference(&b, "functions", spec.Function, functionExample)
	_, err := io.WriteString(w, b.String())
	return err
}

func writeListReference(b *strings.Builder, name string, d spec.Definition, example string) {
	b.WriteString("\n")
	comment(b, "", rowOf(lists, name).help)
	for _, f := range d.List(spec.File) {
		comment(b, "", "  "+f.Name+": "+f.Sentence())
	}
	comment(b, "", "For example:")
	for line := range strings.Lines(example) {
		b.WriteString("#   " + line)
	}
}

// comment writes text as comment lines of at most 80 characters. Leading spaces are
// kept on every line.
func comment(b *strings.Builder, indent, text string) {
	words := strings.TrimLeft(text, " ")
	margin := indent + "# " + text[:len(text)-len(words)]
	line := margin
	for word := range strings.FieldsSeq(words) {
		if len(line) > len(margin) && len(line)+1+len(word) > 80 {
			b.WriteString(line + "\n")
			line = margin
		}
		if len(line) > len(margin) {
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
}
