//go:build linux

package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/eventyard/eventyard/internal/testkit"
)

// The programs of Kafka's distribution, by the classes that its scripts start.
const (
	kafkaTopics          = "org.apache.kafka.tools.TopicCommand"
	kafkaConsoleProducer = "org.apache.kafka.tools.ConsoleProducer"
	kafkaConsoleConsumer = "org.apache.kafka.tools.consumer.ConsoleConsumer"
	kafkaConsumerGroups  = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
	kafkaConfigs         = "kafka.admin.ConfigCommand"
	kafkaDeleteRecords   = "org.apache.kafka.tools.DeleteRecordsCommand"
	kafkaGetOffsets      = "org.apache.kafka.tools.GetOffsetShell"
	kafkaTransactionsCLI = "org.apache.kafka.tools.TransactionsCommand"
	kafkaVersions        = "org.apache.kafka.tools.BrokerApiVersionsCommand"
	kafkaLogDirs         = "org.apache.kafka.tools.LogDirsCommand"
	kafkaACLs            = "org.apache.kafka.tools.AclCommand"
)

// kafkaToolbox runs the tools of Kafka's distribution against a yard.
type kafkaToolbox struct {
	t       *testing.T
	lib     string
	address string
	// config is a file with what every tool needs to log in; empty: nothing is needed.
	config string
}

