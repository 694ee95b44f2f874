package storage

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/cluster/bundle"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// peers are the bundles of three peers at ports of this machine that nobody has.
func peers(t *testing.T) []bundle.Bundle {
	t.Helper()
	var all []bundle.Peer
	for _, name := range []string{"a", "b", "c"} {
		l := testkit.Value(net.Listen("tcp", net.JoinHostPort(parts.OwnLoopback(), "0")))(t)
		defer l.Close() // all are open at once, so that they differ
		all = append(all, bundle.Peer{Name: name, Address: l.Addr().String()})
	}
	return testkit.Value(bundle.Make("shop", all, time.Now()))(t)
}

func asPeer(b bundle.Bundle) Config {
	return Config{Peer: &Peer{Bundle: b}, Program: "eventyard test", Log: testkit.Quiet()}
}

// claimed makes a folder a peer's.
func claimed(t *testing.T, b bundle.Bundle) (folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "data")
	lock := testkit.Value(claimPeer(folder, asPeer(b)))(t)
	testkit.Must(t, lock.Close())
	return folder
}

// C8, R6: a folder that is not this peer's is refused with what it is, and not touched.
func TestAPeersFolder(t *testing.T) {
	here, elsewhere := peers(t), peers(t)
	yards := filepath.Join(t.TempDir(), "data")
	testkit.Must(t, testkit.Value(Open(t.Context(), Disk(yards), quick))(t).Close())
	planted := func(files map[string]string) string {
		dir := t.TempDir()
		plant(t, dir, files)
		return dir
	}
	newer := claimed(t, here[0])
	plant(t, newer, map[string]string{markName: `{"format":1073741824,"program":"eventyard v99","peer":{"format":2,"node":"a"}}`})
	linked := claimed(t, here[0])
	testkit.Must(t, os.Remove(filepath.Join(linked, peerDir)))
	plant(t, linked, map[string]string{peerDir: "-> /"})
	for name, tt := range map[string]struct {
		folder string
		want   error
		says   string
	}{
		"its own":                    {folder: claimed(t, here[0])},
		"none":                       {folder: filepath.Join(t.TempDir(), "new")},
		"empty":                      {folder: planted(map[string]string{"lost+found/": "", "LOCK": "12\n"})},
		"another peer's":             {claimed(t, here[1]), ErrOtherPeer, "the data of b, and the bundle is that of a"},
		"another cluster's":          {claimed(t, elsewhere[0]), ErrOtherPeer, "of yard shop (cluster " + elsewhere[0].Cluster[:6]},
		"a yard's":                   {yards, ErrOtherPeer, "a whole yard"},
		"somebody's":                 {planted(map[string]string{"notes.txt": "shopping"}), ErrForeign, "notes.txt"},
		"somebody's with our names":  {planted(map[string]string{"nats/x": "mine"}), ErrForeign, "nats"},
		"a newer program's":          {newer, ErrNewerData, "eventyard v99"},
		"its own, with a link in it": {linked, nil, "is a link"},
	} {
		t.Run(name, func(t *testing.T) {
			var before any
			if tt.says != "" {
				before = testkit.Tree(t, tt.folder)
			}
			lock, err := claimPeer(tt.folder, asPeer(here[0]))
			if tt.says == "" {
				testkit.Must(t, err)
				_, err := claimPeer(tt.folder, asPeer(here[0]))
				testkit.ErrorIs(t, err, ErrLocked)
				testkit.Must(t, lock.Close())
				return
			}
			testkit.That(t, err != nil && strings.Contains(err.Error(), tt.says), "it says %v", err)
			if tt.want != nil {
				testkit.ErrorIs(t, err, tt.want)
			}
			testkit.Deep(t, testkit.Tree(t, tt.folder), before)
		})
	}
}

// C8, R6: no other engine opens a peer's folder, nor does a restore.
func TestOthersLeaveAPeersFolderAlone(t *testing.T) {
	folder := claimed(t, peers(t)[0])
	before := testkit.Tree(t, folder)
	testkit.ErrorIs(t, testkit.Err(Open(t.Context(), Disk(folder), quick)), ErrPeerFolder)
	testkit.ErrorIs(t, testkit.Err(Inspect(t.Context(), Disk(folder), Inspection{})), ErrPeerFolder)
	testkit.ErrorIs(t, testkit.Err(Restore(t.Context(), Disk(folder), quick, Restored{})), ErrOccupied)
	testkit.ErrorIs(t, testkit.Err((SecretKey{}).Rotate(folder)), ErrPeerFolder)
	testkit.Deep(t, testkit.Tree(t, folder), before)
	old := examined{kind: marked, mark: mark{Format: restoringFormat, Program: "eventyard test"}} // as older programs read it
	testkit.ErrorIs(t, old.refusal(folder), ErrNewerData)
}

