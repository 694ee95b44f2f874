//go:build linux

package interop

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

const (
	kafkaPartitions = 4
	// kafkaEach is how many records are sent with each compression, kafkaLarge the bytes of one more.
	kafkaEach, kafkaLarge = 50, 900_000
	// kafkaPlanted is an event that is in the hub before a client comes.
	kafkaPlanted = "sent over AMQP"
	// kafkaTime bounds what a client does on a slow machine.
	kafkaTime = 3 * time.Minute
)

// kafkaClient is a client that others wrote: it sends to a hub of its own, and reads all of it.
type kafkaClient struct {
	name string
	// codecs are the compressions that it has without further plug-ins.
	codecs string
	play   func(t *testing.T, k kafkaTask)
}

var kafkaClients = []kafkaClient{
	{"franz-go", "none gzip snappy lz4 zstd", playFranz},
	{"sarama", "none gzip snappy lz4 zstd", playSarama},
	{"java-4.3.1", "none gzip snappy lz4 zstd", func(t *testing.T, k kafkaTask) { playKafkaJava(t, k, "4.3.1") }},
	{"java-3.9.1", "none gzip snappy lz4 zstd", func(t *testing.T, k kafkaTask) { playKafkaJava(t, k, "3.9.1") }},
	{"confluent-kafka", "none gzip snappy lz4 zstd", func(t *testing.T, k kafkaTask) { playKafkaPython(t, k, "confluent.py") }},
	{"kafka-python", "none gzip snappy lz4 zstd", func(t *testing.T, k kafkaTask) { playKafkaPython(t, k, "python.py") }},
	{"kafkajs", "none gzip snappy", playKafkaJS},
	{"kcat", "none gzip snappy lz4 zstd", playKcat},
}

// kafkaConsumers are those of them that know the groups of KIP-848 as well. They do it all once more in such a group.
var kafkaConsumers = []kafkaClient{
	{"franz-go-848", "none", asConsumer(playFranz)},
	{"java-4.3.1-848", "none", asConsumer(func(t *testing.T, k kafkaTask) { playKafkaJava(t, k, "4.3.1") })},
	{"confluent-kafka-848", "none", asConsumer(func(t *testing.T, k kafkaTask) { playKafkaPython(t, k, "confluent.py") })},
}

// asConsumer has a client use the group protocol of KIP-848.
func asConsumer(play func(t *testing.T, k kafkaTask)) func(t *testing.T, k kafkaTask) {
	return func(t *testing.T, k kafkaTask) {
		k.protocol = "consumer"
		play(t, k)
	}
}

// TestKafka has each client send with every compression, by an idempotent producer, and a large record; read all from
// the beginning by assignment, with what was sent over AMQP, and once more in a group, which commits; and what it has
// sent is read over AMQP. // K1, K2, K4
func TestKafka(t *testing.T) { playKafkaClients(t, layout{}) }

// TestKafkaTLS is TestKafka with TLS, for clients that have to show a key. // K1, K5
func TestKafkaTLS(t *testing.T) { playKafkaClients(t, layout{outside: true}) }

func playKafkaClients(t *testing.T, l layout) {
	t.Parallel()
	l.kafka, l.hubs = true, map[string]int{}
	clients := slices.Concat(kafkaClients, kafkaConsumers)
	for _, c := range clients {
		l.hubs[c.name] = kafkaPartitions
	}
	y := startYard(t, l)
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := kafkaTask{address: y.hostPort(t, "kafka"), hub: c.name, codecs: strings.Fields(c.codecs)}
			if l.outside {
				k.address, k.ca = y.hostPort(t, "kafkas"), y.authority(t)
				k.user, k.password = "manager", keyOf("manager")
			}
			y.plant(t, c.name)
			c.play(t, k)
			y.readOverAMQP(t, k)
			t.Log("proved: all of it is read over AMQP")
			k.checkCommitted(t, int64(len(k.books())))
			t.Log("proved: its group has committed all of it, and nobody is in it any more")
			if strings.HasSuffix(c.name, "-848") {
				k.checkKind(t)
			}
		})
	}
}

// kafkaTask is what a client is to do. It begins at the address, which may be several with commas between.
type kafkaTask struct {
	address, hub string
	codecs       []string
	// protocol is that of its group, as clients name it; empty: the classic one.
	protocol string
	// user, password and ca are empty where nobody is asked. mechanism is that of SASL; empty: PLAIN. token is what is
	// shown instead of the password by OAUTHBEARER.
	user, password, ca string
	mechanism, token   string
	// certificate and key are files of a client certificate, in the place of user and password.
	certificate, key string
}

