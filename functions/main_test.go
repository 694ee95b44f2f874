package functions

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/processor/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newStore() *memory.Store { return memory.New() }
