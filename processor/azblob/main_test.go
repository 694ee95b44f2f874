package azblob_test

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/test/parts"
)

// shared is the blob service of all tests: starting one takes longer than most of them. Each test
// has a container of its own.
var shared struct {
	sync.Mutex
	service *parts.BlobService
	stop    []func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, stop := range shared.stop {
		stop()
	}
	os.Exit(code)
}

// azurite gives the blob service, started by the first test that asks.
func azurite(t *testing.T) *parts.BlobService {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.service == nil {
		shared.service = parts.Azurite(untilTheEnd{t})
	}
	return shared.service
}

// untilTheEnd puts a test's cleanups off until all tests have run.
type untilTheEnd struct{ testing.TB }

func (untilTheEnd) Cleanup(stop func()) { shared.stop = append(shared.stop, stop) }

func (untilTheEnd) Errorf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
