//go:build linux

package interop

import (
	"context"
	"encoding/xml"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// Some of the suite's tests want the name of a namespace in Azure.
const (
	suiteNamespace = "ns"
	suiteSuffix    = ".servicebus.windows.net"
	suiteHost      = suiteNamespace + suiteSuffix
)

// pythonSuiteOther are the tests of the suite that do not pass: how they end, what pytest says of
// it, and why that is well. Every other one has to pass.
var pythonSuiteOther = map[string]struct{ outcome, says, why string }{
	"synctests.test_faultinjector.test_receive_partition_using_fault_injector_detach_after_delay[pyamqp-faultinjector0]": {
		"skip", "Fault injector not enabled", "it needs a program of Microsoft's that breaks connections"},
	"synctests.test_buffered_producer.test_long_wait_small_buffer[pyamqp]":        {"skip", "not testing correctly + flaky", byAuthors},
	"asynctests.test_buffered_producer_async.test_long_wait_small_buffer[pyamqp]": {"skip", "not testing correctly + flaky", byAuthors},
	"synctests.test_send.test_send_amqp_annotated_message[pyamqp]":                {"fail", "delann_key", deliveryAnnotations},
	"asynctests.test_send_async.test_send_amqp_annotated_message[pyamqp]":         {"fail", "delann_key", deliveryAnnotations},
}

const (
	byAuthors = "its authors left it out"
	// The library itself says that Azure drops them, too, where the standard wants them: before the body.
	deliveryAnnotations = "it wants delivery annotations back; a yard drops them, also behind the body: docs/guides/clients.md says why"
)

// pythonSuiteTests is how many tests the pinned version of the suite has: a run that collects fewer
// shows nothing of the others.
const pythonSuiteTests = 351

// someFailed is how pytest ends when it ran everything, and not all of it passed.
const someFailed = 1

// TestPythonSuite runs the official Python library's own tests, all of them and unchanged, as if
// the yard were a namespace in Azure and, for its checkpoint stores, a storage account. // H4, H5, H6, H7, H8, H9, H10
func TestPythonSuite(t *testing.T) {
	if !*full && !inside() {
		t.Skip("it takes long: make interop-full runs it")
	}
	suite := pythonSuite(t)
	inNamespace(t, func(t *testing.T) {
		y := startYard(t, layout{host: suiteHost, settings: []string{"acceptAnyJwt: true"}})
		report := filepath.Join(t.TempDir(), "report.xml")
		cmd := exec.Command(filepath.Join(suite, "bin", "pytest"), "-p", "no:cacheprovider", "--tb=short", "--show-capture=no",
			"--numprocesses=8", "--timeout=600", "--junit-xml="+report, ".")
		cmd.Dir = filepath.Join(suite, "source", "tests")
		trusted := joinFiles(t, y.authority(t), y.azure(t))
		cmd.Env = environment(map[string]string{
			"PYTHONPATH":                absolute(t, filepath.Join("testdata", "python", "suite")),
			"PYTHONDONTWRITEBYTECODE":   "1",
			"SSL_CERT_FILE":             trusted,
			"REQUESTS_CA_BUNDLE":        trusted,
			"NO_PROXY":                  azureManager + "," + azureBlobs,
			"AZURE_SUBSCRIPTION_ID":     "subscription",
			"AZURE_STORAGE_ACCOUNT":     blobAccount,
			"EVENTHUB_RESOURCE_GROUP":   "group",
			"EVENT_HUB_NAMESPACE":       suiteNamespace,
			"EVENT_HUB_ENDPOINT_SUFFIX": suiteSuffix,
		})
		p := launch(t, cmd)
		err := p.finish(t, timeLeft(t))
		cases := readSuiteReport(t, report)
		if ended := (*exec.ExitError)(nil); len(cases) == 0 || err != nil && (!errors.As(err, &ended) || ended.ExitCode() != someFailed) {
			t.Errorf("pytest did not run all tests: %v", err)
		}
		judgeSuite(t, cases)
		if t.Failed() {
			t.Logf("pytest: %v\n%s", err, parts.Tail(p.out.String(), 100_000))
		}
	})
}

// pythonSuite is a virtual environment with what the library's tests need, and beside it the
// library's source package, unchanged, which has the tests.
func pythonSuite(t *testing.T) string {
	t.Helper()
	folder := filepath.Join("testdata", "python", "suite")
	requirements, source := filepath.Join(folder, "requirements.txt"), filepath.Join(folder, "source.txt")
	recipe := pythonVersion() + recipeFile(t, filepath.Join("testdata", "python", "requirements.txt")) +
		recipeFile(t, requirements) + recipeFile(t, source)
	return parts.Component{Name: "python-suite", Recipe: recipe, Install: func(ctx context.Context, dir string) error {
		if err := makeVenv(ctx, dir); err != nil {
			return err
		}
		python := filepath.Join(dir, "bin", "python")
		if err := parts.Step(ctx, "", python, "-m", "pip", "install", "-q", "-r", requirements); err != nil {
			return err
		}
		if err := parts.Step(ctx, "", python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary=azure-eventhub",
			"--require-hashes", "-d", dir, "-r", source); err != nil {
			return err
		}
		return parts.Step(ctx, dir, "sh", "-c", "mkdir source && tar -xzf azure_eventhub-*.tar.gz -C source --strip-components=1")
	}}.Folder(t)
}

// suiteCase is a test of a suite as pytest's report has it.
type suiteCase struct {
	Class   string   `xml:"classname,attr"`
	Name    string   `xml:"name,attr"`
	Failed  *message `xml:"failure"`
	Broken  *message `xml:"error"`
	Skipped *message `xml:"skipped"`
}

type message struct {
	Short string `xml:"message,attr"`
	Long  string `xml:",chardata"`
}

func (c suiteCase) outcome() (outcome string, said message) {
	switch {
	case c.Failed != nil:
		return "fail", *c.Failed
	case c.Broken != nil:
		return "fail", *c.Broken
	case c.Skipped != nil:
		return "skip", *c.Skipped
	}
	return "pass", message{}
}

func readSuiteReport(t *testing.T, path string) []suiteCase {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		return nil // it did not get that far
	}
	var report struct {
		Cases []suiteCase `xml:"testsuite>testcase"`
	}
	testkit.Must(t, xml.Unmarshal(content, &report))
	return report.Cases
}

// judgeSuite wants every test to end as it should.
func judgeSuite(t *testing.T, cases []suiteCase) {
	t.Helper()
	count, missing := map[string]int{}, maps.Clone(pythonSuiteOther)
	for _, c := range cases {
		name := strings.TrimPrefix(c.Class, "tests.livetest.") + "." + c.Name
		got, said := c.outcome()
		count[got]++
		want, known := missing[name]
		delete(missing, name)
		switch {
		case !known && got != "pass":
			t.Errorf("%s: %s\n%s\n%s", got, name, said.Short, parts.Tail(said.Long, 6000))
		case known && (got != want.outcome || !strings.Contains(said.Short, want.says)):
			t.Errorf("%s: %s: %q, but the table of this test has %s: %q", got, name, said.Short, want.outcome, want.says)
		case known:
			t.Logf("%s: %s: %s", got, name, want.why)
		}
	}
	testkit.Equal(t, len(cases), pythonSuiteTests, "tests that were run")
	testkit.Equal(t, len(missing), 0, "tests that are in the table of this test and not in the suite: %v", missing)
	t.Logf("of %d tests %d passed, %d failed, %d were skipped", len(cases), count["pass"], count["fail"], count["skip"])
}
