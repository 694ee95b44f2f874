package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// V7: every command has a manual page that man can show, and the configuration file has one.
func TestEveryCommandHasAManualPage(t *testing.T) {
	folder := t.TempDir()
	testkit.Must(t, run(t.Context(), []string{"manual", folder}, nil, os.Stdout, os.Stderr))
	for page, says := range map[string]string{
		"eventyard.1": "eventyard\\-hub(1)", "eventyard-hub-create.1": "\\-\\-partitions", "eventyard-serve.1": "SIGHUP", "eventyard.yaml.5": "EVENTYARD_DATA",
	} {
		text := string(testkit.Value(os.ReadFile(filepath.Join(folder, page)))(t))
		testkit.That(t, strings.Contains(text, says), "%s does not say %s", page, says)
	}
	pages := testkit.Value(filepath.Glob(filepath.Join(folder, "*")))(t)
	testkit.That(t, len(pages) > 80, "there are %d pages", len(pages))
	if err := parts.Need("groff", "groff-base"); err != nil {
		parts.Missing(t, "nobody judges the pages: %v", err)
	}
	out, err := exec.CommandContext(t.Context(), "groff", append([]string{"-man", "-Kutf8", "-Tutf8", "-wmac", "-Wbreak", "-z"}, pages...)...).CombinedOutput()
	testkit.Must(t, err)
	testkit.Equal(t, string(out), "", "groff says")
}

func TestTextsStayAsTheyAreInManualPages(t *testing.T) {
	testkit.Equal(t, roff("a -o b\\c\n.end\n'x'"), "a \\-o b\\ec\n\\&.end\n\\&'x'")
}
