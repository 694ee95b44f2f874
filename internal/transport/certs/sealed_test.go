package certs

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/testkit"
)

func keysOf(t *testing.T, lines ...string) *sealed.Keys {
	t.Helper()
	return testkit.Value(sealed.ParseKeys(strings.Join(lines, "\n")))(t)
}

// R5: without the secret key nobody reads a private key from the folder, whether it was made so, was
// there in clear from before, or the secret key was rotated since; and certificates stay the same.
func TestPrivateKeysAreSealed(t *testing.T) {
	dir, first, second := t.TempDir(), sealed.NewKey(), sealed.NewKey()
	log := testkit.Quiet()
	clear := leaf(t, open(t, Config{Dir: dir})) // as older versions left it
	inClear := func() bool {
		return bytes.Contains(append(read(t, filepath.Join(dir, caKeyFile)), read(t, filepath.Join(dir, keyFile))...), []byte("BEGIN PRIVATE KEY"))
	}
	testkit.That(t, inClear(), "the test shows nothing: keys are not in clear")
	for _, keys := range []*sealed.Keys{keysOf(t, first), keysOf(t, second, first), keysOf(t, second)} {
		SealKeys(Config{Dir: dir, Keys: keys, Log: log})
		testkit.That(t, !inClear(), "a private key is in clear")
		before := testkit.Tree(t, dir)
		SealKeys(Config{Dir: dir, Keys: keys, Log: log})
		testkit.Deep(t, testkit.Tree(t, dir), before, "sealed twice")
		testkit.That(t, leaf(t, open(t, Config{Dir: dir, Keys: keys})).Equal(clear), "the certificate was made anew")
		testkit.Deep(t, testkit.Tree(t, dir), before, "after it was opened")
	}
	before := testkit.Tree(t, dir)
	SealKeys(Config{Dir: dir, Keys: keysOf(t, first), Log: log})
	testkit.ErrorIs(t, testkit.Err(Open(Config{Dir: dir, Keys: keysOf(t, first), Log: log})), sealed.ErrUnknownKey)
	testkit.Deep(t, testkit.Tree(t, dir), before, "with the old key")

	// What is made is sealed, too; each under its own name.
	keys := keysOf(t, second)
	more := leaf(t, open(t, Config{Dir: dir, Keys: keys, Host: "new.example.net"}))
	testkit.That(t, !more.Equal(clear) && !inClear(), "it was not made anew, or in clear")
	testkit.Must(t, os.Rename(filepath.Join(dir, caKeyFile), filepath.Join(dir, keyFile)))
	testkit.That(t, testkit.Err(readKey(filepath.Join(dir, keyFile), keys)) != nil, "the authority's key was taken for another")

	fresh := filepath.Join(dir, "fresh")
	SealKeys(Config{Dir: fresh, Keys: keys, Log: log})
	leaf(t, open(t, Config{Dir: fresh, Keys: keys}))
	dir = fresh
	testkit.That(t, !inClear(), "a new private key is in clear")
	SealKeys(Config{Dir: dir, Log: log})
}

// A file of the operator's stays as it is, even in the yard's place: other programs may read it.
func TestTheOperatorsKeyIsNotSealed(t *testing.T) {
	dir, keys := t.TempDir(), keysOf(t, sealed.NewKey())
	cert, key := makePair(t, mustAuthority(t), dir, "yard.example.net")
	testkit.Must(t, os.Rename(key, filepath.Join(dir, keyFile)))
	cfg := Config{Dir: dir, CertFile: cert, KeyFile: dir + "/./" + keyFile, Keys: keys, Log: testkit.Quiet()}
	before := testkit.Tree(t, dir)
	SealKeys(cfg)
	open(t, cfg)
	testkit.Deep(t, testkit.Tree(t, dir), before)
	// One that the yard has sealed before can be given as the operator's, too.
	SealKeys(Config{Dir: dir, Keys: keys, Log: testkit.Quiet()})
	open(t, cfg)
}
