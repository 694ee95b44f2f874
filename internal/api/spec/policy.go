package spec

import (
	"reflect"
	"strings"

	"github.com/eventyard/eventyard/admin"
)

// Policy is a name with two keys and some rights.
var Policy = Definition{
	Name: "policy", Type: reflect.TypeFor[admin.PolicyRequest](),
	Fields: []Field{
		{Name: "name", Value: "name", Required: true, Help: "its name", Not: Create | Update, Because: nameIsAnArgument},
		{Name: "hub", Value: "hub", Help: "hub that it is for", Default: "the whole namespace", Not: API | Update, Because: "the path of the call says it"},
		{Name: "rights", Value: "rights", Help: "what it allows: send, listen, manage, which is all of them, or metrics, which is to read the yard's metrics and nothing else", Required: true, set: setRights, Not: Update, Because: neverChanged},
		{Name: "primaryKey", Value: "text", Help: "its first key, 16 to 256 characters of ASCII without blanks and semicolons", Default: "generated", Secret: true, Not: Update, Because: neverChanged},
		{Name: "secondaryKey", Value: "text", Help: "its second key, likewise", Default: "generated", Secret: true, Not: Update, Because: neverChanged},
		quotaEvents, quotaBytes,
	},
}

// setRights takes them with commas between, too.
func setRights(definition any, text string) error {
	p := definition.(*admin.PolicyRequest)
	p.Rights = append(p.Rights, strings.Split(text, ",")...)
	return nil
}

const neverChanged = "a policy is deleted and created again"
