package crash

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// TestKillNineOfCopy kills a copy to servers twice in its midst, and one back: no yard starts on what it
// leaves, the same command goes on with that, and in the end all that was acknowledged is where it was. // C7
func TestKillNineOfCopy(t *testing.T) {
	servers := natstest.Start(t, 1)
	conn := servers.Dial(t, 0)
	y := &yard{t: t, binary: parts.Eventyard(t, true), data: filepath.Join(t.TempDir(), "data"), acked: map[position]string{}, accepted: map[int]bool{}, sizes: map[int]int{}}
	y.start()
	y.post("/api/v1/hubs", fmt.Sprintf(`{"name":"orders","partitions":%d}`, partitions), http.StatusCreated)
	y.post("/api/v1/hubs", `{"name":"bulk","partitions":2}`, http.StatusCreated)
	y.program("send", "bulk", "--count", fmt.Sprint(bulk), "--size", "100000", "--server", y.url).mustRun()
	stop := y.load()
	testkit.Eventually(t, "some events", func() bool {
		y.mu.Lock()
		defer y.mu.Unlock()
		return len(y.acked) > 200
	})
	stop()
	y.check()
	y.stop()

	key := filepath.Join(t.TempDir(), "key")
	testkit.Must(t, os.WriteFile(key, []byte(sealed.NewKey()+"\n"), 0o600))
	location := servers.URL() + "?yard=moved&replicas=1"
	off := []string{"--secrets-key-file", key, "--http", "off", "--https", "off", "--amqp", "off", "--amqps", "off", "--kafka", "off", "--kafkas", "off"}
	there := func() *command {
		return y.program("copy", "--from", y.data, "--to", location, "--secrets-key-file", key)
	}
	for _, part := range []int64{3, 6} {
		testkit.MustThat(t, there().interrupted(func() bool { return yardBytes(conn) > bulk*100_000*part/10 }), "it was done before it was killed")
		y.program(append([]string{"serve", "--engine", location}, off...)...).mustFail("a restore is not finished")
	}
	y.wantContinued(there())
	there().mustFail("the yard is not empty")

	back := filepath.Join(t.TempDir(), "back")
	home := func() *command {
		return y.program("copy", "--from", location, "--from-secrets-key-file", key, "--to", back)
	}
	testkit.MustThat(t, home().interrupted(func() bool { return folderBytes(back) > bulk*100_000/2 }), "it was done before it was killed")
	y.program("serve", "--data", back, "--http", "off", "--https", "off", "--amqp", "off", "--amqps", "off", "--kafka", "off", "--kafkas", "off").mustFail("a restore is not finished")
	y.wantContinued(home())
	y.data, y.acked = back, maps.Clone(y.acked)
	y.start()
	y.check()
	y.stop()
}

// wantContinued wants a copy to end without copying anew what is there.
func (y *yard) wantContinued(c *command) {
	y.t.Helper()
	out := string(c.mustRun())
	testkit.That(y.t, strings.Contains(out, "had been copied before, and are the same"), "it says %s", out)
}

// interrupted runs a command until something is so, kills it, and tells whether it was still running.
func (c *command) interrupted(when func() bool) bool {
	c.y.t.Helper()
	testkit.Must(c.y.t, c.Start())
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	for !when() {
		select {
		case err := <-done:
			testkit.Must(c.y.t, err, "%v: %s", c.Args[1:], c.output.String())
			return false
		default:
		}
	}
	_ = c.Process.Kill() // it may have ended
	return <-done != nil
}

// yardBytes is what all streams on the servers hold.
func yardBytes(conn *nats.Conn) (total int64) {
	js, err := jetstream.New(conn)
	if err != nil {
		return 0
	}
	for info := range js.ListStreams(context.Background()).Info() {
		total += int64(info.State.Bytes)
	}
	return total
}
