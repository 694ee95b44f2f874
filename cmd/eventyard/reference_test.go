package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/reference/eventyard.yaml anew")

// The reference in docs is what the program prints; go test -update writes it.
func TestTheReferenceIsUpToDate(t *testing.T) {
	name := filepath.Join("..", "..", "docs", "reference", "eventyard.yaml")
	var printed bytes.Buffer
	testkit.Must(t, run(t.Context(), []string{"config", "doc"}, nil, &printed, os.Stderr))
	if *update {
		testkit.Must(t, os.WriteFile(name, printed.Bytes(), 0o644))
	}
	kept, err := os.ReadFile(name)
	testkit.Must(t, err)
	if diff := cmp.Diff(string(kept), printed.String()); diff != "" {
		t.Errorf("%s is out of date; go test ./cmd/eventyard -update writes it:\n%s", name, diff)
	}
}
