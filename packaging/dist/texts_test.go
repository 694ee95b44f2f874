package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The formula has the checksum of each archive that Homebrew may fetch.
func TestFormula(t *testing.T) {
	source, err := filepath.Abs(repository)
	must(t, err)
	r := &release{source: source, out: t.TempDir(), version: "1.2.3", platforms: platforms}
	for _, p := range platforms {
		must(t, write(filepath.Join(r.out, r.name(p, ".tar.gz")), []byte(p.String())))
	}
	must(t, r.formula(t.Context()))
	text, err := os.ReadFile(filepath.Join(r.out, "eventyard.rb"))
	must(t, err)
	for _, p := range platforms[:4] {
		sum, err := checksum(filepath.Join(r.out, r.name(p, ".tar.gz")))
		must(t, err)
		want := "/download/v1.2.3/" + r.name(p, ".tar.gz") + "\"\n      sha256 \"" + sum + "\"\n"
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
}
