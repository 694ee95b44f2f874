package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/reference/eventyard.yaml anew")

// The reference in docs is what the program prints; go test -update writes it.
func TestTheReferenceIsUpToDate(t *testing.T) {
	name := filepath.Join("..", "..", "docs", "reference", "eventyard.yaml")
	var printed bytes.Buffer
	if err := run(t.Context(), []string{"config", "doc"}, nil, &printed, os.Stderr); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(name, printed.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(kept), printed.String()); diff != "" {
		t.Errorf("%s is out of date; go test ./cmd/eventyard -update writes it:\n%s", name, diff)
	}
}
