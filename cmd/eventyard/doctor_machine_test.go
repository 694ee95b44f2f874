package main

import (
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/overview"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V7: of how full a disk is, doctor says what status says.
func TestDoctorAndStatusAgreeAboutTheDisk(t *testing.T) {
	severity := map[status]string{fine: "", warning: admin.SeverityWarning, problem: admin.SeverityBroken}
	for _, disk := range []struct {
		free, total int64
		want        status
	}{
		{1 << 40, 2 << 40, fine},
		{40 << 30, 1 << 40, warning}, // a twenty-fifth
		{100 << 30, 1 << 40, fine},
		{1<<30 - 1, 2 << 30, warning},
		{100 << 20, 2 << 30, warning},
		{64<<20 - 1, 2 << 30, problem},
		{0, 1 << 40, problem},
	} {
		d := &doctor{}
		d.judgeSpace(disk.free, disk.total)
		testkit.Equal(t, d.findings[0].Status, disk.want, "of %d bytes of %d doctor", disk.free, disk.total)
		said := ""
		for _, n := range overview.Needs(overview.Findings{Nodes: []overview.Node{{Name: "a", Free: disk.free, Total: disk.total}}}) {
			said = n.Severity
		}
		testkit.Equal(t, said, severity[disk.want], "of %d bytes of %d status", disk.free, disk.total)
	}
}
