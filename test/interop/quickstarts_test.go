//go:build linux

package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/pages"
	"github.com/eventyard/eventyard/test/parts"
)

// TestQuickstarts does what the quickstarts say, with the libraries where their readers have installed them: each
// program and each command as it stands there. // V7, H2, H8, K1
func TestQuickstarts(t *testing.T) {
	t.Parallel()
	for page, library := range map[string]func(t *testing.T, r *pages.Reader){
		"python.md": func(t *testing.T, r *pages.Reader) {
			link(t, filepath.Dir(filepath.Dir(python(t))), filepath.Join(r.Dir, "venv"))
		},
		"javascript.md": func(t *testing.T, r *pages.Reader) {
			link(t, filepath.Join(node(t), "node_modules"), filepath.Join(r.Dir, "node_modules"))
		},
		"java.md": func(t *testing.T, r *pages.Reader) {
			link(t, filepath.Join(java(t), "lib"), filepath.Join(r.Dir, "lib"))
		},
		"kafka.md": func(t *testing.T, r *pages.Reader) {
			link(t, filepath.Dir(filepath.Dir(kafkaPython(t))), filepath.Join(r.Dir, "venv"))
			link(t, filepath.Join(kafkaJava(t, kafkaJavaQuickstart), "lib"), filepath.Join(r.Dir, "lib"))
			link(t, filepath.Join(kafkaNode(t), "node_modules"), filepath.Join(r.Dir, "node_modules"))
			r.Instead["go run "] = "go -C " + absolute(t, "../..") + " run " + r.Dir + string(filepath.Separator)
		},
		"go.md": func(t *testing.T, r *pages.Reader) {
			if _, err := exec.LookPath("go"); err != nil {
				parts.Missing(t, "%v", err)
			}
			r.Instead["go run "] = "go -C " + absolute(t, "../..") + " run " + r.Dir + string(filepath.Separator)
		},
	} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			r := &pages.Reader{Dir: t.TempDir(), Instead: map[string]string{}}
			library(t, r)
			y := startYard(t, layout{kafka: true})
			r.Instead["127.0.0.1:5672"] = y.hostPort(t, "amqp")
			r.Instead["127.0.0.1:9092"] = y.hostPort(t, "kafka")
			r.Env = []string{
				"PATH=" + filepath.Dir(checkedBuild.binary(t)) + string(os.PathListSeparator) + os.Getenv("PATH"),
				"EVENTYARD_SERVER=http://" + y.hostPort(t, "http"), "GORACE=atexit_sleep_ms=0",
			}
			r.Follow(t, filepath.Join("..", "..", "docs", "tutorials", page))
			t.Logf("proved: what %s says works as it stands there", page)
		})
	}
}

// kafkaJavaQuickstart is the version of Kafka's own client that the quickstart names.
const kafkaJavaQuickstart = "4.3.1"

func link(t *testing.T, to, name string) {
	t.Helper()
	testkit.Must(t, os.Symlink(to, name))
}
