package amqp

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestAnswersAreBounded(t *testing.T) {
	free, step := freeAnswerBytes, answerStepBytes
	for _, tt := range []struct {
		name     string
		limit    int // of all connections
		add      []int
		fits     []bool
		reserved int // at the end
	}{
		{"some for nothing", 0, []int{free}, []bool{true}, 0},
		{"one more byte takes a step", 2 * step, []int{free, 1}, []bool{true, true}, step},
		{"as many steps as are needed", 3 * step, []int{free + 2*step + 1}, []bool{true}, 3 * step},
		{"too much of the connection", 1 << 30, []int{maxAnswerBytes, 1}, []bool{true, false}, maxAnswerBytes - free + step - (maxAnswerBytes-free)%step},
		{"too much of all connections", step, []int{free + step, 1}, []bool{true, false}, step},
		{"it is said once", 0, []int{free + 1, free, free}, []bool{false, true, true}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := budget{limit: int64(tt.limit)}
			a := answers{all: &all}
			for i, n := range tt.add {
				if fits := a.add(n, maxAnswerBytes); fits != tt.fits[i] {
					t.Errorf("answer %d: %v, want %v", i, fits, tt.fits[i])
				}
			}
			if used := all.used.Load(); int(used) != tt.reserved || a.reserved != tt.reserved {
				t.Errorf("%d bytes are reserved, %d are used, want %d", a.reserved, used, tt.reserved)
			}
			a.take()
			if a.waiting != 0 || a.reserved != 0 || all.used.Load() != int64(tt.reserved) {
				t.Errorf("while it is written: %+v", a)
			}
			if a.written(); all.used.Load() != 0 {
				t.Errorf("%d bytes are used when all is written", all.used.Load())
			}
		})
	}
}

// What waits to be written when the connection ends is given back, too.
func TestAnswersGiveBackEverything(t *testing.T) {
	all := budget{limit: 1 << 30}
	a := answers{all: &all}
	a.add(freeAnswerBytes+1, maxAnswerBytes)
	a.take()
	a.add(freeAnswerBytes+1, maxAnswerBytes)
	testkit.MustEqual(t, all.used.Load(), 2*answerStepBytes, "bytes are used")
	if a.giveBack(); all.used.Load() != 0 {
		t.Errorf("%d bytes are used at the end", all.used.Load())
	}
}
