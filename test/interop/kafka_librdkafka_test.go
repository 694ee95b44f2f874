//go:build linux

package interop

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// librdkafkaOther are the tests of librdkafka that do not pass: how they end, what they say of it, and why that is well.
// Every other one that needs a broker has to pass. A name with a slash is a part of a test, see librdkafkaParts.
var librdkafkaOther = map[string]struct{ outcome, says, why string }{
	"0044_partition_cnt":          {"FAILED", "number of partitions is fixed", partitionsAreFixed},
	"0069_consumer_add_parts":     {"FAILED", "number of partitions is fixed", partitionsAreFixed},
	"0112_assign_unknown_part":    {"FAILED", "number of partitions is fixed", partitionsAreFixed},
	"0081_admin/CreatePartitions": {"FAILED", "Invalid number of partitions", partitionsAreFixed},
	"0052_msg_timestamps":         {"FAILED", "KAFKA_PATH and BROKERS must be set", wantsScripts},
	"0077_compaction":             {"FAILED", "KAFKA_PATH and BROKERS must be set", wantsScripts},
	"0109_auto_create_topics":     {"FAILED", "KAFKA_PATH must be set", "it changes ACLs by the scripts of Kafka's distribution; rights belong to policies"},
	"0115_producer_auth":          {"FAILED", "KAFKA_PATH must be set", "it changes ACLs by the scripts of Kafka's distribution; rights belong to policies"},
	"0119_consumer_auth":          {"FAILED", "KAFKA_PATH must be set", "it changes ACLs by the scripts of Kafka's distribution; rights belong to policies"},
	"0081_admin/CreateTopics":     {"FAILED", "compression.type is producer for all topics", batchesAsTheyCome},
	"0081_admin/AlterConfigs":     {"FAILED", "compression.type is producer for all topics", batchesAsTheyCome},
	"0092_mixed_msgver":           {"FAILED", `there is no setting "message.format.version"`, "it wants batches of old formats, as Kafka 4 does not have them either"},
	"0082_fetch_max_bytes":        {"SKIPPED", "Test skipped due to quick mode", "its authors leave it out"},
	"0097_ssl_verify":             {"SKIPPED", "SSL_* env-vars", "it wants the certificates of its authors' cluster; TestKafkaTLS has confluent-kafka do so"},
	"0126_oauthbearer_oidc":       {"SKIPPED", "not configured for SASL", wantsLogin},
	"0135_sasl_credentials":       {"SKIPPED", "requires SASL PLAIN", wantsLogin},
	"0053_stats":                  {"SKIPPED", "RapidJSON", wantsRapidJSON},
	"0098_consumer_txn":           {"SKIPPED", "RapidJSON", wantsRapidJSON},
	"0101_fetch_from_follower":    {"SKIPPED", "RapidJSON", wantsRapidJSON},
	"0110_batch_size":             {"SKIPPED", "RapidJSON", wantsRapidJSON},
}

// librdkafkaLeftOut are tests that pass at times, by number, and why that is well.
var librdkafkaLeftOut = map[string]string{
	"0118": "it wants both members of a group in its first generation; on loopback a yard lets the first one in at once, and waits for more elsewhere only",
}

const (
	partitionsAreFixed = "it adds partitions; a hub has as many as it was made with"
	wantsScripts       = "it makes topics by scripts of Kafka's distribution and ZooKeeper, which Kafka 4 does not have"
	batchesAsTheyCome  = "it wants compression.type of a topic other than producer; batches are kept as they come"
	wantsLogin         = "it wants a server where clients log in; TestKafkaSASL has confluent-kafka do so"
	wantsRapidJSON     = "it is left out where librdkafka is compiled without RapidJSON"
)

// librdkafkaParts are the parts of its test of the admin client, which ends with the first that fails: so each runs alone.
var librdkafkaParts = []string{
	"CreateTopics", "DeleteTopics", "CreatePartitions", "AlterConfigs", "DescribeConfigs", "DeleteRecords", "DeleteGroups", "ListConsumerGroups",
	"DescribeConsumerGroups", "DeleteConsumerGroupOffsets", "AlterConsumerGroupOffsets", "ListConsumerGroupOffsets",
}

