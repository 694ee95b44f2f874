package main

import (
	"fmt"
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

// powerShellParser reads PowerShell by the grammar that editors have, as PowerShell itself is in no package of
// Debian's: where it finds an error, it says so.
const powerShellParser = `
import sys, tree_sitter, tree_sitter_powershell
text = open(sys.argv[1], "rb").read()
def errors(node):
    if node.is_error or node.is_missing:
        yield "line %d: %s" % (node.start_point.row + 1, text[node.start_byte:node.end_byte][:80])
    for child in node.children:
        yield from errors(child)
found = list(errors(tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language())).parse(text).root_node))
print("\n".join(found))
sys.exit(len(found) > 0)
`

// V7: what completes commands in PowerShell is PowerShell, as far as its grammar goes.
func TestCompletionsForPowerShell(t *testing.T) {
	need(t, "python3", "python3")
	need(t, "pip3", "python3-pip")
	libraries, completions := t.TempDir(), theRelease(t).staged("completions", "eventyard.ps1")
	_, err := output(exec.Command("python3", "-m", "pip", "install", "--quiet", "--only-binary=:all:", "--target", libraries, "tree-sitter==0.25.2", "tree-sitter-powershell==0.26.4"))
	if err != nil && !inCI() {
		t.Skipf("the grammar of PowerShell cannot be had: %v", err)
	}
	must(t, err)
	parse := func(file string) error {
		cmd := exec.Command("python3", "-c", powerShellParser, file)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+libraries)
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	}
	must(t, parse(completions))
	script, err := os.ReadFile(completions)
	must(t, err)
	broken := filepath.Join(t.TempDir(), "broken.ps1")
	must(t, write(broken, []byte(strings.Replace(string(script), "if (", "if ", 1))))
	if parse(broken) == nil {
		t.Error("a script that is broken is taken for one that is right")
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
