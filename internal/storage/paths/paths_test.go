package paths

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R1: an error says what happened, and not in which file.
func TestWithout(t *testing.T) {
	const path = "/var/lib/yard/log/orders-x/0/00.seg"
	full := errors.New("no space left")
	for _, tt := range []struct {
		err  error
		want string
	}{
		{full, "no space left"},
		{&fs.PathError{Op: "write", Path: path, Err: full}, "write a file of the yard: no space left"},
		{fmt.Errorf("create log/orders-x/0/00.seg: %w", &fs.PathError{Op: "open", Path: path, Err: full}),
			"create a file of the yard: open a file of the yard: no space left"},
		{fmt.Errorf("%w: %w", eventlog.ErrUncertain, &fs.PathError{Op: "sync", Path: path, Err: full}),
			"outcome of the append is unknown: sync a file of the yard: no space left"},
		{errors.Join(full, &os.LinkError{Op: "rename", Old: path, New: "/var/lib/yard/spare/1", Err: full}),
			"no space left\nrename a file of the yard a file of the yard: no space left"},
		{&eventlog.CorruptError{Where: "log/orders-x/0/00.seg at offset 7", Reason: "bad checksum", First: 3, Next: 7},
			"a file of the yard: bad checksum: events 3 to 6 cannot be read, go on at 7"},
	} {
		testkit.Equal(t, Without(tt.err), tt.want)
	}
}
