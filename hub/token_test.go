package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H9: tokens run out, links do not.
func TestTokensAreRenewedWhileLinksStand(t *testing.T) {
	bubble(t, memorySetup{}, func(t *testing.T, y *memoryYard, client *hub.Client) {
		standFor(t, client.Hub("h"), 24*time.Hour)
		if n := y.log.count.Load(); n != 0 {
			t.Errorf("carried on from %d interruptions", n)
		}
	})
}

// standFor uses a sender, a reader and the management node now and then for so long.
func standFor(t *testing.T, h *hub.Hub, d time.Duration) {
	t.Helper()
	r := open(t, h, hub.ReadConfig{Partition: "0", Epoch: hub.Exclusive(1)})
	began := time.Now()
	for i := 0; time.Since(began) < d; i++ {
		testkit.Must(t, h.SendTo(t.Context(), "0", event.Text(fmt.Sprint(i))))
		wantBodies(t, next(t, r, 1), fmt.Sprint(i))
		testkit.Must(t, infoError(h))
		time.Sleep(25 * time.Minute)
	}
}

// Without the renewals of the test above, this is what would happen.
func TestASignatureThatHasExpiredEndsTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := startMemory(t, memorySetup{})
		c := development
		c.Signature = auth.Sign("sb://yard/", c.Policy, c.Key, time.Now().Add(10*time.Minute))
		c.Policy, c.Key = "", ""
		h := y.dial(t, c.String(), hub.Config{}).Hub("h")
		r := open(t, h, hub.ReadConfig{Partition: "0"})
		testkit.Must(t, h.Send(t.Context(), event.Text("x")))
		next(t, r, 1)
		wantError(t, testkit.Err(r.Next(t.Context(), nil, 1)), hub.ErrUnauthorized)
		wantError(t, h.Send(t.Context(), event.Text("x")), hub.ErrUnauthorized)
	})
}

// bearer takes tokens that are the text of the time at which they expire.
type bearer struct{}

func (bearer) Verify(_ context.Context, token string) (auth.Grant, error) {
	expires, err := time.Parse(time.RFC3339, token)
	if err != nil || !time.Now().Before(expires) {
		return auth.Grant{}, auth.ErrExpired
	}
	return auth.Grant{Scopes: []auth.Scope{{Rights: auth.Manage}}, Holder: "bearer", Expires: expires}, nil
}

// H9: a program is asked for another token in good time, and no more often.
func TestBearerTokensAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := startMemory(t, memorySetup{bearer: bearer{}})
		var asked atomic.Int64
		var down atomic.Bool
		token := func(context.Context) (string, time.Time, error) {
			if asked.Add(1); down.Load() {
				return "", time.Time{}, errors.New("the issuer is down")
			}
			expires := time.Now().Add(time.Hour).Truncate(time.Second)
			return expires.Format(time.RFC3339), expires, nil
		}
		client := y.dial(t, "Endpoint=sb://yard/;UseDevelopmentEmulator=true", hub.Config{Token: token})
		standFor(t, client.Hub("h"), 10*time.Hour)
		if n := asked.Load(); n < 10 || n > 20 {
			t.Errorf("asked %d times in ten hours", n)
		}
		if n := y.log.count.Load(); n != 0 {
			t.Errorf("carried on from %d interruptions", n)
		}
		r := open(t, client.Hub("h"), hub.ReadConfig{Partition: "0", From: hub.Latest, Epoch: hub.Exclusive(2)})
		down.Store(true)
		time.Sleep(50 * time.Minute) // the renewal fails some times
		down.Store(false)
		time.Sleep(10 * time.Minute)
		testkit.Must(t, client.Hub("h").Send(t.Context(), event.Text("survived")))
		wantBodies(t, next(t, r, 1), "survived")
		if n := y.log.count.Load(); n == 0 {
			t.Error("a renewal that failed was not told")
		}
	})
}

// A hub that says nothing is not waited for for ever.
func TestAnAttemptHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := hub.Dial(t.Context(), development.String(), hub.Config{Dial: mute, Retry: hub.Retry{Attempts: 2, Timeout: time.Minute}})
		if err == nil || !strings.Contains(err.Error(), "no answer within 1m0s") || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("answered %v", err)
		}
		if took := time.Since(began); took < 2*time.Minute || took > 3*time.Minute {
			t.Errorf("took %s", took)
		}
	})
}
