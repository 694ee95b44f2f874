package suites

import (
	"flag"
	"os"
	"os/exec"
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
