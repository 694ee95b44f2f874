package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// V7: the formula has the checksum of each archive that Homebrew may fetch.
func TestFormula(t *testing.T) {
	r := formulaOf123(t)
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

// V7: the formula is Ruby, which is as far as it goes without Homebrew.
func TestFormulaIsRuby(t *testing.T) {
	need(t, "ruby", "ruby")
	_, err := output(exec.Command("ruby", "-c", "-w", filepath.Join(formulaOf123(t).out, "eventyard.rb")))
	must(t, err)
}

// V7: what completes commands is a script of its shell, as the shell itself says.
func TestCompletionsAreScripts(t *testing.T) {
	for shell, file := range map[string]string{"bash": "eventyard.bash", "zsh": "_eventyard", "fish": "eventyard.fish"} {
		t.Run(shell, func(t *testing.T) {
			need(t, shell, shell)
			_, err := output(exec.Command(shell, "-n", theRelease(t).staged("completions", file)))
			must(t, err)
		})
	}
}

// formulaOf123 fills in the formula for a version whose archives are none.
func formulaOf123(t *testing.T) *release {
	t.Helper()
	source, err := filepath.Abs(repository)
	must(t, err)
	r := &release{source: source, out: t.TempDir(), version: "1.2.3", platforms: platforms}
	for _, p := range platforms {
		must(t, write(filepath.Join(r.out, r.name(p, ".tar.gz")), []byte(p.String())))
	}
	must(t, r.formula(t.Context()))
	return r
}
