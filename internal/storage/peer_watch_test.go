package storage

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/cluster/bundle"
	"github.com/eventyard/eventyard/internal/storage/jetstream/embedded"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// C5, C8: a peer whose disk is full says that it stores nothing, and is to be started again when there is
// room, not before.
func TestAPeerWithAFullDisk(t *testing.T) {
	natstest.NeedsNoDetector(t)
	disk, err := parts.NewDisk(t, 2*roomToStart)
	if err != nil {
		t.Skipf("no disk can be mounted to be filled: %v", err)
	}
	all := peers(t)
	in := runInside(t, all[0], filepath.Join(disk.Folder, "data"))
	runInside(t, all[1], filepath.Join(t.TempDir(), "data"))
	runInside(t, all[2], filepath.Join(t.TempDir(), "data"))
	publish := publisher(t, in.server)
	testkit.Must(t, in.restart())

	disk.Fill(t)
	testkit.Eventually(t, "the server does not say that its disk is full", func() bool {
		publish()
		return in.server.Status().Stopped != ""
	})
	complaint := in.complaint()
	testkit.ErrorIs(t, complaint, ErrStopped)
	testkit.That(t, strings.Contains(complaint.Error(), "make room"), "it says %v", complaint)
	testkit.Must(t, in.restart())
	var shown Servers
	in.show(&shown)
	testkit.That(t, len(shown.Warnings) == 1 && strings.Contains(shown.Warnings[0], "has stopped storing"), "it shows %q", shown.Warnings)

	ended := make(chan error, 1)
	go func() { ended <- in.watch(t.Context(), testkit.Quiet()) }()
	disk.Free(t)
	testkit.ErrorIs(t, <-ended, ErrStopped)
}

// runInside runs the server of a peer in a folder, until the test ends.
func runInside(t *testing.T, b bundle.Bundle, folder string) *inside {
	t.Helper()
	cfg := asPeer(b)
	in := &inside{peer: *cfg.Peer, folder: folder, lock: testkit.Value(claimPeer(folder, cfg))(t)}
	t.Cleanup(func() { testkit.Check(t, in.close()) })
	in.server = testkit.Value(embedded.Open(t.Context(), in.peer.config(folder, cfg.Log)))(t)
	return in
}

// publisher gives what stores a message with all three peers, or tries to.
func publisher(t *testing.T, s *embedded.Server) (publish func()) {
	t.Helper()
	conn := testkit.Value(nats.Connect("", nats.InProcessServer(s)))(t)
	t.Cleanup(conn.Close)
	js := testkit.Value(jetstream.New(conn))(t)
	testkit.Eventually(t, "the peers make no stream", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return testkit.Err(js.CreateStream(ctx, jetstream.StreamConfig{Name: "all", Subjects: []string{"all"}, Replicas: 3})) == nil
	})
	return func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = js.Publish(ctx, "all", make([]byte, 1<<16)) // while the leader changes it fails
	}
}

// Where nothing is inside, or all is well, nothing ends the process.
func TestNothingToWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testkit.Must(t, (&natsNode{}).watch(ctx))
}
