package disk_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestImport(t *testing.T) {
	for _, mode := range []disk.SyncMode{disk.Always, disk.Interval, disk.OS} {
		t.Run(mode.String(), func(t *testing.T) {
			open := func(t *testing.T) (eventlog.Engine, func() eventlog.Engine) {
				return reopenable(t, config(mode, vfs.NewMem()))
			}
			logtest.RunImport(t, open, open)
		})
	}
}

// C7, H3: the power fails in the midst of a copy, at any operation and several times; it goes on, and
// in the end all is as it was.
func TestImportSurvivesPowerCuts(t *testing.T) {
	e := mustOpen(t, config(disk.Always, vfs.NewMem()))
	source := mustPartition(t, e, eventlog.Retention{})
	fill(t, source, 0, 400)
	testkit.Must(t, source.Trim(t.Context(), 200))
	if b := testkit.Value(source.Bounds(t.Context()))(t); b.First == 0 {
		t.Fatal("nothing was removed: this proves too little")
	}
	resumed := 0
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			mem := vfs.NewMem()
			cuts := 0
			for done := false; !done; {
				if cuts < 5 {
					mem.FailAfter(rnd.IntN(60))
				}
				engine, err := disk.Open(config(disk.Always, mem))
				if err == nil {
					var target eventlog.Partition
					if target, err = engine.Partition(first); err == nil {
						before, _ := target.Sealed(t.Context())
						if _, err = eventlog.Copy(t.Context(), source, target); before.Next > 0 && !before.Empty() {
							resumed++
						}
					}
					if err == nil {
						logtest.WantAlike(t, source, target)
						done = true
					}
					_ = engine.Close()
				}
				mem = mem.CutPower(rnd)
				cuts++
			}
			logtest.WantAlike(t, source, mustPartition(t, mustOpen(t, config(disk.Always, mem)), eventlog.Retention{}))
		})
	}
	if resumed < 10 {
		t.Errorf("only %d copies went on where one was cut off: this proves too little", resumed)
	}
}
