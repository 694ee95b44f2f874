package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/internal/grid/filter"
)

// showFilter tells which events are meant, a line for each condition: in the words of the command
// line. What it does not understand it shows as it is.
func showFilter(text json.RawMessage) (lines []string) {
	if len(text) == 0 {
		return nil
	}
	var f filter.Config
	if json.Unmarshal(text, &f) != nil {
		return []string{string(text)}
	}
	if len(f.EventTypes) > 0 {
		lines = append(lines, "type "+strings.Join(f.EventTypes, " or "))
	}
	sensitive := ""
	if f.SubjectCaseSensitive {
		sensitive = " (case-sensitive)"
	}
	if f.SubjectBeginsWith != "" {
		lines = append(lines, "subject begins with "+f.SubjectBeginsWith+sensitive)
	}
	if f.SubjectEndsWith != "" {
		lines = append(lines, "subject ends with "+f.SubjectEndsWith+sensitive)
	}
	for _, c := range f.Advanced {
		lines = append(lines, strings.TrimSpace(c.Key+" "+c.Operator+" "+showOperand(c)))
	}
	if f.Arrays {
		lines = append(lines, "looking into arrays")
	}
	return lines
}

// showOperand writes values as --filter takes them.
func showOperand(c filter.Condition) string {
	if len(c.Value) > 0 {
		return string(c.Value)
	}
	var values []any
	decoder := json.NewDecoder(strings.NewReader(string(c.Values)))
	decoder.UseNumber() // which keeps all digits
	if decoder.Decode(&values) != nil {
		return string(c.Values)
	}
	texts := make([]string, len(values))
	for i, value := range values {
		var plain bool
		if texts[i], plain = showValue(value); !plain {
			return string(c.Values)
		}
	}
	return strings.Join(texts, ",")
}

// showValue also tells whether it can be written without quotes and brackets.
func showValue(value any) (text string, plain bool) {
	switch v := value.(type) {
	case string:
		return v, v != "" && v == strings.TrimSpace(v) && !strings.ContainsAny(v, `,"[`)
	case json.Number:
		return v.String(), true
	case []any:
		if len(v) == 2 {
			return fmt.Sprintf("%v-%v", v[0], v[1]), true
		}
	}
	return "", false
}
