package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/admin"
)

func TestTheEmulatorsConfigJSONIsReadAsItIs(t *testing.T) {
	got, err := Load(Sources{File: "testdata/emulator.json"})
	if err != nil {
		t.Fatal(err)
	}
	want := []admin.HubRequest{
		{Name: "eh1", Partitions: new(2), Groups: []string{"cg1"}},
		{Name: "telemetry/raw", Partitions: new(64), Groups: []string{"$default", "cg1"}},
	}
	if diff := cmp.Diff(want, got.Config.Hubs); diff != "" {
		t.Error(diff)
	}
	if got.Config.Namespace != "emulatorNs1" || len(got.Warnings) != 0 {
		t.Errorf("namespace %q, warnings %q", got.Config.Namespace, got.Warnings)
	}
}

func TestAnEditedConfigJSONIsReadWithWarnings(t *testing.T) {
	got, err := Load(Sources{File: "testdata/tolerant.json"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]admin.HubRequest{{Name: "a//b", Partitions: new(1)}, {Name: "c"}}, got.Config.Hubs); diff != "" {
		t.Error(diff)
	}
	want := []string{
		`testdata/tolerant.json:3:3: key "$schema" is not known and has no effect`,
		`testdata/tolerant.json:9:50: key "color" is not known and has no effect`,
		`testdata/tolerant.json:8:17: type "ServiceBus" is taken for EventHub`,
		`testdata/tolerant.json:10:11: hub "c" has no PartitionCount and gets the default`,
	}
	if diff := cmp.Diff(want, got.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestTheEmulatorsFileIsReportedByItsContent(t *testing.T) {
	for content, want := range map[string]bool{
		`{"UserConfig":{}}`:                true,
		"\xef\xbb\xbf{\"UserConfig\": {}}": true,
		"// note\n{ \"userconfig\" : {} }": true,
		"{data: x}":                        false,
		"UserConfig: {}":                   false,
		"":                                 false,
	} {
		if got := isEmulator([]byte(content)); got != want {
			t.Errorf("%q: %t", content, got)
		}
	}
}
