package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// F1: a data folder keeps its id, and one that was spoiled is replaced.
func TestNode(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, NodeFile)
	first, err := node(dir)
	if err != nil || !nodeID.MatchString(first) {
		t.Fatalf("made %q, %v", first, err)
	}
	if again, err := node(dir); err != nil || again != first {
		t.Errorf("first %q, then %q, %v", first, again, err)
	}
	for _, spoiled := range []string{"", "\n", "two words", "a/b", strings.Repeat("x", 65)} {
		testkit.Must(t, os.WriteFile(file, []byte(spoiled), 0o600))
		made, err := node(dir)
		kept, readErr := os.ReadFile(file)
		if err != nil || readErr != nil || made == first || !nodeID.MatchString(made) || string(kept) != made+"\n" {
			t.Errorf("in place of %q: %q, kept %q, %v, %v", spoiled, made, kept, err, readErr)
		}
	}
	if id, err := node(file); err == nil || id != "" {
		t.Errorf("in a folder that is none: %q, %v", id, err)
	}
}
