//go:build linux

package interop

import (
	"context"
	"encoding/binary"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/eventyard/eventyard/internal/testkit"
)

// kafkaStreams is a folder of jars with Kafka Streams.
func kafkaStreams(t *testing.T) string {
	t.Helper()
	return filepath.Join(jars(t, "kafka-streams", filepath.Join("testdata", "kafka", "streams.xml")), "lib")
}

// TestKafkaStreams has Kafka Streams count words exactly once (exactly_once_v2): over a repartition topic and a store
// with a changelog, which it makes itself, and from which it goes on after it has lost its local state. // K3
func TestKafkaStreams(t *testing.T) {
	if !*full {
		t.Skip("it takes long: make interop-full runs it")
	}
	t.Parallel()
	y := startYard(t, layout{kafka: true, hubs: map[string]int{"words": kafkaPartitions, "words-copy": kafkaPartitions}})
	k := kafkaTask{address: y.hostPort(t, "kafka"), hub: "words"}
	cmd := exec.Command("java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
		"-cp", filepath.Join(kafkaStreams(t), "*"), filepath.Join("testdata", "kafka", "Streams.java"))
	cmd.Env = environment(k.environment())
	script(t, cmd, 2*kafkaTime)
}

// TestKafkaStreamsKill has two instances of Kafka Streams count words. One is killed with SIGKILL: the other goes on with its
// part, from the changelog. Then the yard is killed, or a node of it. With exactly_once_v2 each word is counted once, and
// readers of what is committed never see more; at least once, none is lost. // K3
func TestKafkaStreamsKill(t *testing.T) {
	if !*full {
		t.Skip("it takes long: make interop-full runs it")
	}
	t.Parallel()
	for _, guarantee := range []string{"exactly_once_v2", "at_least_once"} {
		t.Run(guarantee, func(t *testing.T) {
			t.Parallel()
			killStreams(t, guarantee)
		})
	}
}

func killStreams(t *testing.T, guarantee string) {
	y := startKafkaYard(t, layout{hubs: map[string]int{"words": kafkaPartitions, "words-copy": kafkaPartitions}}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 2*y.patience())
	defer cancel()
	k := kafkaTask{address: y.address(), hub: "words"}
	first, _ := k.startWords(t, guarantee)
	second, end := k.startWords(t, guarantee)
	defer func() {
		if t.Failed() {
			t.Logf("the instances said:\n%.4000s\n%.4000s", first.out, second.out)
		}
	}()
	w := &wordCounts{exact: guarantee == "exactly_once_v2", sender: k.franz(t, soon), newest: map[string]int64{}}
	copied := kafkaTask{address: k.address, hub: "words-copy"}
	w.reader = copied.franz(t, copied.fromTheBeginning(), kgo.FetchIsolationLevel(kgo.ReadCommitted()), soon)
	w.send(t, ctx)
	w.await(t, ctx)
	t.Log("proved: two instances count")
	w.send(t, ctx)
	first.kill()
	w.await(t, ctx)
	t.Log("proved: one was killed, and the other counts on")
	w.send(t, ctx)
	y.kill(t)
	w.await(t, ctx)
	t.Log("proved: the yard was killed, and it counts on")
	testkit.Must(t, end())
	testkit.Must(t, second.finish(t, kafkaTime), "the instance:\n%s", second.out)
	y.stop(t)
}

// startWords starts an instance, which ends when its input is closed.
func (k kafkaTask) startWords(t *testing.T, guarantee string) (p *process, end func() error) {
	t.Helper()
	cmd := javaProgram(kafkaStreams(t), filepath.Join("testdata", "kafka", "Words.java"))
	cmd.Env = append(cmd.Env, "YARD_KAFKA="+k.address, "YARD_HUB="+k.hub, "YARD_GUARANTEE="+guarantee)
	input := testkit.Value(cmd.StdinPipe())(t)
	p = launch(t, cmd)
	testkit.MustThat(t, p.out.await(func(text string) bool { return strings.Contains(text, "state RUNNING") }), "it does not run:\n%s", p.out)
	return p, input.Close
}

// wordCounts is how often words were sent, and what is counted.
type wordCounts struct {
	exact          bool // each is counted once
	sender, reader *kgo.Client
	sent           int64
	newest         map[string]int64
}

const differentWords = 7

// send sends each word a few hundred times more.
func (w *wordCounts) send(t *testing.T, ctx context.Context) {
	t.Helper()
	for range 300 {
		w.sent++
		for n := range differentWords {
			w.sender.Produce(ctx, &kgo.Record{Key: fmt.Append(nil, w.sent), Value: fmt.Append(nil, "word-", n)}, nil)
		}
	}
	testkit.Must(t, w.sender.Flush(ctx))
}

// await waits until every word is counted as often as it was sent. No count goes back, or is higher, where each counts once.
func (w *wordCounts) await(t *testing.T, ctx context.Context) {
	t.Helper()
	done := func() bool {
		for n := range differentWords {
			if w.newest[fmt.Sprint("word-", n)] < w.sent {
				return false
			}
		}
		return true
	}
	for !done() {
		fetches := w.reader.PollFetches(ctx)
		testkit.Must(t, ctx.Err(), "the counts are %v, want %d of each", w.newest, w.sent)
		fetches.EachRecord(func(r *kgo.Record) {
			count, word := int64(binary.BigEndian.Uint64(r.Value)), string(r.Key)
			if w.exact {
				testkit.MustThat(t, count > w.newest[word] && count <= w.sent, "%s is counted %d after %d, it was sent %d times", word, count, w.newest[word], w.sent)
			}
			w.newest[word] = count
		})
	}
}