// try runs a tool, and gives what it prints, also of errors.
func (b kafkaToolbox) try(input, tool string, args ...string) (string, error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), kafkaTime)
	defer cancel()
	args = append([]string{"-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", filepath.Join(b.lib, "*"), tool,
		"--bootstrap-server", b.address}, args...)
	if b.config != "" {
		args = append(args, "--command-config", b.config)
	}
	cmd := exec.CommandContext(ctx, "java", args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (b kafkaToolbox) run(input, tool string, args ...string) string {
	b.t.Helper()
	out, err := b.try(input, tool, args...)
	testkit.Must(b.t, err, "%s %s: %s", tool, strings.Join(args, " "), out)
	return out
}

// wants fails unless all of these are in what a tool has printed.
func wants(t *testing.T, out string, all ...string) {
	t.Helper()
	for _, want := range all {
		testkit.That(t, strings.Contains(out, want), "there is no %q in:\n%s", want, out)
	}
}

// TestKafkaTools has the tools of Kafka's own distribution make a topic, send, read in a group, and look at it. // K1, K2
func TestKafkaTools(t *testing.T) {
	t.Parallel()
	y := startYard(t, layout{kafka: true, hubs: map[string]int{"other": 1}})
	b := kafkaToolbox{t: t, lib: filepath.Join(kafkaTools(t), "lib"), address: y.hostPort(t, "kafka")}
	b.everyday("tools")
	if *full {
		b.rarely("tools")
	}
}

// TestKafkaToolsTLS is all of TestKafkaTools with TLS and SCRAM, in make interop-full. // K1, K5
func TestKafkaToolsTLS(t *testing.T) {
	if !*full {
		t.Skip("it is part of make interop-full")
	}
	t.Parallel()
	y := startYard(t, layout{kafka: true, outside: true, hubs: map[string]int{"other": 1}})
	config := filepath.Join(t.TempDir(), "client.properties")
	testkit.Must(t, os.WriteFile(config, fmt.Appendf(nil, `security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="manager" password="%s";
ssl.truststore.type=PEM
ssl.truststore.location=%s
`, keyOf("manager"), y.authority(t)), 0o600))
	b := kafkaToolbox{t: t, lib: filepath.Join(kafkaTools(t), "lib"), address: y.hostPort(t, "kafkas"), config: config}
	b.everyday("tools")
	b.rarely("tools")
}

// everyday is what everybody does with them.
func (b kafkaToolbox) everyday(topic string) {
	t := b.t
	t.Helper()
	wants(t, b.run("", kafkaTopics, "--create", "--topic", topic, "--partitions", "2", "--replication-factor", "3"), "Created topic "+topic)
	wants(t, b.run("", kafkaTopics, "--list"), topic, "other")
	wants(t, b.run("", kafkaTopics, "--describe", "--topic", topic), "PartitionCount: 2", "Partition: 1")
	t.Log("proved: kafka-topics creates, lists and describes")
	b.run("a:one\nb:two\nc:three\n", kafkaConsoleProducer, "--topic", topic, "--property", "parse.key=true", "--property", "key.separator=:")
	out := b.run("", kafkaConsoleConsumer, "--topic", topic, "--group", "console", "--from-beginning", "--max-messages", "3", "--timeout-ms", "60000")
	wants(t, out, "one", "two", "three")
	t.Log("proved: kafka-console-producer and kafka-console-consumer, in a group")
	wants(t, b.run("", kafkaConsumerGroups, "--list"), "console")
	wants(t, b.run("", kafkaConsumerGroups, "--describe", "--group", "console"), topic, "CURRENT-OFFSET")
	t.Log("proved: kafka-consumer-groups lists and describes")
	wants(t, b.run("", kafkaConfigs, "--describe", "--entity-type", "topics", "--entity-name", topic, "--all"), "retention.ms=", "cleanup.policy=")
	t.Log("proved: kafka-configs describes")
}

// rarely is what operators do with them.
func (b kafkaToolbox) rarely(topic string) {
	t := b.t
	t.Helper()
	wants(t, b.run("", kafkaVersions), "Produce(0): 0 to 13", "ConsumerGroupHeartbeat(68): ", "CreatePartitions(37): ")
	wants(t, b.run("", kafkaLogDirs, "--describe", "--topic-list", topic), `"partition":"`+topic+`-0"`, `"partition":"`+topic+`-1"`)
	out, _ := b.try("", kafkaACLs, "--list")
	wants(t, out, "SecurityDisabled")
	t.Log("proved: kafka-broker-api-versions and kafka-log-dirs say what there is, and kafka-acls that there are none")
	b.run("", kafkaConfigs, "--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", "retention.ms=3600000")
	wants(t, b.run("", kafkaConfigs, "--describe", "--entity-type", "topics", "--entity-name", topic), "retention.ms=3600000")
	t.Log("proved: kafka-configs changes retention")
	wants(t, b.run("", kafkaConsumerGroups, "--describe", "--group", "console", "--state"), "Empty")
	b.run("", kafkaConsumerGroups, "--describe", "--group", "console", "--members", "--verbose")
	wants(t, b.run("", kafkaConsumerGroups, "--describe", "--all-groups", "--offsets"), "console")
	wants(t, b.run("", kafkaConsumerGroups, "--reset-offsets", "--group", "console", "--topic", topic, "--to-earliest", "--execute"), "NEW-OFFSET")
	out = b.run("", kafkaConsoleConsumer, "--topic", topic, "--group", "console", "--max-messages", "3", "--timeout-ms", "60000")
	wants(t, out, "one", "two", "three")
	t.Log("proved: kafka-consumer-groups resets offsets, and the group reads again from there")
	var total int
	for line := range strings.Lines(b.run("", kafkaGetOffsets, "--topic", topic)) {
		var n int
		if _, at, found := strings.Cut(strings.TrimPrefix(line, topic+":"), ":"); found {
			if _, err := fmt.Sscan(at, &n); err == nil {
				total += n
			}
		}
	}
	testkit.Equal(t, total, 3, "events by kafka-get-offsets")
	file := filepath.Join(t.TempDir(), "records.json")
	testkit.Must(t, os.WriteFile(file, []byte(`{"version":1,"partitions":[{"topic":"`+topic+`","partition":0,"offset":-1},{"topic":"`+topic+`","partition":1,"offset":-1}]}`), 0o600))
	wants(t, b.run("", kafkaDeleteRecords, "--offset-json-file", file), "low_watermark")
	earliest, latest := b.run("", kafkaGetOffsets, "--topic", topic, "--time", "earliest"), b.run("", kafkaGetOffsets, "--topic", topic, "--time", "latest")
	testkit.Equal(t, earliest, latest, "the beginning and the end, when all records are deleted")
	t.Log("proved: kafka-delete-records deletes")
	wants(t, b.run("", kafkaConsumerGroups, "--delete-offsets", "--group", "console", "--topic", topic), topic)
	wants(t, b.run("", kafkaConsumerGroups, "--delete", "--group", "console"), "successful")
	b.run("", kafkaTopics, "--delete", "--topic", topic)
	testkit.That(t, !strings.Contains(b.run("", kafkaTopics, "--list"), topic), "the topic is still there")
	t.Log("proved: groups, their offsets and topics are deleted")
}

// TestKafkaTransactionsTool has kafka-transactions find a transaction that does not end, and end it, as docs/guides/kafka.md
// tells operators: readers of what is committed go on, and its producer is refused. // K3, K1
func TestKafkaTransactionsTool(t *testing.T) {
	t.Parallel()
	const hub, id = "stuck", "stuck-writer"
	y := startYard(t, layout{kafka: true, hubs: map[string]int{hub: kafkaPartitions}})
	k := kafkaTask{address: y.hostPort(t, "kafka"), hub: hub}
	b := kafkaToolbox{t: t, lib: filepath.Join(kafkaTools(t), "lib"), address: k.address}
	ctx, cancel := context.WithTimeout(t.Context(), kafkaTime)
	defer cancel()
	stuck := k.franz(t, kgo.TransactionalID(id), kgo.TransactionTimeout(10*time.Minute), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	testkit.Must(t, stuck.BeginTransaction())
	testkit.Must(t, stuck.ProduceSync(ctx, &kgo.Record{Value: []byte("never")}).FirstErr())
	testkit.Must(t, k.franz(t, kgo.RecordPartitioner(kgo.ManualPartitioner())).ProduceSync(ctx, &kgo.Record{Value: []byte("behind it")}).FirstErr())
	producer, _, err := stuck.ProducerID(ctx)
	testkit.Must(t, err)

	wants(t, b.run("", kafkaTransactionsCLI, "list"), id, "Ongoing", fmt.Sprint(producer))
	wants(t, b.run("", kafkaTransactionsCLI, "describe", "--transactional-id", id), id, "Ongoing", fmt.Sprint(producer), "600000", hub+"-0")
	wants(t, b.run("", kafkaTransactionsCLI, "describe-producers", "--topic", hub, "--partition", "0"), fmt.Sprint(producer))
	t.Log("proved: kafka-transactions lists and describes a transaction that does not end")
	b.run("", kafkaTransactionsCLI, "forceTerminateTransaction", "--transactionalId", id)
	reader := k.franz(t, k.fromTheBeginning(), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	fetches := reader.PollFetches(ctx)
	testkit.Must(t, fetches.Err())
	for _, record := range fetches.Records() {
		testkit.Equal(t, string(record.Value), "behind it", "what is committed")
	}
	testkit.That(t, stuck.EndTransaction(ctx, kgo.TryCommit) != nil, "a transaction was committed that had been ended")
	wants(t, b.run("", kafkaTransactionsCLI, "describe", "--transactional-id", id), "Empty")
	t.Log("proved: kafka-transactions ends it, readers go on, and its producer is refused")
}
