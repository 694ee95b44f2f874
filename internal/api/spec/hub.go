package spec

import (
	"reflect"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config/quantity"
)

// Hub is a log of events in partitions.
var Hub = Definition{
	Name: "hub", Type: reflect.TypeFor[admin.HubRequest](),
	Fields: []Field{
		{Name: "name", Value: "name", Required: true, Help: "its name, 1 to 256 letters, digits, '-', '_', '.' and '/', beginning with a letter, a digit or '_' and ending with a letter or digit; case is ignored",
			Not: Create | Update, Because: nameIsAnArgument},
		{Name: "partitions", Value: "number", Help: "number of partitions, which cannot be changed later", Min: 1, Max: 1024, Default: "4", Not: Update, Because: "it cannot be changed later"},
		{Name: "retention.age", Value: "duration", Help: "remove events older than this, like 24h or 7d; 0 keeps them forever", Default: "7d", set: setAge},
		{Name: "retention.bytes", Value: "size", Help: "remove the oldest events of a partition while it holds more, like 1GiB; 0: no limit", Default: "0", set: setBytes},
		quotaEvents, quotaBytes,
		{Name: "groups", Value: "name", Help: "consumer groups that must exist besides $Default", Not: API | Create | Update, Because: "groups have calls and commands of their own"},
	},
}

// setAge writes the age in the units that the API reads.
func setAge(definition any, text string) error {
	age, err := quantity.ParseDuration(text)
	if err == nil {
		retentionOf(definition).Age = new(quantity.FormatHours(age))
	}
	return err
}

func setBytes(definition any, text string) error {
	bytes, err := quantity.ParseSize(text)
	if err == nil {
		retentionOf(definition).Bytes = &bytes
	}
	return err
}

func retentionOf(definition any) *admin.RetentionRequest {
	hub := definition.(*admin.HubRequest)
	if hub.Retention == nil {
		hub.Retention = new(admin.RetentionRequest)
	}
	return hub.Retention
}
