//go:build linux

package interop

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/pages"
	"github.com/eventyard/eventyard/test/parts"
)

// TestQuickstarts does what the quickstarts say, from what they have their readers install to the last command, each
// in a folder of its own and all on one yard: each program and each command as it stands there. // V7, H2, H8, K1
func TestQuickstarts(t *testing.T) {
	t.Parallel()
	y := startYard(t, layout{kafka: true})
	for page, prepare := range map[string]func(t *testing.T, r *pages.Reader){
		"python.md": func(t *testing.T, r *pages.Reader) {
			python(t) // that it can be installed here, and that pip has it at hand
			r.Env = append(r.Env, "PIP_CONSTRAINT="+absolute(t, "testdata/python/requirements.txt"))
		},
		"javascript.md": func(t *testing.T, r *pages.Reader) {
			node(t)
			pinPackages(t, r, "javascript.md", "testdata/js/package.json")
		},
		"java.md": func(t *testing.T, _ *pages.Reader) { java(t) },
		"kafka.md": func(t *testing.T, r *pages.Reader) {
			kafkaPython(t)
			kafkaJava(t, kafkaJavaNow)
			kafkaNode(t)
			r.Env = append(r.Env, "PIP_CONSTRAINT="+absolute(t, "testdata/kafka/requirements.txt"))
			pinPackages(t, r, "kafka.md", "testdata/kafka/package.json")
		},
		"go.md": func(t *testing.T, r *pages.Reader) { r.Instead["../eventyard"] = absolute(t, "../..") },
	} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath("go"); err != nil {
				parts.Missing(t, "%v", err)
			}
			r := &pages.Reader{
				Dir:     t.TempDir(),
				Instead: map[string]string{"127.0.0.1:5672": y.hostPort(t, "amqp"), "127.0.0.1:9092": y.hostPort(t, "kafka")},
				Env: []string{
					"PATH=" + filepath.Dir(checkedBuild.binary(t)) + string(os.PathListSeparator) + os.Getenv("PATH"),
					"EVENTYARD_SERVER=http://" + y.hostPort(t, "http"), "GORACE=atexit_sleep_ms=0", "MAVEN_OPTS=-XX:TieredStopAtLevel=1",
				},
			}
			prepare(t, r)
			r.Follow(t, filepath.Join(tutorials, page))
			t.Logf("proved: what %s says works as it stands there", page)
		})
	}
}

const tutorials = "../../docs/tutorials"

// kafkaJavaNow is the version of Kafka's own client that the quickstart names.
const kafkaJavaNow = "4.3.1"

var npmInstall = regexp.MustCompile(`(?m)^npm install (.*)$`)

// pinPackages has npm install what a page names in the versions of a manifest, as pip does by a variable: the test
// is to fail for what is changed here.
func pinPackages(t *testing.T, r *pages.Reader, page, manifest string) {
	t.Helper()
	var pinned struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	testkit.Must(t, json.Unmarshal([]byte(recipeFile(t, manifest)), &pinned))
	named := npmInstall.FindStringSubmatch(recipeFile(t, filepath.Join(tutorials, page)))
	testkit.MustThat(t, named != nil, "%s installs nothing", page)
	maps.DeleteFunc(pinned.Dependencies, func(name, _ string) bool { return !slices.Contains(strings.Fields(named[1]), name) })
	testkit.Equal(t, len(pinned.Dependencies), len(strings.Fields(named[1])), "packages of %s in %s", page, manifest)
	testkit.Must(t, os.WriteFile(filepath.Join(r.Dir, "package.json"), testkit.Value(json.Marshal(pinned))(t), 0o600))
}
