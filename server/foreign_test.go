package server

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/certs"
)

// R6: a folder of others is refused, and nothing in it touched.
func TestAFolderOfOthersIsRefused(t *testing.T) {
	testengine.NeedsFiles(t)
	cfg := quick(t)
	testkit.Must(t, os.MkdirAll(filepath.Join(cfg.DataDir, "trash"), 0o700))
	testkit.Must(t, os.WriteFile(filepath.Join(cfg.DataDir, "trash", "letters.txt"), []byte("mine"), 0o600))
	before := testkit.Tree(t, cfg.DataDir)
	s := testkit.Value(New(cfg))(t)
	testkit.ErrorIs(t, s.Run(t.Context()), ErrForeign)
	testkit.Deep(t, testkit.Tree(t, cfg.DataDir), before)
}

// R6: in a yard's folder files of others stay as they are, also in the folders of blobs,
// certificates and dead letters, and no link is followed: a whole life of a yard, twice. Package
// storage has the same for the folders of events.
func TestFilesOfOthersInTheDataFolderAreLeftAlone(t *testing.T) {
	testengine.NeedsFiles(t)
	cfg, outside := everyListener(t), t.TempDir()
	start(t, cfg).shutdown()
	file := filepath.Join(outside, "theirs")
	testkit.Must(t, os.WriteFile(file, []byte("theirs"), 0o600))
	before := map[string]string{}
	put := func(name, link string) {
		t.Helper()
		path := filepath.Join(cfg.DataDir, filepath.FromSlash(name))
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if link != "" {
			testkit.Must(t, os.Symlink(link, path))
			before[path] = "link: " + link
			return
		}
		testkit.Must(t, os.WriteFile(path, []byte("mine"), 0o600))
		before[path] = "file: mine"
	}
	for _, dir := range []string{".", "blobs", "tls", "dead", "log", "spare", "trash", "journal"} {
		for _, name := range []string{"notes.txt", "notes.json.part", "notes.pem.1.tmp", "folder/notes.new", "connection-string.old"} {
			put(dir+"/"+name, "")
		}
		put(dir+"/link", file)
		put(dir+"/links", outside)
	}
	put("blobs/"+strings.Repeat("a", 32), file) // by the names of bodies
	put("blobs/"+strings.Repeat("b", 32)+vfs.UnfinishedSuffix, outside)
	for range 2 {
		y := start(t, cfg)
		y.want(201, "POST", "/api/v1/hubs", `{"name":"orders","partitions":2}`)
		y.want(201, "POST", "/api/v1/hubs/orders/events", `{"events":[{"body":"one"}]}`)
		client := y.blobClient()
		testkit.Must(t, testkit.Err(client.CreateContainer(t.Context(), "box", nil)))
		testkit.Must(t, testkit.Err(client.UploadBuffer(t.Context(), "box", "large", bytes.Repeat([]byte("large"), 10_000), nil)))
		testkit.Must(t, testkit.Err(client.DeleteBlob(t.Context(), "box", "large", nil)))
		testkit.Must(t, testkit.Err(client.DeleteContainer(t.Context(), "box", nil)))
		y.want(204, "DELETE", "/api/v1/hubs/orders", "")
		y.shutdown()
		testkit.Holds(t, before, cfg.DataDir)
	}
	testkit.Deep(t, testkit.Tree(t, outside), map[string]string{outside: "folder", file: "file: theirs"})
}

// R6: certificates of the operator's are given by settings. A link in the place of one that the
// yard makes would be read through, and replaced when the certificate is renewed.
func TestALinkInTheFolderOfCertificatesIsRefused(t *testing.T) {
	testengine.NeedsFiles(t)
	cfg := everyListener(t)
	start(t, cfg).shutdown()
	for _, name := range certs.OwnFiles() {
		path, theirs := filepath.Join(cfg.DataDir, CertificateDir, name), filepath.Join(t.TempDir(), name)
		testkit.Must(t, os.Rename(path, theirs))
		testkit.Must(t, os.Symlink(theirs, path))
		err := testkit.Value(New(cfg))(t).Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), path+" is a link or a device") {
			t.Errorf("%s: %v", name, err)
		}
		testkit.Must(t, os.Rename(theirs, path)) // over the link
	}
	start(t, cfg).shutdown()
}
