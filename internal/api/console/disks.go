package console

import (
	"context"
	"fmt"
	"strconv"

	"github.com/eventyard/eventyard/admin"
)

// disks is what the nodes keep their data in.
type disks struct {
	Rows []diskRow
	// Checking: the data is being read, and not once more at the same time.
	Checking bool
	// Found are problems of the last checks, as far as they are listed.
	Found []string
}

// diskRow is the disk of a node.
type diskRow struct {
	admin.NodeStorage
	ID                string
	Free, Total, Sync string
	Left              string // days
	Check             string
	Sound             *admin.Time // since when all of it is known to be whole
}

// loadDisks asks all nodes; of a yard that does not tell in time, or at all, there are none.
func loadDisks(v *visit) disks {
	ctx, cancel := context.WithTimeout(v.ctx, v.console.figuresTime)
	defer cancel()
	kept, err := v.api.Storage(ctx)
	if err != nil {
		return disks{}
	}
	v.silent.add(kept.Unanswered...)
	return newDisks(kept)
}

func newDisks(kept admin.Storage) (d disks) {
	for i, n := range kept.Nodes {
		row := diskRow{NodeStorage: n, ID: "disk" + strconv.Itoa(i), Free: sizeIfAny(n.FreeBytes), Total: sizeIfAny(n.TotalBytes), Left: daysIfAny(n.DaysLeft), Sync: "–", Check: "never"}
		if n.Syncs > 0 {
			row.Sync = fmt.Sprintf("%.1f ms", 1000*n.SyncSeconds/float64(n.Syncs))
		}
		if n.Check != nil {
			row.Check, row.Sound = checkWords(*n.Check)
			d.Checking = d.Checking || n.Check.Ended == nil
			d.Found = append(d.Found, n.Check.Problems...)
		}
		d.Rows = append(d.Rows, row)
	}
	return d
}

func sizeIfAny(bytes *int64) string {
	if bytes == nil {
		return "–"
	}
	return size(*bytes)
}

// daysIfAny are those until a disk is full, as well as that can be known.
func daysIfAny(left *float64) string {
	switch {
	case left == nil:
		return "–"
	case *left > 365:
		return "over 365"
	case *left < 10:
		return fmt.Sprintf("%.1f", *left)
	}
	return fmt.Sprintf("%.0f", *left)
}

// checkWords say how far a check is, or what came of it.
func checkWords(c admin.StorageCheck) (said string, sound *admin.Time) {
	switch problems := len(c.Problems) + c.MoreProblems; {
	case c.Ended == nil:
		return fmt.Sprintf("%s of %s", number(c.Partitions), plural(c.TotalPartitions, "partition", "partitions")), nil
	case c.Failed != "":
		return "failed: " + c.Failed, nil
	case problems > 0:
		return plural(problems, "problem", "problems"), nil
	}
	return "sound", c.Ended
}

// checkStorage has the node that answers read all events, in the background.
var checkStorage = action{
	path: base + "storage/check", calls: []string{"POST /api/v1/storage/check"},
	do: func(v *visit) (outcome, error) {
		_, err := v.api.CheckStorage(v.ctx, admin.StorageCheckRequest{})
		return outcome{to: at("storage"), done: "checking"}, err
	},
}
