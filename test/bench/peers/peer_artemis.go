package main

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"

	"github.com/eventyard/eventyard/test/parts"
)

//go:embed testdata/artemis.xml
var artemisJars string

//go:embed testdata/Artemis.java
var artemisMain string

// artemis is Apache Artemis inside a small main of ours, with its file journal.
func (b *bench) artemis(stores durability) *process {
	name := map[durability]string{page: "Artemis, journal not synced", fsync: "Artemis, journal synced"}[stores]
	return &process{
		is: about{name: name, kind: "artemis", stores: stores, jvm: true},
		prepare: func(_ context.Context, dir string, l *launch) error {
			// What is compiled is a part of what is installed, so both are a part of the recipe.
			home, err := jars("artemis", artemisJars+"<!--\n"+artemisMain+"-->\n", compileArtemis)
			if err != nil {
				return missing(err)
			}
			l.ports = map[string]string{"amqp": "5672"}
			l.args = []string{"java", "-Xmx512m", "-Xms512m", "-XX:+UseG1GC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
				"-cp", filepath.Join(home, "lib", "*") + string(os.PathListSeparator) + home,
				"Artemis", l.host, l.ports["amqp"], filepath.Join(dir, "data"), string(stores)}
			return nil
		},
	}
}

func compileArtemis(ctx context.Context, dir string) error {
	if err := parts.Need("javac", "default-jdk-headless"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "Artemis.java"), []byte(artemisMain), 0o644); err != nil {
		return err
	}
	return parts.Step(ctx, dir, "javac", "-cp", filepath.Join(dir, "lib", "*"), "-d", dir, "Artemis.java")
}
