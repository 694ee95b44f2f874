package config

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestNearest(t *testing.T) {
	for word, want := range map[string]string{"snyc": "sync", "synk": "sync", "syncinterval": "syncInterval", "htp": "http", "kaffka": "kafka", "": "data"} {
		if got := nearest(word, []string{"data", "sync", "syncInterval", "http", "https", "kafka"}); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
	testkit.Equal(t, distance("ca", "ac"), 1, "a swap costs")
}
