package spec

import (
	"reflect"

	"github.com/eventyard/eventyard/admin"
)

// Topic is what events are published to over HTTP.
var Topic = Definition{
	Name: "topic", Type: reflect.TypeFor[admin.TopicRequest](),
	Fields: []Field{
		{Name: "name", Value: "name", Required: true, Help: "its name, " + gridName(maxTopicName), Not: Create | Update, Because: nameIsAnArgument, check: CheckTopicName},
		{Name: "schema", Value: "schema", Help: "what is published: eventgrid, cloudevents or custom; it cannot be changed later", Default: "eventgrid", Not: Update, Because: "it cannot be changed"},
		{Name: "domain", Help: "make it a domain: each event names the topic of the domain that it is for; it cannot be changed later", Not: Update, Because: "it cannot be changed"},
		{Name: "mapping", Value: "file", Help: "JSON that says where events of a custom schema have what an envelope needs"},
		{Name: "key1", Value: "text", Help: "the first access key, 16 to 256 characters of ASCII without blanks and semicolons", Default: "generated", Secret: true, Not: Update, Because: "regenerate replaces it"},
		{Name: "key2", Value: "text", Help: "the second access key, likewise", Default: "generated", Secret: true, Not: Update, Because: "regenerate replaces it"},
		{Name: "disableKeys", Help: "refuse both keys: only bearer tokens and policies of the yard stay valid"},
		{Name: "disableKeys", Flag: "enable-keys", Help: "accept the keys again", set: setEnableKeys, Not: API | File | Create, Because: "it undoes disableKeys"},
		quotaEvents, quotaBytes,
		{Name: "properties", Value: "JSON", Help: "Event Grid's own management shape; the other fields override it", Not: Create | Update, Because: "it is an object"},
	},
}

func setEnableKeys(definition any, text string) error {
	enable, err := ParseBool(text)
	definition.(*admin.TopicRequest).DisableKeys = new(!enable)
	return err
}