// addresses are those at which a client begins.
func (k kafkaTask) addresses() []string { return strings.Split(k.address, ",") }

// group is the one in which a client reads its hub.
func (k kafkaTask) group() string { return k.hub + "-group" }

// kafkaRecord is one that is sent, and the compression with which it is.
type kafkaRecord struct{ key, value, codec string }

// records are those that are sent with a compression.
func (k kafkaTask) records(codec string) (all []kafkaRecord) {
	for i := range kafkaEach {
		all = append(all, kafkaRecord{fmt.Sprint("key-", i), fmt.Sprint(codec, "-", i), codec})
	}
	if codec == "none" {
		all = append(all, kafkaRecord{"large", strings.Repeat("x", kafkaLarge), codec})
	}
	return all
}

// kafkaBooks are the records that are still to come, by value.
type kafkaBooks map[string]kafkaRecord

func (k kafkaTask) books() kafkaBooks {
	missing := kafkaBooks{kafkaPlanted: {value: kafkaPlanted}}
	for _, codec := range k.codecs {
		for _, r := range k.records(codec) {
			missing[r.value] = r
		}
	}
	return missing
}

// take notes that a record came: once, and as it was sent.
func (b kafkaBooks) take(t *testing.T, r kafkaRecord) {
	t.Helper()
	want, found := b[r.value]
	testkit.MustThat(t, found, "%.100q came that was not sent, or came twice", r.value)
	delete(b, r.value)
	if r.value != kafkaPlanted {
		testkit.MustEqual(t, r, want)
	}
}

// environment is what a script is told.
func (k kafkaTask) environment() map[string]string {
	env := map[string]string{
		"YARD_KAFKA": k.address, "YARD_HUB": k.hub, "YARD_GROUP": k.group(), "YARD_CODECS": strings.Join(k.codecs, " "), "YARD_PLANTED": kafkaPlanted,
		"YARD_EACH": strconv.Itoa(kafkaEach), "YARD_LARGE": strconv.Itoa(kafkaLarge),
	}
	if k.protocol != "" {
		env["YARD_PROTOCOL"] = k.protocol
	}
	if k.user != "" {
		maps.Copy(env, map[string]string{"YARD_USER": k.user, "YARD_PASSWORD": k.password, "YARD_CA": k.ca})
	}
	if k.certificate != "" {
		maps.Copy(env, map[string]string{"YARD_CERTIFICATE": k.certificate, "YARD_KEY": k.key, "YARD_CA": k.ca})
	}
	if k.mechanism != "" {
		maps.Copy(env, map[string]string{"YARD_MECHANISM": k.mechanism, "YARD_TOKEN": k.token})
	}
	return env
}

// plant sends an event over AMQP.
func (y *yard) plant(t *testing.T, hub string) {
	t.Helper()
	p := testkit.Value(dialPeer(t.Context(), y.hostPort(t, "amqp")))(t)
	defer p.close()
	sender := testkit.Value(p.sender(t.Context(), hub))(t)
	testkit.Must(t, sender.Send(t.Context(), amqp.NewMessage([]byte(kafkaPlanted)), nil))
}

