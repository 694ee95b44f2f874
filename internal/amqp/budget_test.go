package amqp

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestUnfinishedMessagesAreBounded(t *testing.T) {
	const limit = 1 << 20 // of a message
	for _, tt := range []struct {
		name string
		has  int // room that the message has already
		held int // by others of the connection
		all  int // that all connections may hold
		size int
		room int
		err  error
	}{
		{"there is room", 100, 0, 0, 100, 100, nil},
		{"a small one gets what it needs", 0, 0, 1 << 30, 100, 100, nil},
		{"a growing one gets twice what it had", 1000, 0, 1 << 30, 1001, 2000, nil},
		{"a medium one gets a buffer that is kept", 0, 0, 1 << 30, smallPartBytes + 1, mediumPartBytes, nil},
		{"a large one as well", 0, 0, 1 << 30, mediumPartBytes + 1, largePartBytes, nil},
		{"too much on the connection", 0, maxPartBytes, 1 << 30, 1, 0, errPartsFull},
		{"too much on all of them", 0, 0, 99, 100, 0, errAllPartsFull},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := budget{limit: int64(tt.all)}
			r := reassembly{held: tt.held + tt.has, all: &all, pool: &partPool{}}
			buf, err := r.grow(make([]byte, min(tt.has, 7), max(tt.has, 0)), tt.size, limit)
			testkit.MustErrorIs(t, err, tt.err)
			if err == nil && (cap(buf) != tt.room || len(buf) != min(tt.has, 7)) {
				t.Errorf("%d bytes with room for %d, want %d", len(buf), cap(buf), tt.room)
			}
			if want := tt.held + max(tt.room, tt.has); r.held != want || int(all.used.Load()) != want-tt.held-tt.has {
				t.Errorf("%d are held, %d used, want %d", r.held, all.used.Load(), want)
			}
			if r.free(buf); r.held != tt.held {
				t.Errorf("%d are held when it is freed, want %d", r.held, tt.held)
			}
		})
	}
}