// C8: what is wrong with a peer is said with the next thing to try, and leaves the folder free.
func TestAPeerThatCannotStart(t *testing.T) {
	all := peers(t)
	taken := testkit.Value(net.Listen("tcp", all[0].Self().Address))(t)
	var stranger sync.WaitGroup
	stranger.Go(func() { // it has nothing to say
		for conn, err := taken.Accept(); err == nil; conn, err = taken.Accept() {
			_ = conn.Close()
		}
	})
	defer stranger.Wait()
	defer taken.Close()
	early := all[1]
	early.Certificate, early.Key = "", ""
	for name, tt := range map[string]struct {
		peer Peer
		says string
	}{
		"an address in use":          {Peer{Bundle: all[0]}, "--cluster-listen"},
		"an address it has not":      {Peer{Bundle: all[1], Listen: "192.0.2.1:6222"}, "see that the bundle is this machine's"},
		"no address":                 {Peer{Bundle: all[1], Listen: "here"}, "use HOST:PORT"},
		"more replicas than servers": {Peer{Bundle: all[1], Replicas: 5}, "with five peers, 5"},
		"two replicas":               {Peer{Bundle: all[1], Replicas: 2}, "use 1, 3"},
		"a broken bundle":            {Peer{Bundle: early}, "copy it again"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "data")
			cfg := asPeer(tt.peer.Bundle)
			cfg.Peer = &tt.peer
			_, err := Open(t.Context(), PeerOf(folder), cfg)
			testkit.That(t, err != nil && strings.Contains(err.Error(), tt.says), "it says %v", err)
			if used, err := InUse(Disk(folder)); used || err != nil {
				t.Errorf("in use: %v, %v", used, err)
			}
			found, err := Inspect(t.Context(), PeerOf(folder), Inspection{Peer: &tt.peer})
			testkit.Must(t, err)
			testkit.That(t, strings.Contains(strings.Join(found.Problems, "\n"), tt.says), "the doctor says %q", found.Problems)
		})
	}
	_, err := Open(t.Context(), PeerOf(t.TempDir()), Config{})
	testkit.That(t, err != nil, "a peer without a bundle")
}

// C8: at a host name all addresses are listened at, at an address that one.
func TestWhereAPeerListens(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1:6222": "10.0.0.1:6222", "127.0.0.1:1": "127.0.0.1:1", "localhost:1": "localhost:1", "[fe80::1]:1": "[fe80::1]:1",
		"a.example.com:7000": "0.0.0.0:7000",
	} {
		p := Peer{Bundle: bundle.Bundle{Node: "a", Peers: []bundle.Peer{{Name: "a", Address: address}}}}
		testkit.Equal(t, p.listen(), want, "at %s", address)
		p.Listen = "1.2.3.4:5"
		testkit.Equal(t, p.listen(), "1.2.3.4:5", "as it was told")
	}
}

// R3: a peer that is given no bound may keep what it has and a part of what is free, so that a start on
// a disk that has filled up takes nothing from it.
func TestRoomOfAPeer(t *testing.T) {
	folder := claimed(t, peers(t)[0])
	free, _, err := Space(folder)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	testkit.Must(t, err)
	room := storeRoom(folder)
	testkit.That(t, room > free/2 && room < free, "%d of %d", room, free)
	const stored = 1 << 40 // no disk has that much; a file with a hole takes none of it
	f := testkit.Value(os.Create(filepath.Join(folder, peerDir, "block")))(t)
	if err := f.Truncate(stored); err != nil {
		t.Skip(err)
	}
	testkit.Must(t, f.Close())
	testkit.That(t, storeRoom(folder) > stored, "less than it has")
}

// C8: a peer whose others do not answer waits for them, and stops waiting when it is to stop: its folder
// and its address are free then.
func TestAPeerWaitsForOthers(t *testing.T) {
	b := peers(t)[0]
	folder := filepath.Join(t.TempDir(), "data")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := Open(ctx, PeerOf(folder), asPeer(b))
	testkit.That(t, err != nil && strings.Contains(err.Error(), "does not reach b, c"), "it says %v", err)
	l := testkit.Value(net.Listen("tcp", b.Self().Address))(t)
	testkit.Must(t, l.Close())
	lock := testkit.Value(vfs.OS(folder).Lock(lockName))(t)
	testkit.Must(t, lock.Close())
	found := testkit.Value(Inspect(t.Context(), PeerOf(folder), Inspection{Peer: &Peer{Bundle: b}}))(t)
	testkit.That(t, len(found.Problems) == 0 && len(found.Warnings) == 2 && !found.InUse, "found %+v", found)
	testkit.That(t, strings.Contains(found.Warnings[0], syscall.ECONNREFUSED.Error()), "found %+v", found)
}
