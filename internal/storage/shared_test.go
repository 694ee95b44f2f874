package storage

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C4, R5: nodes that share storage are all given one secret key; without one, or with another, a node
// does not start, and makes no file.
func TestNodesNeedTheSameSecretKey(t *testing.T) {
	t.Chdir(t.TempDir())
	entries := metatest.NewMemory()
	share := func(key SecretKey) (*Storage, error) {
		return Share(t.Context(), Parts{Meta: metatest.NewLateNode(entries), Engine: "nats"}, Config{SecretKey: key, Log: testkit.Quiet()})
	}
	testkit.ErrorIs(t, testkit.Err(share(SecretKey{})), ErrNoSecretKey)
	testkit.Slices(t, testkit.Value(os.ReadDir("."))(t), nil, "files were made")

	key := sealed.NewKey()
	file := filepath.Join(t.TempDir(), "key")
	testkit.Must(t, os.WriteFile(file, []byte(key+"\n"), 0o600))
	for name, same := range map[string]SecretKey{
		"the key itself": {Key: key}, "its file": {KeyFile: file}, "a command": {KeyCommand: "cat " + file},
	} {
		s, err := share(same)
		testkit.Must(t, err, name)
		testkit.That(t, s.Folder == "" && !s.Local && s.Keys != nil, "%s: it is %+v", name, s)
		_, err = s.Meta.CompareAndSet(t.Context(), "policies/"+name, 0, []byte("hunter2"))
		testkit.Must(t, err)
		raw := testkit.Value(entries.Get(t.Context(), "policies/"+name))(t)
		testkit.That(t, !bytes.Contains(raw.Value, []byte("hunter2")), "%s: stored in clear", name)
		testkit.Must(t, s.Close())
	}
	testkit.ErrorIs(t, testkit.Err(share(SecretKey{Key: sealed.NewKey()})), ErrOtherSecretKey)
	testkit.That(t, testkit.Err(share(SecretKey{Key: key, KeyFile: file})) != nil, "two sources were taken")
	testkit.ErrorIs(t, testkit.Err(share(SecretKey{KeyFile: file + ".gone"})), os.ErrNotExist)

	// Another key is given in steps, and what was sealed before is sealed anew.
	next := sealed.NewKey()
	testkit.ErrorIs(t, testkit.Err(share(SecretKey{Key: next + "\n" + key})), ErrNewSecretKey)
	for _, keys := range []string{key + "\n" + next, next + "\n" + key, next} {
		testkit.Must(t, testkit.Err(share(SecretKey{Key: keys})))
	}
	testkit.ErrorIs(t, testkit.Err(share(SecretKey{Key: key})), ErrOtherSecretKey)
	s := testkit.Value(share(SecretKey{Key: next}))(t)
	testkit.Equal(t, len(testkit.Value(s.Meta.List(t.Context(), "policies/"))(t)), 3, "policies that the new key opens")
}
