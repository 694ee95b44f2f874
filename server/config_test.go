package server

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/service"
	"github.com/eventyard/eventyard/internal/storage/disk"
)

// The printed reference shows defaults; they are what the parts do when left alone.
func TestDefaultsAgree(t *testing.T) {
	c := config.Default()
	if c.SegmentBytes != disk.DefaultSegmentBytes || time.Duration(c.SyncInterval) != disk.DefaultSyncInterval ||
		time.Duration(c.Grace) != service.DefaultGrace {
		t.Errorf("defaults have come apart: %+v", c)
	}
	if mode, err := disk.ParseSync(c.Sync); err != nil || mode != disk.Always {
		t.Errorf("sync %s: %v, %v", c.Sync, mode, err)
	}
}
