package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R4: an address has a few failures at once; from then on each answer waits, and never for long.
func TestFailedLoginsAreSlowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFailures(testkit.Quiet(), failurePace)
		failed := func(from string, err error) time.Duration {
			began := time.Now()
			f.Refused(t.Context(), from, err)
			return time.Since(began)
		}
		for i := range int(failurePace.Burst) {
			testkit.Equal(t, failed(fmt.Sprintf("192.0.2.1:%d", 1000+i), auth.ErrSignature), 0, "wait of failure %d", i)
		}
		began := time.Now()
		for range 50 {
			failed("192.0.2.1:2000", auth.ErrMalformed)
		}
		took := time.Since(began)
		testkit.That(t, took >= 9*time.Second && took <= 11*time.Second, "fifty failures took %v", took)
		testkit.Equal(t, failed("192.0.2.2:1", auth.ErrSignature), 0, "wait of another address")
		testkit.Equal(t, failed("192.0.2.1:1", auth.ErrUnavailable), 0, "wait where the issuer does not answer")
		testkit.Equal(t, failed("192.0.2.1:1", &auth.ExpiredError{}), 0, "wait for a token that was good once")
		testkit.Equal(t, failed("pipe", auth.ErrSignature), 0, "wait of who has no address")

		for range 100 { // at once
			go f.Refused(t.Context(), "192.0.2.1:1", auth.ErrSignature)
		}
		synctest.Wait()
		testkit.Equal(t, failed("192.0.2.1:1", auth.ErrSignature), maxFailureDelay, "the longest wait")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began = time.Now()
		f.Refused(ctx, "192.0.2.1:1", auth.ErrSignature)
		testkit.Equal(t, time.Since(began), 0, "wait of a client that is gone")
		time.Sleep(time.Hour)
		testkit.Equal(t, failed("192.0.2.1:1", auth.ErrSignature), 0, "wait an hour later")
	})
}

// R4: a network of IPv6 is one address, and memory is bounded however many there are.
func TestFailuresOfManyAddresses(t *testing.T) {
	f, now := newFailures(testkit.Quiet(), failurePace), time.Now()
	for i := range 100 {
		f.note(fmt.Sprintf("[2001:db8::%x]:1", i), auth.ErrSignature, now)
	}
	testkit.Equal(t, len(f.byAddress), 1, "addresses of one network")
	for i := range 3 * maxFailureAddresses {
		f.note(fmt.Sprintf("[2001:db8:%x:%x::1]:1", i>>16, i&0xffff), auth.ErrSignature, now)
	}
	testkit.That(t, len(f.byAddress) <= maxFailureAddresses+1, "%d addresses are kept", len(f.byAddress))
	f.note("192.0.2.1:1", auth.ErrSignature, now.Add(time.Hour))
	testkit.That(t, len(f.byAddress) <= 2, "%d addresses are kept an hour later", len(f.byAddress))
}

// R4: the log says who is refused and why, and a storm of failures is no storm of lines.
func TestFailuresAreLoggedABoundedNumberOfTimes(t *testing.T) {
	text := &testkit.Buffer{}
	f, now := newFailures(slog.New(slog.NewTextHandler(text, nil)), failurePace), time.Now()
	for range 1000 {
		f.note("192.0.2.1:1", errors.New("it fits no key"), now)
	}
	testkit.Equal(t, strings.Count(text.String(), "\n"), int(failureLog.Burst), "lines")
	f.note("192.0.2.1:1", errors.New("it fits no key"), now.Add(11*time.Second))
	for _, part := range []string{`remote=192.0.2.1:1`, `reason="it fits no key"`, "notLogged=990"} {
		testkit.That(t, strings.Contains(text.String(), part), "the log has no %s", part)
	}
	f.logging = quota.New(failureLog)
	f.report("192.0.2.7:1", auth.ErrAudience)
	testkit.That(t, strings.Contains(text.String(), "remote=192.0.2.7:1"), "a token for another audience is not in the log")
	testkit.Equal(t, f.RefusedFor("192.0.2.7:1", auth.ErrAudience), 0, "the wait of who has a good token")
}
