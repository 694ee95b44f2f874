package traces

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

var printedAddress = regexp.MustCompile(`(?m)^ +http +(http://\S+)$`)

// V6: the program itself, told of a receiver by its flag, says that it sends spans there, and does: the last of them
// when it is stopped.
func TestServeSendsSpans(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program")
	}
	r := newReceiver(t)
	dir, binary := t.TempDir(), parts.Eventyard(t, false)
	p := parts.NewProgram(dir, binary, "serve", "--data", "data", "--http", "127.0.0.1:0", "--amqp", "off",
		"--otlp-endpoint", r.url, "--otlp-sample", "1")
	t.Cleanup(func() { _ = p.End("KILL") })
	printed := ""
	testkit.Must(t, p.Start(func(text string) bool {
		printed = text
		return strings.Contains(text, "Ctrl-C stops it.")
	}))
	testkit.That(t, strings.Contains(printed, r.url+"/v1/traces"), "it says where they go: %s", printed)
	address := printedAddress.FindStringSubmatch(printed)
	testkit.MustEqual(t, len(address), 2, "addresses in %s", printed)

	command := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Env = append(os.Environ(), "EVENTYARD_SERVER="+address[1], "EVENTYARD_CONNECTION_STRING=@"+filepath.Join(dir, "data", "connection-string"))
		out, err := cmd.CombinedOutput()
		testkit.Must(t, err, "%s: %s", args, out)
	}
	command("hub", "create", "readings", "--partitions", "1")
	command("send", "readings", "21", "--property", "traceparent="+reading.TraceParent())
	testkit.Must(t, p.End("TERM"))
	send := one(t, r.of(reading.Trace()), "send readings")
	testkit.Equal(t, id(send.ParentSpanId), strings.Split(reading.TraceParent(), "-")[2], "the publisher's span is the parent")
	testkit.Equal(t, r.service, "eventyard")
}
