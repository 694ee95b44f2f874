package filter

import (
	"encoding/json"
	"fmt"
	"strings"
)

// problem is what is wrong with a condition. Whoever reports it adds an example in the form
// that the user writes: JSON or text.
type problem struct {
	what string
	// op is the operator to show; nil shows any.
	op *operator
}

func wrong(op *operator, format string, args ...any) *problem {
	return &problem{what: fmt.Sprintf(format, args...), op: op}
}

// samples are operands as JSON and as text, by what an operator takes.
var samples = map[operand]struct{ json, text string }{
	nothing:   {``, ``},
	oneBool:   {`,"value":true`, ` true`},
	oneNumber: {`,"value":5`, ` 5`},
	numbers:   {`,"values":[1,2.5]`, ` 1,2.5`},
	ranges:    {`,"values":[[10,20],[30,40]]`, ` 10-20,30-40`},
	strs:      {`,"values":["red","blue"]`, ` red,blue`},
}

func (p *problem) withJSON(key string) string {
	op, key := p.sample(key)
	quoted, _ := json.Marshal(key) // a string always can be
	return fmt.Sprintf(`%s; write for example {"operatorType":%q,"key":%s%s}`, p.what, op.name, quoted, samples[op.takes].json)
}

func (p *problem) withText(key string) string {
	op, key := p.sample(key)
	return fmt.Sprintf("%s; write for example '%s %s%s'", p.what, key, op.name, samples[op.takes].text)
}

// sample is what to show: with the user's own key, if that can be used.
func (p *problem) sample(given string) (*operator, string) {
	op := p.op
	if op == nil {
		op = findOperator("StringIn")
	}
	if _, problem := parseKey(given); problem != nil || len(given) > 60 || strings.ContainsAny(given, " \t\n") || findOperator(given) != nil {
		given = "data.color"
		if op.test == testSpans {
			given = "data.total"
		}
	}
	return op, given
}
