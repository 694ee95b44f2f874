package sleep

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("no more")
		ended, end := context.WithCancelCause(t.Context())
		end(why)
		wake := make(chan struct{}, 1)
		wake <- struct{}{}
		for _, c := range []struct {
			name string
			wait func() error
			took time.Duration
			err  error
		}{
			{"the time", func() error { return For(t.Context(), time.Hour, nil) }, time.Hour, nil},
			{"woken", func() error { return For(t.Context(), time.Hour, wake) }, 0, nil},
			{"ended", func() error { return For(ended, time.Hour, wake) }, 0, why},
		} {
			began := time.Now()
			testkit.ErrorIs(t, c.wait(), c.err, "%s", c.name)
			testkit.Equal(t, time.Since(began), c.took, "%s", c.name)
		}
		for range 100 {
			began := time.Now()
			testkit.Must(t, About(t.Context(), time.Second))
			if took := time.Since(began); took < time.Second/2 || took > time.Second {
				t.Errorf("about a second took %v", took)
			}
		}
	})
}
