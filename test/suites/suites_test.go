package suites

import (
	"flag"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
)

var (
	run      = flag.Bool("suites", false, "run the suites of -suites.packages over NATS servers")
	packages = flag.String("suites.packages", "./internal/hubs/broker", "the packages, from the repository's root on, with spaces between")
	only     = flag.String("suites.run", "", "only tests that match this, as go test -run")
)

// C1, C2: what services promise on files they promise on servers.
func TestSuitesOverServers(t *testing.T) {
	if !*run {
		t.Skip("make test-nats runs it")
	}
	servers := natstest.Start(t, 3)
	args := append([]string{"test", "-json", "-count=1", "-p", "1", "-timeout", "10m", "-run", *only}, strings.Fields(*packages)...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "EVENTYARD_TEST_ENGINE=nats", "EVENTYARD_TEST_NATS="+servers.URL())
	cmd.Stderr = os.Stderr
	stdout := testkit.Value(cmd.StdoutPipe())(t)
	testkit.Must(t, cmd.Start())
	all := summarize(os.Stdout, stdout)
	testkit.Check(t, cmd.Wait(), "go test")
	testkit.That(t, all.over > 0, "no test has run over servers")
}

// C1: each package whose tests take storage as the environment has it is among those that make test-nats runs.
func TestAllSuitesAreAsked(t *testing.T) {
	makefile := testkit.Value(os.ReadFile("../../Makefile"))(t)
	asked := regexp.MustCompile(`(?m)^SUITES \?= (.*)$`).FindSubmatch(makefile)
	testkit.MustThat(t, asked != nil, "the Makefile has no SUITES")
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}`, "./...")
	list.Dir = "../.."
	found := 0
	for line := range strings.Lines(string(testkit.Value(list.Output())(t))) {
		words := strings.Fields(line)
		if !slices.ContainsFunc(words[1:], takesAnyEngine) {
			continue
		}
		found++
		testkit.That(t, slices.ContainsFunc(strings.Fields(string(asked[1])), func(pattern string) bool { return covers(pattern, short(words[0])) }),
			"the tests of %s run on every engine, and make test-nats does not run them", short(words[0]))
	}
	testkit.That(t, found > 10, "only %d packages have such tests", found)
}

func takesAnyEngine(imported string) bool {
	return slices.Contains([]string{"storagetest", "hubstest"}, path.Base(imported))
}

// covers tells whether a pattern of go test, from the repository's root on, has a package.
func covers(pattern, pkg string) bool {
	pattern = strings.TrimPrefix(pattern, "./")
	above, all := strings.CutSuffix(pattern, "/...")
	return pkg == pattern || all && (pkg == above || strings.HasPrefix(pkg, above+"/"))
}
