package testengine

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/testkit"
)

// removePatience bounds how long the streams of a test are being removed.
const removePatience = time.Minute

// servers is the URL that the environment has.
func servers(t testing.TB) string {
	t.Helper()
	url := os.Getenv("EVENTYARD_TEST_NATS")
	if url == "" {
		t.Fatal("EVENTYARD_TEST_NATS names no servers: make test-nats starts some")
	}
	return url
}

// Dial connects to the servers that the environment names, until the test ends.
func Dial(t testing.TB) *nats.Conn {
	t.Helper()
	conn := testkit.Value(nats.Connect(servers(t), connect.Options()...))(t)
	t.Cleanup(conn.Close)
	return conn
}

// Begin says that the test has storage on servers, and removes all that its yard has there when it
// ends: thousands of streams that nobody needs would slow the tests that come later. A test in a bubble
// is skipped.
func Begin(t testing.TB, yard string) {
	t.Helper()
	if InBubble() {
		NeedsBubble(t)
	}
	t.Log(OnServers)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), removePatience)
		defer cancel()
		conn := Dial(t)
		names, err := connect.Streams(ctx, conn, yard)
		testkit.Check(t, err, "list the streams of the test")
		testkit.Check(t, connect.DeleteStreams(ctx, conn, names), "delete the streams of the test")
	})
}

var (
	process = rand.Text() // no other process has a yard of such a name
	begun   sync.Map      // names of yards that somebody has begun
)

// Yard gives where a whole yard has its storage that would have it in a folder: the URL of its engine,
// and its secret key. They are the same whenever the folder is. It is empty where storage is on disk.
func Yard(t testing.TB, folder string) (engine, key string) {
	t.Helper()
	if !OverServers() {
		return "", ""
	}
	sum := sha256.Sum256([]byte(process + filepath.Clean(folder)))
	name := "t" + hex.EncodeToString(sum[:10])
	if _, again := begun.LoadOrStore(name, true); !again {
		Begin(t, name)
	}
	return servers(t) + "?yard=" + name + "&replicas=1", base64.StdEncoding.EncodeToString(sum[:])
}
