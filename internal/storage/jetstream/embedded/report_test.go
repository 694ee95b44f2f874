package embedded

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// R2: whoever connects causes reports, and not more of them than a log bears.
func TestReportsAreBounded(t *testing.T) {
	var l limit
	now := time.Unix(1000, 0)
	take := func(n int) (made int) {
		for range n {
			if may, _ := l.take(now); may {
				made++
			}
		}
		return made
	}
	testkit.Equal(t, take(1000), mostReports, "at once")
	now = now.Add(reportGap)
	_, omitted := l.take(now)
	testkit.Equal(t, omitted, 1000-mostReports, "omitted")
	testkit.Equal(t, take(10), 0, "right after")
	now = now.Add(time.Hour)
	testkit.Equal(t, take(1000), mostReports, "after an hour")
}

// C5, C8: what a server says when it stops storing, of all streams or of one, is kept; other reports are not
// taken for it.
func TestAReportOfAStop(t *testing.T) {
	for what, want := range map[string]bool{
		"JetStream out of File resources, will be DISABLED":                                        true,
		"RAFT [x - S-R3F-y] Critical write error: write 1.blk: no space left on device":            true,
		"JetStream stream '$G > Y_shop_e' critical write error: no space left on device":           true,
		"Filestore [Y_shop_e] Stream state too short (0 bytes)":                                    false,
		"Catchup for stream '$G > Y_shop_e' stalled":                                               false,
		"Error trying to connect to route (attempt 1): dial tcp 10.0.0.1:6222: connection refused": false,
	} {
		r := &reporter{log: testkit.Quiet()}
		r.Errorf("%s", what)
		r.Errorf("something else")
		testkit.Equal(t, r.stopped() == what, want, "of %q it keeps %q", what, r.stopped())
	}
}

// C8: a report says what to do where that is known, and waiting is no reason to warn.
func TestWhatIsReported(t *testing.T) {
	for what, want := range map[string]string{
		"Waiting for routing to be established...":                             "",
		"x509: certificate signed by unknown authority":                        "bundles of one init",
		"10.0.0.1:6222 - rid:1 - Remote Error \"Authorization Violation\"\r\n": "another process runs with this bundle",
		"something else": "something else",
	} {
		var said lines
		r := &reporter{log: slog.New(slog.NewTextHandler(&said, nil))}
		r.Errorf("%s", what)
		testkit.That(t, strings.Contains(said.String(), want) && (said.String() == "") == (want == ""), "of %q it says %q", what, said.String())
	}
}