// readOverAMQP finds in a hub what a client has sent, and nothing else.
func (y *yard) readOverAMQP(t *testing.T, k kafkaTask) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kafkaTime)
	defer cancel()
	p := testkit.Value(dialPeer(ctx, y.hostPort(t, "amqp")))(t)
	defer p.close()
	came := make(chan kafkaRecord)
	for partition := range kafkaPartitions {
		receiver := testkit.Value(p.receiver(ctx, k.hub, partition, noEpoch, 100))(t)
		go func() {
			for {
				m, err := receiver.Receive(ctx, nil)
				if err != nil {
					return
				}
				_ = receiver.AcceptMessage(ctx, m)
				select {
				case came <- fromAMQP(m):
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	for missing := k.books(); len(missing) > 0; {
		select {
		case r := <-came:
			missing.take(t, r)
		case <-ctx.Done():
			t.Fatalf("%d records did not come over AMQP", len(missing))
		}
	}
}

// fromAMQP is a record as it is read over AMQP.
func fromAMQP(m *amqp.Message) kafkaRecord {
	key, _ := m.Annotations["x-opt-kafka-key"].([]byte)
	codec, _ := m.ApplicationProperties["codec"].([]byte)
	return kafkaRecord{string(key), string(m.GetData()), string(codec)}
}

// kafkaJavaProgram is a program of testdata, with a version of Kafka's own client.
func kafkaJavaProgram(t *testing.T, version, name string) *exec.Cmd {
	t.Helper()
	return javaProgram(filepath.Join(kafkaJava(t, version), "lib"), filepath.Join("testdata", "kafka", name))
}

// javaProgram is a program of one file, or a class, with a folder of jars.
func javaProgram(lib, name string, args ...string) *exec.Cmd {
	cmd := exec.Command("java", append([]string{"-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", filepath.Join(lib, "*"), name}, args...)...)
	cmd.Env = os.Environ()
	return cmd
}

// kafkaPythonProgram is a program of testdata, with confluent-kafka and kafka-python.
func kafkaPythonProgram(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(kafkaPython(t), "-B", "-u", filepath.Join("testdata", "kafka", name))
	cmd.Env = os.Environ()
	return cmd
}

// kafkaJSProgram is a program of testdata, with KafkaJS.
func kafkaJSProgram(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("node", absolute(t, filepath.Join("testdata", "kafka", name)))
	cmd.Env = environment(map[string]string{"NODE_PATH": filepath.Join(kafkaNode(t), "node_modules")})
	return cmd
}

// play runs a client's program, which is told of the task and more.
func (k kafkaTask) play(t *testing.T, cmd *exec.Cmd, more map[string]string) {
	t.Helper()
	env := k.environment()
	maps.Copy(env, more)
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	script(t, cmd, kafkaTime)
}

func playKafkaJava(t *testing.T, k kafkaTask, version string) {
	t.Helper()
	k.play(t, kafkaJavaProgram(t, version, "Client.java"), nil)
}

func playKafkaPython(t *testing.T, k kafkaTask, name string) {
	t.Helper()
	k.play(t, kafkaPythonProgram(t, name), nil)
}

func playKafkaJS(t *testing.T, k kafkaTask) {
	t.Helper()
	k.play(t, kafkaJSProgram(t, "client.js"), nil)
}

// playKcat works with the command line of librdkafka that Debian has: an older one than confluent-kafka's.
func playKcat(t *testing.T, k kafkaTask) {
	t.Helper()
	if err := parts.Need("kcat", "kcat"); err != nil {
		parts.Missing(t, "%v", err)
	}
	run := func(input string, args ...string) string {
		common := []string{"-b", k.address, "-q"}
		if k.user != "" {
			common = append(common, "-X", "security.protocol=SASL_SSL", "-X", "sasl.mechanism=PLAIN", "-X", "ssl.ca.location="+k.ca,
				"-X", "sasl.username="+k.user, "-X", "sasl.password="+k.password)
		}
		ctx, cancel := context.WithTimeout(t.Context(), kafkaTime)
		defer cancel()
		cmd := exec.CommandContext(ctx, "kcat", append(common, args...)...)
		cmd.Stdin = strings.NewReader(input)
		var complaints strings.Builder
		cmd.Stderr = &complaints
		out, err := cmd.Output()
		testkit.Must(t, err, "%s: %s", cmd, complaints.String())
		return string(out)
	}
	for _, codec := range k.codecs {
		var lines strings.Builder
		for _, r := range k.records(codec) {
			fmt.Fprintf(&lines, "%s|%s\n", r.key, r.value)
		}
		run(lines.String(), "-P", "-t", k.hub, "-K", "|", "-H", "codec="+codec, "-z", codec, "-X", "enable.idempotence=true")
	}
	t.Log("proved: an idempotent producer with", strings.Join(k.codecs, ", "))
	missing := k.books()
	for line := range strings.Lines(run("", "-C", "-t", k.hub, "-o", "beginning", "-e", "-f", "%k|%s|%h\n")) {
		key, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "|")
		value, headers, _ := strings.Cut(rest, "|")
		missing.take(t, kafkaRecord{key, value, strings.TrimPrefix(headers, "codec=")})
	}
	testkit.Equal(t, len(missing), 0, "records that did not come")
	t.Log("proved: everything read from the beginning, once, and what was sent over AMQP")
	missing = k.books()
	for line := range strings.Lines(run("", "-G", k.group(), "-c", strconv.Itoa(len(missing)), "-X", "auto.offset.reset=earliest", "-f", "%k|%s|%h\n", k.hub)) {
		key, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "|")
		value, headers, _ := strings.Cut(rest, "|")
		missing.take(t, kafkaRecord{key, value, strings.TrimPrefix(headers, "codec=")})
	}
	testkit.Equal(t, len(missing), 0, "records that did not come in a group")
	t.Log("proved: everything read in a group, and committed")
}
