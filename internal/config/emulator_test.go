package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestTheEmulatorsConfigJSONIsReadAsItIs(t *testing.T) {
	got, err := Load(Sources{File: "testdata/emulator.json"})
	testkit.Must(t, err)
	want := []admin.HubRequest{
		{Name: "eh1", Partitions: new(2), Groups: []string{"cg1"}},
		{Name: "telemetry/raw", Partitions: new(64), Groups: []string{"$default", "cg1"}},
	}
	testkit.Diff(t, want, got.Config.Hubs)
	testkit.Equal(t, got.Config.Namespace, "emulatorNs1", "namespace %q, warnings %q", got.Config.Namespace, got.Warnings)
	testkit.Equal(t, len(got.Warnings), 0, "namespace %q, warnings %q", got.Config.Namespace, got.Warnings)
}

func TestAnEditedConfigJSONIsReadWithWarnings(t *testing.T) {
	got, err := Load(Sources{File: "testdata/tolerant.json"})
	testkit.Must(t, err)
	testkit.Diff(t, []admin.HubRequest{{Name: "a//b", Partitions: new(1)}, {Name: "c"}}, got.Config.Hubs)
	want := []string{
		`testdata/tolerant.json:3:3: key "$schema" is not known and has no effect`,
		`testdata/tolerant.json:9:50: key "color" is not known and has no effect`,
		`testdata/tolerant.json:8:17: type "ServiceBus" is taken for EventHub`,
		`testdata/tolerant.json:10:11: hub "c" has no PartitionCount and gets the default`,
	}
	testkit.Diff(t, want, got.Warnings)
}

// A yard is one namespace: hubs of several come together, and the last name counts.
func TestNamespacesOfAConfigJSONAreOneYard(t *testing.T) {
	file := filepath.Join(t.TempDir(), "Config.json")
	testkit.Must(t, os.WriteFile(file, []byte(`{"UserConfig": {"NamespaceConfig": [
		{"Name": "shop", "Entities": [{"Name": "orders", "PartitionCount": 2}]},
		{"Name": "bank", "Entities": [{"Name": "payments", "PartitionCount": 4}]}
	]}}`), 0o600))
	got, err := Load(Sources{File: file})
	testkit.Must(t, err)
	testkit.Diff(t, []admin.HubRequest{{Name: "orders", Partitions: new(2)}, {Name: "payments", Partitions: new(4)}}, got.Config.Hubs)
	testkit.Equal(t, got.Config.Namespace, "bank")
}

func TestTheEmulatorsFileIsRecognizedByItsContent(t *testing.T) {
	for content, want := range map[string]bool{
		`{"UserConfig":{}}`:                true,
		"\xef\xbb\xbf{\"UserConfig\": {}}": true,
		"// note\n{ \"userconfig\" : {} }": true,
		"{data: x}":                        false,
		"UserConfig: {}":                   false,
		"":                                 false,
	} {
		testkit.Equal(t, isEmulator([]byte(content)), want, "%q", content)
	}
}
