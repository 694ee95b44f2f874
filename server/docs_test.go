package server

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/activity/journal"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/series"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// R2, R3: the limits that the guide names are those that hold.
func TestLimitsAreDocumented(t *testing.T) {
	guide := string(testkit.Value(os.ReadFile("../docs/guides/operating.md"))(t))
	testkit.Equal(t, bodyTimeout, answerTimeout)
	testkit.Equal(t, bodyTimeout, idleTimeout)
	cfg := Config{}.withDefaults()
	for _, row := range []string{
		fmt.Sprintf("connections of clients, of one policy or token | %d,000 (`--http-max-connections`), half of that; then 503", cfg.HTTPMaxConnections/1000),
		fmt.Sprintf("connections of clients, of one policy or token | %d,000 (`--kafka-max-connections`), half of that; then it is closed, and clients come again", cfg.KafkaMaxConnections/1000),
		fmt.Sprintf("head of a request | %d KiB, %.0f s", maxHeaderBytes>>10, headerTimeout.Seconds()),
		fmt.Sprintf("fields in the head of a request | %d; then 431", frame.MaxFields),
		fmt.Sprintf("HTTP/2: requests at once of a connection | %d", maxStreams),
		fmt.Sprintf("HTTP/2: requests under way, then no more are read | %d", strangerBacklog),
		fmt.Sprintf("HTTP with TLS: bytes that are read at once, after others had their turn | %d", strangerRead),
		fmt.Sprintf("HTTP: head of a request that is always read, with TLS | %d KiB, %d KiB", strangerHead>>10, strangerSecure>>10),
		fmt.Sprintf("bodies of requests that are not answered yet, of one policy or token, of all | %d MiB, %d MiB; then 503, and who has sent one for %.0f s is cut off",
			frame.MaxBodyBytesOfOne>>20, frame.MaxBodyBytes>>20, admission.DefaultPatience.Seconds()),
		fmt.Sprintf("the same where no right is needed, of one address, of all | %d MiB, %d MiB", frame.MaxOpenBodyBytesOfOne>>20, frame.MaxOpenBodyBytes>>20),
		fmt.Sprintf("a body of more than %d KiB | %d KiB a second, over all; it may pause for %.0f s", frame.SmallBody>>10, frame.MinBodyRate>>10, frame.BodyPause.Seconds()),
		fmt.Sprintf("time for a body, for an answer, between requests | %.0f min", bodyTimeout.Minutes()),
		fmt.Sprintf("HTTP: time for a whole request with its answer | %.0f s", strangerTimeout.Seconds()),
		fmt.Sprintf("HTTP: time between requests | %.0f s", strangerIdle.Seconds()),
		fmt.Sprintf("HTTP/2: requests at once | %d", strangerRequests),
		fmt.Sprintf("TLS: time to wait for that | %.0f s", headerTimeout.Seconds()),
		fmt.Sprintf("HTTP/2: requests beyond that, until the connection is closed | %d", strangerExcess),
	} {
		testkit.Equal(t, strings.Contains(guide, "\n| "+row+" |\n"), true, "the guide has the row: %s", row)
	}
	testkit.Equal(t, strings.Contains(guide, fmt.Sprintf(", %d times its size,", headFactor)), true)
	for _, said := range []string{
		fmt.Sprintf("of which the yard remembers %d,%03d, and", admission.MaxKnown/1000, admission.MaxKnown%1000),
		fmt.Sprintf("%d million events and %d GiB a second", cfg.Quota.Events/1e6, cfg.Quota.Bytes>>30),
		fmt.Sprintf("keeps %.0f days and at most %d MiB.", journal.KeepFor.Hours()/24, journal.KeepBytes>>20),
		"of a limit of 1,024 open files each listener has 80 connections, and one policy 40.",
		fmt.Sprintf("At most %d,%03d series are kept at a node", series.MaxSeries/1000, series.MaxSeries%1000),
	} {
		testkit.That(t, strings.Contains(strings.ReplaceAll(guide, "\n", " "), said), "the guide says: %s", said)
	}
	testkit.Equal(t, admission.Divide(0).Outgoing, 2048)
	testkit.Equal(t, strings.Contains(guide, "connections to webhooks and functions\nan eighth (2,048)"), true)
	// The limit of open files that the guide names is the least that is enough.
	const enough = 37_232
	testkit.Equal(t, strings.Contains(guide, "need a limit of 37,232."), true)
	wants := []int{cfg.AMQPMaxConnections, cfg.HTTPMaxConnections, cfg.KafkaMaxConnections}
	testkit.Slices(t, admission.Divide(enough, wants...).Clients, wants)
	testkit.That(t, admission.Divide(enough-1, wants...).Clients[0] < wants[0], "less is enough")
	testkit.Slices(t, admission.Divide(1024, wants...).Clients, []int{80, 80, 80})
}
