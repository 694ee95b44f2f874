package storage

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/bolt"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/testkit"
)

// withSecret opens a folder with a secret in its meta store, which has to be there after the first
// time.
func withSecret(t *testing.T, folder string, key SecretKey) error {
	t.Helper()
	s, err := Open(t.Context(), Disk(folder), Config{Sync: "os", SecretKey: key, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { testkit.Must(t, s.Close()) }()
	if e, err := s.Meta.Get(t.Context(), "policies/send"); err == nil {
		testkit.Equal(t, string(e.Value), "hunter2", "the secret")
		return nil
	}
	_, err = s.Meta.CompareAndSet(t.Context(), "policies/send", 0, []byte("hunter2"))
	return err
}

func wantNoSecret(t *testing.T, folder string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, metaName))
	testkit.Must(t, err)
	testkit.That(t, !bytes.Contains(content, []byte("hunter2")), "the secret is in %s", metaName)
}

// R5: a copy of the data without the key's file shows no secret; with another key, or none, it is
// refused with what to do.
func TestSecretsAreSealedAtRest(t *testing.T) {
	folder := t.TempDir()
	testkit.Must(t, withSecret(t, folder, SecretKey{}))
	wantNoSecret(t, folder)
	file := filepath.Join(folder, SecretKeyFile)
	info, err := os.Stat(file)
	testkit.Must(t, err)
	testkit.Equal(t, info.Mode().Perm(), 0o600, "mode of the key's file")
	testkit.Must(t, withSecret(t, folder, SecretKey{}))
	key, err := os.ReadFile(file)
	testkit.Must(t, err)

	for _, c := range []struct {
		name string
		do   func() error
		key  SecretKey
		want string
	}{
		{"others can read it", func() error { return os.Chmod(file, 0o604) }, SecretKey{}, "chmod 600"},
		{"the file is gone", func() error { return os.Remove(file) }, SecretKey{}, "restore the file"},
		{"another key", nil, SecretKey{Key: sealed.NewKey()}, "give the secret keys that this data was written with"},
		{"a file that is not there", nil, SecretKey{KeyFile: file + "-not"}, "no such file"},
		{"a command that fails", nil, SecretKey{KeyCommand: "echo no such key >&2; false"}, "no such key"},
		{"nonsense", nil, SecretKey{KeyCommand: "echo hello"}, "line 1 is not a key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.do != nil {
				testkit.Must(t, c.do())
			}
			err := withSecret(t, folder, c.key)
			testkit.That(t, err != nil && strings.Contains(err.Error(), c.want), "error %v, want %q", err, c.want)
		})
	}
	testkit.Must(t, withSecret(t, folder, SecretKey{Key: string(key)}))
	testkit.Must(t, withSecret(t, folder, SecretKey{KeyCommand: "echo " + string(key)}))
	_, err = os.Stat(file)
	testkit.That(t, os.IsNotExist(err), "the file was made though the key came from elsewhere: %v", err)
}

// R5: what was stored before there was a key is sealed at the first start, and is not left in free
// pages of the file.
func TestOldSecretsAreSealed(t *testing.T) {
	folder := t.TempDir()
	old, err := bolt.Open(metaConfig(folder, Config{Log: slog.New(slog.DiscardHandler)}, false))
	testkit.Must(t, err)
	_, err = old.CompareAndSet(t.Context(), "policies/send", 0, []byte("hunter2"))
	testkit.Must(t, err)
	testkit.Must(t, old.Close())
	testkit.Must(t, withSecret(t, folder, SecretKey{}))
	wantNoSecret(t, folder)
}

// R5: after a rotation the next start seals with the new key, and the old one is needed no more.
func TestSecretKeyRotates(t *testing.T) {
	folder := t.TempDir()
	_, err := SecretKey{}.Rotate(folder)
	testkit.ErrorIs(t, err, os.ErrNotExist, "before there is a key")
	testkit.Must(t, withSecret(t, folder, SecretKey{}))
	file, err := SecretKey{}.Rotate(folder)
	testkit.Must(t, err)
	testkit.Must(t, withSecret(t, folder, SecretKey{}))
	keys, err := os.ReadFile(file)
	testkit.Must(t, err)
	newest, oldest, _ := strings.Cut(string(keys), "\n")
	testkit.Must(t, withSecret(t, folder, SecretKey{Key: newest}))
	testkit.ErrorIs(t, withSecret(t, folder, SecretKey{Key: oldest}), sealed.ErrUnknownKey, "with the old key")
}

// R6: a key is not rotated in a folder that a start would refuse: of a newer version, of others, or
// with links.
func TestSecretKeyOfARefusedFolderStaysAsItIs(t *testing.T) {
	key := sealed.NewKey() + "\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a newer format": {map[string]string{markName: `{"format":7,"program":"eventyard v7.1"}`, SecretKeyFile: key}, "run eventyard v7.1, or a newer one"},
		"of others":      {map[string]string{"notes.txt": "mine", SecretKeyFile: key}, "not the data folder of a yard"},
		"a linked key":   {map[string]string{markName: `{"format":1}`, "theirs": key, SecretKeyFile: "-> theirs"}, "is a link or a device"},
		"a linked mark":  {map[string]string{"theirs": `{"format":1}`, markName: "-> theirs", SecretKeyFile: key}, markName + " in it is a link"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			plant(t, dir, c.files)
			before := testkit.Tree(t, dir)
			if _, err := (SecretKey{}).Rotate(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
			testkit.Deep(t, testkit.Tree(t, dir), before)
		})
	}
}