const (
	librdkafkaSource = "librdkafka_2.0.2.orig.tar.gz"
	librdkafkaSum    = "f321bcb1e015a34114c83cf1aa7b99ee260236aab096b85c003170c90a47ca9d"
	librdkafkaAdmin  = "0081"
	// librdkafkaAtOnce is how many tests run at a time.
	librdkafkaAtOnce = 4
	// librdkafkaPatience is how often the time that its authors give a test it has here, as on a slow machine. On several
	// nodes, each with a NATS server beside it, everything takes longer.
	librdkafkaPatience, librdkafkaNodesPatience = 3, 12
)

// TestKafkaLibrdkafkaSuite runs librdkafka's own tests, unchanged, from the source that Debian has: all that need a broker,
// in quick mode. Each runs in a process of its own, which ends with the first failure. // K1, K2, K3
func TestKafkaLibrdkafkaSuite(t *testing.T) {
	if !*full {
		t.Skip("it takes long: make interop-full runs it")
	}
	t.Parallel()
	s := librdkafkaSuite{dir: librdkafka(t), config: filepath.Join(t.TempDir(), "test.conf"), states: map[string]string{}, text: map[string]string{}}
	y := startYard(t, layout{kafka: true})
	s.patience = librdkafkaPatience
	if wantsNodes() {
		s.patience = librdkafkaNodesPatience
	}
	testkit.Must(t, os.WriteFile(s.config, fmt.Appendf(nil, "bootstrap.servers=%s\ntest.topic.random=true\ntest.timeout.multiplier=%d\n", y.hostPort(t, "kafka"), s.patience), 0o600))
	all, text := s.run(t, "none", "")
	numbers := map[string]bool{}
	for name := range all {
		if number, _, found := strings.Cut(name, "_"); found && strings.HasPrefix(number, "0") {
			numbers[number] = true
		}
	}
	testkit.MustThat(t, len(numbers) > 100, "it has the tests %v:\n%s", all, text)
	var runs sync.WaitGroup
	slots := make(chan struct{}, librdkafkaAtOnce)
	start := func(number, part string) {
		slots <- struct{}{}
		runs.Go(func() {
			defer func() { <-slots }()
			states, text := s.run(t, number, part)
			s.note(number, part, states, text)
		})
	}
	for _, part := range librdkafkaParts {
		start(librdkafkaAdmin, part)
	}
	for _, number := range slices.Sorted(maps.Keys(numbers)) {
		if why := librdkafkaLeftOut[number]; why != "" {
			t.Logf("left out: %s: %s", number, why)
		} else if number != librdkafkaAdmin {
			start(number, "")
		}
	}
	runs.Wait()
	s.judge(t)
}

// librdkafkaSuite is a run of it.
type librdkafkaSuite struct {
	dir, config string
	patience    int

	mu           sync.Mutex
	states, text map[string]string // by test: how it ended, and what was said; guarded by mu
}

// run runs the tests of a number, or one part of them: how each test of the suite ended, and what was said. Those of
// other numbers are skipped.
func (s *librdkafkaSuite) run(t *testing.T, number, part string) (map[string]string, string) {
	report := filepath.Join(t.TempDir(), "report.json")
	cmd := exec.Command("./test-runner", "-p1", "-Q", "-L", "-K") // one after the other, quick, those that need a broker, none known to fail
	cmd.Dir = s.dir
	env := map[string]string{
		"TESTS": number, "TEST_SEED": "1" + number, "TEST_REPORT": report, "RDKAFKA_TEST_CONF": s.config, "TEST_KAFKA_VERSION": "3.9.0",
		"LD_LIBRARY_PATH": "../src:../src-cpp", "CI": "",
	}
	if part != "" {
		env["SUBTESTS"] = "do_test_" + part
	}
	cmd.Env = environment(env)
	p := launch(t, cmd)
	_ = p.finish(t, 2*time.Minute*time.Duration(s.patience)) // what fails says so in the report
	var all struct {
		Tests map[string]struct {
			State string `json:"state"`
		} `json:"tests"`
	}
	content, err := os.ReadFile(report)
	if err == nil {
		err = json.Unmarshal(content, &all)
	}
	if err != nil {
		return nil, fmt.Sprintf("%v\n%s", err, p.out)
	}
	states := map[string]string{}
	for name, test := range all.Tests {
		states[name] = test.State
	}
	return states, p.out.String()
}

