package config

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// What is suggested is what was probably meant; what is far from everything gets no suggestion.
func TestDidYouMean(t *testing.T) {
	known := []string{"data", "sync", "syncInterval", "http", "https", "kafka", "orders", "filter"}
	for word, want := range map[string]string{
		"snyc": "sync", "synk": "sync", "syncinterval": "syncInterval", "syncIntervall": "syncInterval", "htp": "http", "kaffka": "kafka",
		"order": "orders", "ODRERS": "orders", "orders": "orders", "fliter": "filter", "filer": "filter",
		"": "", "x": "", "zzzqq": "", "retention": "", "kilo": "", "date": "data", "copy": "", "payments": "",
	} {
		testkit.Equal(t, DidYouMean(word, known), want, "%q", word)
	}
	testkit.Equal(t, distance("ca", "ac"), 1, "a swap costs")
}

func TestVariablesThatAreNoSettings(t *testing.T) {
	known := []string{"EVENTYARD_DATA", "EVENTYARD_CA"}
	testkit.Equal(t, unknownVariable("EVENTYARD_DAAT", known), "environment: EVENTYARD_DAAT is no setting, did you mean EVENTYARD_DATA?")
	testkit.Equal(t, unknownVariable("EVENTYARD_ZZZ", known), "environment: EVENTYARD_ZZZ is no setting: eventyard config doc lists them")
}
