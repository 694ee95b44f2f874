package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/spf13/cobra"
)

// declared is the least that the configuration wants of each definition; {} is the place of one
// more field.
var declared = map[string]string{
	"hub":          "hubs: [{name: abc, {}}]",
	"topic":        "topics: [{name: abc, {}}]",
	"subscription": "subscriptions: [{name: abc, topic: t, endpoint: 'http://x/', {}}]",
	"function":     "functions: [{name: abc, hub: h, endpoint: 'http://x/', {}}]",
	"policy":       "policies: [{name: abc, rights: [send], {}}]",
}

// samples are values that other fields would refuse.
var samples = map[string]string{
	"duration": "5s", "durations": "1s,2s", "size": "1GiB", "status": "503=5s", "statuses": "400,413", "NAME=VALUE": "X-Env=prod",
	"100/30s": "7/5s", "schema": "cloudevents", "format": "eventhubs", "target": "mailto:ops@example.com", "URL": "http://other/", "text": "0123456789abcdef", "rights": "listen", "JSON": "",
}

// Whatever a definition can be told, flags, file and API are told in the same words and understand
// the same.
func TestFlagsFileAndAPIUnderstandTheSame(t *testing.T) {
	for _, d := range spec.Definitions() {
		for _, row := range d.List(spec.API | spec.File | spec.Create) {
			if declaredAlready := row.Name == "topic" || row.Name == "sourceHub" || row.Name == "hub" || row.Name == "endpoint" || row.Name == "pull"; declaredAlready {
				continue // they would be a second source or target
			}
			t.Run(d.Name+"/"+row.FlagName(), func(t *testing.T) {
				text := sample(d, row)
				byFlag := reflect.New(d.Type).Interface()
				cmd := &cobra.Command{}
				addDefinitionFlags(cmd, d, spec.Create, byFlag)
				given := text
				if row.Value == "file" {
					given = filepath.Join(t.TempDir(), "file")
					testkit.Must(t, os.WriteFile(given, []byte(text), 0o600))
				}
				testkit.Must(t, cmd.Flags().Set(row.FlagName(), given))
				want := fieldOf(t, byFlag, row.Name)
				if want == nil {
					t.Fatalf("--%s %s sets nothing", row.FlagName(), given)
				}
				testkit.Diff(t, want, fieldOf(t, fromFile(t, d, row, text), row.Name)) // the file understands the same
				byAPI := reflect.New(d.Type).Interface()
				if err := json.Unmarshal(encoded(t, byFlag), byAPI); err != nil || !reflect.DeepEqual(byFlag, byAPI) {
					t.Errorf("the API understands something else: %+v, %v", byAPI, err)
				}
			})
		}
	}
}

func sample(d spec.Definition, row spec.Field) string {
	if text := samples[row.Value]; text != "" {
		return text
	}
	if len(row.OneOf) > 0 {
		return row.OneOf[0]
	}
	switch kind := d.Kind(row); {
	case kind == reflect.TypeFor[json.RawMessage]():
		return `{"a":{"b":1}}`
	case kind.Kind() == reflect.Bool:
		return "true"
	case kind.Kind() == reflect.Int, kind.Kind() == reflect.Float64, kind == reflect.TypeFor[admin.Retries]():
		return "7"
	}
	return "word"
}

// fromFile declares the field in a configuration file, in the way that suits its type.
func fromFile(t *testing.T, d spec.Definition, row spec.Field, text string) any {
	t.Helper()
	value := strconv.Quote(text)
	switch kind := d.Kind(row); {
	case kind == reflect.TypeFor[json.RawMessage]():
		value = text
	case d.Repeated(row):
		value = "[" + value + "]"
	}
	key, rest, nested := strings.Cut(row.Name, ".")
	entry := key + ": " + value
	if nested {
		entry = fmt.Sprintf("%s: {%s: %s}", key, rest, value)
	}
	document := strings.Replace(declared[d.Name], "{}", entry, 1)
	if key == "rights" {
		document = "policies: [{name: abc, " + entry + "}]"
	}
	if key == "pull" {
		document = strings.Replace(document, "endpoint: 'http://x/', ", "", 1)
	}
	name := filepath.Join(t.TempDir(), "eventyard.yaml")
	testkit.Must(t, os.WriteFile(name, []byte(document), 0o600))
	loaded, err := config.Load(config.Sources{File: name})
	testkit.Must(t, err, "%s", document)
	c := loaded.Config
	switch d.Name {
	case "hub":
		return &c.Hubs[0]
	case "topic":
		return &c.Topics[0]
	case "subscription":
		return &c.Subscriptions[0]
	case "function":
		return &c.Functions[0]
	}
	return &c.Policies[0]
}

func encoded(t *testing.T, request any) []byte {
	t.Helper()
	text, err := json.Marshal(request)
	testkit.Must(t, err)
	return text
}

// fieldOf is a field as it is sent.
func fieldOf(t *testing.T, request any, name string) (value any) {
	t.Helper()
	testkit.Must(t, json.Unmarshal(encoded(t, request), &value))
	for key := range strings.SplitSeq(name, ".") {
		members, _ := value.(map[string]any)
		value = members[key]
	}
	return value
}
