package processor

import (
	"errors"
	"slices"
	"testing"
)

func TestHealthReportsEachChangeOfState(t *testing.T) {
	wrong := errors.New("wrong")
	for name, c := range map[string]struct {
		change func(h *health)
		want   []State
		err    error
	}{
		"a state is notified once":       {func(h *health) { h.set(Running, nil); h.set(Running, nil) }, []State{Running}, nil},
		"an error stays until a success": {func(h *health) { h.set(Starting, wrong); h.set(Retrying, nil) }, []State{Retrying}, wrong},
		"a success clears it":            {func(h *health) { h.fault(wrong); h.set(Running, nil) }, []State{Running}, nil},
		"what drains does not run again": {func(h *health) { h.set(Draining, nil); h.set(Running, nil); h.set(Closed, nil) }, []State{Draining, Closed}, nil},
		"what is lost only closes":       {func(h *health) { h.end(); h.set(Faulted, wrong); h.set(Closed, nil) }, []State{Closed}, wrong},
		"a stall is not a drain":         {func(h *health) { h.set(Stalled, wrong); h.set(Draining, nil); h.set(Closed, nil) }, []State{Stalled, Closed}, wrong},
		"a batch that comes again": {func(h *health) { h.failed(1); h.failed(2); h.succeeded(3) },
			[]State{Retrying, Running}, nil},
		"well when the last of two lanes is": {func(h *health) { h.failed(1); h.failed(1); h.succeeded(2); h.succeeded(1); h.succeeded(2) },
			[]State{Retrying, Running}, nil},
		"nothing to retry after a new start": {func(h *health) { h.failed(1); h.startOver(); h.succeeded(1) }, []State{Retrying, Running}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var notified []State
			h := &health{state: Starting, notify: func(s State) { notified = append(notified, s) }}
			c.change(h)
			if !slices.Equal(notified, c.want) || h.err != c.err {
				t.Errorf("notified %v, want %v; error %v", notified, c.want, h.err)
			}
		})
	}
}
