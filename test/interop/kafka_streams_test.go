//go:build linux

package interop

import (
	"os/exec"
	"path/filepath"
	"testing"
)

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
		"-cp", filepath.Join(jars(t, "kafka-streams", filepath.Join("testdata", "kafka", "streams.xml")), "lib", "*"), filepath.Join("testdata", "kafka", "Streams.java"))
	cmd.Env = environment(k.environment())
	script(t, cmd, 2*kafkaTime)
}