// note keeps how the tests of a number ended. Those that need no broker, another version of it or a scenario of its
// authors' cluster are left out.
func (s *librdkafkaSuite) note(number, part string, states map[string]string, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if states == nil {
		states = map[string]string{number + "_": "no report"}
	}
	for name, state := range states {
		if !strings.HasPrefix(name, number+"_") || state == "SKIPPED" && !saysWhySkipped(text, name) {
			continue
		}
		if part != "" {
			name += "/" + part
		}
		s.states[name], s.text[name] = state, text
	}
}

// saysWhySkipped: the test is one for this run, but has skipped itself.
func saysWhySkipped(text, name string) bool {
	for line := range strings.Lines(text) {
		who, why, found := strings.Cut(line, "SKIPPING TEST: ")
		if _, rest, its := strings.Cut(who, "["+name); found && its && strings.HasPrefix(strings.TrimSpace(rest), "/") {
			return !strings.HasPrefix(why, "Filtered due to")
		}
	}
	return false
}

// judge wants every test to end as it should.
func (s *librdkafkaSuite) judge(t *testing.T) {
	t.Helper()
	count, missing := map[string]int{}, maps.Clone(librdkafkaOther)
	for _, name := range slices.Sorted(maps.Keys(s.states)) {
		state, text := s.states[name], s.text[name]
		count[state]++
		want, known := missing[name]
		delete(missing, name)
		switch {
		case !known && state != "PASSED":
			t.Errorf("%s: %s\n%s", state, name, parts.Tail(text, 6000))
		case known && (state != want.outcome || !strings.Contains(text, want.says)):
			t.Errorf("%s: %s, but the table of this test has %s: %q\n%s", state, name, want.outcome, want.says, parts.Tail(text, 6000))
		case known:
			t.Logf("%s: %s: %s", state, name, want.why)
		}
	}
	testkit.Equal(t, len(missing), 0, "tests that are in the table of this test and were not run: %v", missing)
	testkit.That(t, count["PASSED"] > 60, "only %d tests ran", count["PASSED"])
	t.Logf("of %d tests and parts %d passed, %d failed, %d were skipped", len(s.states), count["PASSED"], count["FAILED"], count["SKIPPED"])
}

// librdkafka is the folder of its tests, compiled.
func librdkafka(t *testing.T) string {
	t.Helper()
	dir := parts.Component{Name: "librdkafka", Recipe: librdkafkaSum + "no optimization", Install: func(ctx context.Context, dir string) error {
		for program, pkg := range map[string]string{"g++": "g++", "make": "make"} {
			if err := parts.Need(program, pkg); err != nil {
				return err
			}
		}
		for header, pkg := range map[string]string{"/usr/include/openssl/ssl.h": "libssl-dev", "/usr/include/zlib.h": "zlib1g-dev"} {
			if _, err := os.Stat(header); err != nil {
				if err := parts.Debian(pkg); err != nil {
					return err
				}
			}
		}
		file := filepath.Join(dir, librdkafkaSource)
		if err := fetchDebianSource(ctx, file); err != nil {
			return err
		}
		jobs := fmt.Sprint("-j", runtime.NumCPU())
		for _, step := range [][]string{
			{"tar", "-xzf", file, "--strip-components=1"},
			{"./configure", "--disable-gssapi", "--disable-curl", "--disable-zstd", "--disable-optimization"},
			{"make", jobs, "libs"},
			{"make", jobs, "-C", "tests", "build"},
		} {
			if err := parts.Step(ctx, dir, step...); err != nil {
				return err
			}
		}
		return nil
	}}.Folder(t)
	return filepath.Join(dir, "tests")
}

// fetchDebianSource gets librdkafka's source from where apt has its packages: they are in one folder.
func fetchDebianSource(ctx context.Context, file string) error {
	out, err := exec.CommandContext(ctx, "apt-get", "download", "--print-uris", "librdkafka1").Output()
	if err != nil {
		return fmt.Errorf("ask apt where librdkafka is: %w", err)
	}
	uri, _, _ := strings.Cut(strings.TrimPrefix(string(out), "'"), "'")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(uri, path.Base(uri))+librdkafkaSource, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(content); response.StatusCode != http.StatusOK || hex.EncodeToString(sum[:]) != librdkafkaSum {
		return fmt.Errorf("%s: %s, %d bytes that are not librdkafka's", librdkafkaSource, response.Status, len(content))
	}
	return os.WriteFile(file, content, 0o644)
}
