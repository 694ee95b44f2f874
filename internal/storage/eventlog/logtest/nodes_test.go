package logtest_test

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

func openDisk(t *testing.T) eventlog.Engine {
	t.Helper()
	engine, err := disk.Open(disk.Config{FS: vfs.NewMem(), RetentionInterval: time.Millisecond, Log: testkit.Quiet()})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Check(t, engine.Close()) })
	return engine
}

// The double that makes several nodes of one engine keeps what such engines promise.
func TestNodes(t *testing.T) {
	logtest.RunNodes(t, func(t *testing.T) (a, b eventlog.Engine) {
		nodes := logtest.NewNodes(openDisk(t))
		a, b = nodes.Node(), nodes.Node()
		t.Cleanup(func() {
			testkit.Check(t, a.Close())
			testkit.Check(t, b.Close())
		})
		return a, b
	})
}
