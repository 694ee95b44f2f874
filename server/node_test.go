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
	first, err := keptInstance(dir)
	if err != nil || !nodeID.MatchString(first) {
		t.Fatalf("made %q, %v", first, err)
	}
	if again, err := keptInstance(dir); err != nil || again != first {
		t.Errorf("first %q, then %q, %v", first, again, err)
	}
	for _, spoiled := range []string{"", "\n", "two words", "a/b", strings.Repeat("x", 65)} {
		testkit.Must(t, os.WriteFile(file, []byte(spoiled), 0o600))
		made, err := keptInstance(dir)
		kept, readErr := os.ReadFile(file)
		if err != nil || readErr != nil || made == first || !nodeID.MatchString(made) || string(kept) != made+"\n" {
			t.Errorf("in place of %q: %q, kept %q, %v, %v", spoiled, made, kept, err, readErr)
		}
	}
	if id, err := keptInstance(file); err == nil || id != "" {
		t.Errorf("in a folder that is none: %q, %v", id, err)
	}
}

// C4: a node's name is what the operator gave it or made of the machine's, and each process of it is
// another instance.
func TestNodeNames(t *testing.T) {
	for machine, want := range map[string]string{"yard-1.example.net": "yard-1.example.net", "ein hof/ü": "ein-hof--", "": "node", strings.Repeat("x", 70): strings.Repeat("x", 64)} {
		testkit.Equal(t, plainName(machine), want, "the name of machine %q", machine)
		testkit.That(t, nodeID.MatchString(plainName(machine)), "%q cannot be a name", plainName(machine))
	}
	for name, ok := range map[string]bool{"": true, "yard-1": true, "a.b_c": true, "two words": false, "a/b": false, "ü": false, "a*": false, strings.Repeat("x", 65): false} {
		testkit.Equal(t, testkit.Err(New(Config{Node: name})) == nil, ok, "name %q", name)
	}
	cfg := Config{Node: "yard-1"}
	first, second := testkit.Value(cfg.instance(""))(t), testkit.Value(cfg.instance(""))(t)
	testkit.That(t, strings.HasPrefix(first, "yard-1-") && first != second, "instances %q and %q", first, second)
}
