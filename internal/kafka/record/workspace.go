package record

import (
	"bytes"
	"runtime"

	"github.com/klauspost/compress/gzip"
)

// keptBytes is what a workspace keeps of the memory that a batch was unpacked into.
const keptBytes = 2 << 20

// workspace is the memory that one batch is read with.
type workspace struct {
	unpacked []byte
	packed   bytes.Reader
	gzip     gzip.Reader
	record   Record
}

// workspaces are as many as processors. Nobody waits for anything while it has one, so that more would make
// nothing faster; and as many batches can be unpacked at a time, however many there are.
var workspaces = makeWorkspaces(runtime.GOMAXPROCS(0))

func makeWorkspaces(n int) chan *workspace {
	all := make(chan *workspace, n)
	for range n {
		all <- new(workspace)
	}
	return all
}

func takeWorkspace() *workspace { return <-workspaces }

// give is for the next one, who gets nothing of the batch.
func (w *workspace) give() {
	if cap(w.unpacked) > keptBytes {
		w.unpacked = nil
	}
	w.packed.Reset(nil)
	headers := w.record.Headers[:cap(w.record.Headers)]
	clear(headers)
	w.record = Record{Headers: headers[:0]}
	workspaces <- w
}
