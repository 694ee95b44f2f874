//go:build linux

package interop

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// franzSuiteOther are the tests of franz-go's client that do not pass: how they end, what they say of it, and why that is
// well. Every other one has to pass.
var franzSuiteOther = map[string]struct{ outcome, says, why string }{
	"TestConsumeRegex":                           {"fail", "topic __consumer_offsets is not in metadata", noInternalTopics},
	"Test848RegexBrokerResolves":                 {"fail", "topic __consumer_offsets is not in metadata", noInternalTopics},
	"TestIssueFetchLargerThanBrokerMaxReadBytes": {"fail", "INVALID_CONFIG", "it wants max.message.bytes of 10 MiB; a yard takes 1.5 MiB at most"},
	"TestIssueProduceBrokerTooOldFailsRecords":   {"skip", "broker still takes produce v2", "librdkafka compresses only where Produce 0 is offered, so it is, as by Kafka"},
	"TestConsumeRegexShareSkipsInternal":         {"skip", "does not support share groups", noShareGroups},
	"TestShareGroup":                             {"skip", "does not support share groups", noShareGroups},
	"TestShareGroupETL":                          {"skip", "does not support share groups", noShareGroups},
	"TestShareGroupAckOnClose":                   {"skip", "does not support share groups", noShareGroups},
	"TestShareGroupOffsetsAdmin":                 {"skip", "does not support share groups", noShareGroups},
}

const (
	noInternalTopics = "it wants a topic that is marked as internal; a yard keeps offsets elsewhere, and has none"
	noShareGroups    = "share groups are not offered"
)

// franzSuiteLive are those that matter most: they send, and read in chains of groups of every kind while members come and
// go, in transactions and without.
var franzSuiteLive = []string{"TestGroupETL", "TestTxnEtl", "TestSCRAMAuth", "TestSCRAMAuthBadCredentials"}

// TestKafkaFranzSuite runs the tests of franz-go's client itself, all of them and unchanged; and those of groups and of
// transactions once more with connections that break every second, and with TLS. // K1, K2, K3, K5
func TestKafkaFranzSuite(t *testing.T) {
	if !*full {
		t.Skip("it takes long: make interop-full runs it")
	}
	t.Parallel()
	suite := franzSuite(t)
	y := startYard(t, layout{kafka: true})
	closed := startYard(t, layout{kafka: true, outside: true})
	common := map[string]string{"KGO_TEST_RF": "1", "KGO_TEST_RECORDS": "20000", "KGO_LOG_LEVEL": "none"}
	t.Run("all", func(t *testing.T) {
		env := map[string]string{
			"KGO_SEEDS": y.hostPort(t, "kafka"), "KGO_TEST_SCRAM_SEEDS": closed.hostPort(t, "kafka"),
			"KGO_TEST_SCRAM": "manager:" + keyOf("manager") + ":512",
		}
		maps.Copy(env, common)
		results, text := runFranzSuite(t, suite, env)
		judgeFranzSuite(t, results, text)
	})
	// Not at once, as its dialer that breaks connections knows no TLS.
	more := map[string]map[string]string{
		"chaos": {"KGO_SEEDS": y.hostPort(t, "kafka"), "KGO_TEST_CHAOS": "1"},
		"tls":   {"KGO_SEEDS": y.hostPort(t, "kafkas"), "KGO_TEST_TLS": "ca:" + y.authority(t)},
	}
	for name, env := range more {
		t.Run(name, func(t *testing.T) {
			maps.Copy(env, common)
			results, text := runFranzSuite(t, suite, env, "-test.run=^(TestGroupETL|TestTxnEtl)$")
			for _, name := range []string{"TestGroupETL", "TestTxnEtl"} {
				testkit.Equal(t, results[name].action, "pass", "%s:\n%s", name, parts.Tail(text[name], 6000))
			}
		})
	}
}

// franzSuite is a copy of the module of franz-go that go.mod has, unchanged, with the client's tests compiled: the folder of
// the client, with suite.test in it.
func franzSuite(t *testing.T) string {
	t.Helper()
	const module = "github.com/twmb/franz-go"
	version := strings.TrimSpace(string(testkit.Value(exec.Command("go", "list", "-m", "-f", "{{.Version}}", module).Output())(t)))
	client := filepath.Join("pkg", "kgo")
	dir := parts.Component{Name: "franz-go", Recipe: module + version + runtime.Version(), Install: func(ctx context.Context, dir string) error {
		source, err := moduleFolder(ctx, module+"@"+version)
		if err != nil {
			return err
		}
		if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
			return err
		}
		return parts.Step(ctx, filepath.Join(dir, client), "go", "test", "-c", "-o", "suite.test", ".")
	}}.Folder(t)
	return filepath.Join(dir, client)
}

func runFranzSuite(t *testing.T, dir string, env map[string]string, flags ...string) (map[string]result, map[string]string) {
	t.Helper()
	args := append([]string{"tool", "test2json", "-t", "./suite.test", "-test.v=test2json", "-test.timeout=15m"}, flags...)
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, environment(env)
	p := launch(t, cmd)
	_ = p.finish(t, timeLeft(t)) // tests that fail, of which some should, say so by their results
	return readTestOutput(p.out.String())
}

// judgeFranzSuite wants every test to end as it should.
func judgeFranzSuite(t *testing.T, results map[string]result, text map[string]string) {
	t.Helper()
	count, missing := map[string]int{}, maps.Clone(franzSuiteOther)
	for _, name := range slices.Sorted(maps.Keys(results)) {
		got := results[name].action
		if !strings.Contains(name, "/") {
			count[got]++
		}
		want, known := missing[name]
		delete(missing, name)
		switch {
		case !known && got != "pass":
			t.Errorf("%s: %s\n%s", got, name, parts.Tail(text[name], 6000))
		case known && (got != want.outcome || !strings.Contains(text[name], want.says)):
			t.Errorf("%s: %s, but the table of this test has %s: %q\n%s", got, name, want.outcome, want.says, parts.Tail(text[name], 6000))
		case known:
			t.Logf("%s: %s: %s", got, name, want.why)
		}
	}
	for _, name := range franzSuiteLive {
		testkit.Equal(t, results[name].action, "pass", "%s did not run and pass", name)
	}
	testkit.Equal(t, len(missing), 0, "tests that are in the table of this test and were not run: %v", missing)
	if t.Failed() {
		t.Logf("what no test has said:\n%s", parts.Tail(text[""], 4000))
	}
	t.Logf("of %d tests %d passed, %d failed, %d were skipped", count["pass"]+count["fail"]+count["skip"], count["pass"], count["fail"], count["skip"])
}
