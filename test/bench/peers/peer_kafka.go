package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/eventyard/eventyard/test/parts"
)

//go:embed testdata/kafka.xml
var kafkaJars string

//go:embed testdata/server.properties
var kafkaProperties string

//go:embed testdata/log4j2.yaml
var kafkaLogging string

// kafka is Apache Kafka: one server that is broker and controller, with the heap and the garbage collector of its own
// start script. What it has acknowledged is in the page cache, its default; or synced, with flush.messages=1 for all
// topics.
func (b *bench) kafka(stores durability) *process {
	name := map[durability]string{page: "Kafka, its default", fsync: "Kafka, `flush.messages=1`"}[stores]
	return &process{
		is: about{name: name, kind: "kafka", stores: stores, jvm: true},
		prepare: func(ctx context.Context, dir string, l *launch) error {
			jars, err := kafkaFolder()
			if err != nil {
				return missing(err)
			}
			l.ports = map[string]string{"kafka": "9092", "kafkas": "9093"}
			properties := filepath.Join(dir, "server.properties")
			err = writeTemplate(properties, kafkaProperties, map[string]any{
				"Host": l.host, "Data": filepath.Join(dir, "data"), "Keys": b.certificate("keys.pem"), "Flush": stores == fsync})
			if err != nil {
				return err
			}
			logging := filepath.Join(dir, "log4j2.yaml")
			if err := writeTemplate(logging, kafkaLogging, map[string]any{"File": filepath.Join(dir, "server.log")}); err != nil {
				return err
			}
			var id [16]byte
			_, _ = rand.Read(id[:])
			id[0] &= 0x7f // an id that begins with "-" would be taken for a flag
			java := []string{"java", "-Dlog4j2.configurationFile=" + logging, "-cp", jars}
			err = parts.Step(ctx, dir, append(java, "kafka.tools.StorageTool", "format", "--standalone",
				"-t", base64.RawURLEncoding.EncodeToString(id[:]), "-c", properties)...)
			if err != nil {
				return err
			}
			l.args = append([]string{"java", "-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
				"-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"}, append(java[1:], "kafka.Kafka", properties)...)
			return nil
		},
	}
}

// kafkaFolder is Java's class path of Kafka's server and tools.
func kafkaFolder() (classPath string, err error) {
	dir, err := jars("kafka-server", kafkaJars, nil)
	return filepath.Join(dir, "lib", "*"), err
}

// jars installs what a pom.xml names, once for all runs, into lib of a folder, and whatever else is to be made of it.
func jars(name, pom string, also func(ctx context.Context, dir string) error) (dir string, err error) {
	if err := parts.Need("java", "default-jdk-headless"); err != nil {
		return "", err
	}
	return parts.Component{Name: name, Recipe: pom, Install: func(ctx context.Context, dir string) error {
		if err := parts.Need("mvn", "maven"); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "pom.xml"), []byte(pom), 0o644); err != nil {
			return err
		}
		err := parts.Step(ctx, dir, "mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory="+filepath.Join(dir, "lib"))
		if err != nil || also == nil {
			return err
		}
		return also(ctx, dir)
	}}.Ensure()
}

// writeTemplate fills in a file that a server reads.
func writeTemplate(file, text string, values map[string]any) error {
	t, err := template.New(filepath.Base(file)).Parse(text)
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := t.Execute(&b, values); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o600)
}
