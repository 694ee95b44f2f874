package logs

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// fillers are those of the forms that tests use.
var fillers = Fillers{logtest.FormOpaque: logtest.Opaque(1, "").Place}

// yard is simulated storage and what its nodes share.
type yard struct {
	cluster *model.Cluster
	store   *metatest.Memory
	cfg     Config
}

func newYard(seed uint64, faults model.Faults) *yard {
	return &yard{cluster: model.New(seed, faults), store: metatest.NewMemory(), cfg: Config{TendInterval: time.Millisecond}}
}

// open gives an engine of a node; the test's clean-up closes it.
func (y *yard) open(t *testing.T, node string) *Engine {
	t.Helper()
	cfg := y.cfg
	storage := y.cluster.Node(node)
	cfg.Storage, cfg.Store, cfg.Fill, cfg.Log = storage, y.store, fillers, testkit.Quiet()
	e := New(cfg)
	t.Cleanup(func() {
		testkit.Check(t, e.Close())
		storage.Close()
	})
	return e
}

// openModel is the suite's way to a fresh engine. How small the index is, and how many marks there are,
// decides where readers read.
func openModel(change func(*Config)) logtest.Open {
	return func(t *testing.T) (eventlog.Engine, func() eventlog.Engine) {
		y := newYard(1, model.Faults{})
		change(&y.cfg)
		e := y.open(t, "a")
		return e, func() eventlog.Engine {
			testkit.Must(t, e.Close())
			e = y.open(t, "a")
			return e
		}
	}
}

func asItIs(*Config) {}

func small(cfg *Config) { cfg.indexFrames, cfg.markFrames, cfg.CacheBytes = 8, 20, 1<<10 }

// C1, C2, H2, H3, H4
func TestContractOnTheModel(t *testing.T) {
	for name, change := range map[string]func(*Config){"as it is": asItIs, "small": small} {
		t.Run(name, func(t *testing.T) { logtest.Run(t, openModel(change)) })
	}
}

// C1, C2: also where nodes hear nothing from each other, and servers are behind.
func TestNodesOnTheModel(t *testing.T) {
	for name, faults := range map[string]model.Faults{
		"as it is": {},
		"deaf":     {AnnouncementLost: 1, Lag: 20 * time.Millisecond, Delay: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			logtest.RunNodes(t, func(t *testing.T) (a, b eventlog.Engine) {
				y := newYard(1, faults)
				return y.open(t, "a"), y.open(t, "b")
			})
		})
	}
}

// C7
func TestImportOnTheModel(t *testing.T) {
	logtest.RunImport(t, openDisk, openModel(asItIs))
}

func TestExportFromTheModel(t *testing.T) {
	logtest.RunImport(t, openModel(asItIs), openDisk)
}

func openDisk(t *testing.T) (eventlog.Engine, func() eventlog.Engine) {
	fs := vfs.NewMem()
	open := func() *disk.Engine {
		e, err := disk.Open(disk.Config{FS: fs, RetentionInterval: time.Millisecond, SegmentBytes: 16 << 10, Log: testkit.Quiet()})
		testkit.Must(t, err)
		return e
	}
	e := open()
	t.Cleanup(func() { testkit.Check(t, e.Close()) })
	return e, func() eventlog.Engine {
		testkit.Must(t, e.Close())
		e = open()
		return e
	}
}
