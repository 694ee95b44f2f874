package deadletter

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/tracing"
)

// Letters of a hub's subscription are written inside the folder whatever the hub is called.
func TestHubsWithOddNamesHaveFiles(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		defer y.run()()
		names := []string{"a/../b", "a/./b", "a//b", "a/b", "a..b", "a.b-c_d", "a/../../../b"}
		for i, hub := range names {
			sub := y.subscribe("sub"+string(rune('a'+i)), "folder:dead", schema.CloudEvents)
			sub.Source = topics.Source{Hub: hub}
			y.die(sub, i)
		}
		pass(time.Minute)
		found := files(t, y.data)
		testkit.Equal(t, len(found), len(names), "files of")
		for name := range found {
			if !strings.HasPrefix(name, "dead/A") {
				t.Errorf("%s is not where it should be", name)
			}
		}
	})
}

// V6: the trace of an event goes with its letter: in the file or blob, whatever its schema, and in a hub as a property
// of its own.
func TestALetterTakesItsTraceAlong(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	traced := func(s *topics.Subscription) pending.Delivery {
		l := letter(s, 1)
		l.Trace = tracing.Parse(parent, "")
		return l
	}
	for _, output := range []schema.Kind{schema.EventGrid, schema.CloudEvents, schema.Custom} {
		t.Run(string(output), func(t *testing.T) {
			bubble(t, func(t *testing.T, y *yard) {
				defer y.run()()
				for name, target := range map[string]string{"billing": "folder:dead", "mailer": "hub:failures"} {
					sub := y.subscribe(name, target, output)
					testkit.Must(t, y.Put(t.Context(), sub, []pending.Delivery{traced(sub)}))
				}
				pass(time.Minute)
				all := lettersOf(t, files(t, y.data))
				testkit.MustEqual(t, len(all), 1, "letters in files")
				testkit.Equal(t, all[0]["traceparent"], any(parent), "of a letter in a file: %v", all[0])
				testkit.MustEqual(t, len(y.hubs.properties), 1, "letters in the hub")
				testkit.Equal(t, y.hubs.properties[0]["traceparent"], any(parent), "of a letter in a hub")
				testkit.That(t, strings.Contains(y.hubs.sent[0], `"traceparent":"`+parent), "and in its body: %s", y.hubs.sent[0])
			})
		})
	}
}

// What the yard keeps in its data folder is its own.
func TestTheYardsOwnFoldersAreRefused(t *testing.T) {
	y := newYard(t)
	for _, own := range []string{"log", "journal", "spare", "trash", "blobs", "tls", "TLS/x", "meta.db", "LOCK", "lock", "connection-string", "connection-string.part", "node", "node.new", "eventyard-data.json", "secret.key", "Secret.key.new/x"} {
		if err := y.cfg.CheckTarget(topics.Target{Kind: topics.TargetFolder, Where: own}); !errors.Is(err, topics.ErrInvalid) {
			t.Errorf("folder %s: %v", own, err)
		}
	}
}

// A link that is put where a folder was does not lead letters elsewhere.
func TestALinkInsideTheFolderLeadsNowhere(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		elsewhere := t.TempDir()
		testkit.Must(t, os.Mkdir(filepath.Join(y.data, "dead"), 0o700))
		testkit.Must(t, os.Symlink(elsewhere, filepath.Join(y.data, "dead", "ORDERS")))
		defer y.run()()
		sub := y.subscribe("billing", "folder:dead", schema.EventGrid)
		y.die(sub, 1)
		pass(time.Minute)
		testkit.Equal(t, len(files(t, elsewhere)), 0, "files elsewhere")
		if y.counts(sub.ID).Problem == "" {
			t.Error("nobody hears of it")
		}
		testkit.Must(t, os.Remove(filepath.Join(y.data, "dead", "ORDERS")))
		pass(10 * time.Minute)
		y.wantFiled(filepath.Join(y.data, "dead"), 1) // once the link was gone
	})
}

// An operator may have the folder on another disk, by a link to one that is allowed.
func TestALinkToAnAllowedFolderIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		allowed := t.TempDir()
		y := newYard(t, func(c *Config) { c.Delay = -1; c.AllowDirs = []string{allowed} })
		testkit.Must(t, os.Symlink(allowed, filepath.Join(y.data, "dead")))
		defer y.run()()
		y.die(y.subscribe("billing", "folder:dead/x", schema.EventGrid), 1)
		pass(time.Minute)
		y.wantFiled(filepath.Join(allowed, "x"), 1)
	})
}

// Files and folders are their owner's only, and nothing half-written stays.
func TestFilesAreTheOwnersAndWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, func(c *Config) { c.Delay = -1; c.GiveUp = time.Hour })
		sub := y.subscribe("billing", "folder:dead", schema.EventGrid)
		y.die(sub, 1)
		l := testkit.Value(y.whole.box(sub.ID).gather(t.Context(), sub, ""))(t)
		in := filepath.Join(y.data, "dead", filepath.FromSlash(name(sub, l)))
		testkit.Must(t, os.MkdirAll(filepath.Join(in, "in the way"), 0o700))
		stop := y.run()
		pass(3 * time.Hour)
		stop()
		testkit.Equal(t, len(files(t, y.data)), 0, "files left behind")
		testkit.Must(t, os.RemoveAll(filepath.Join(y.data, "dead")))
		defer y.run()()
		y.die(sub, 2)
		pass(time.Minute)
		seen := 0
		testkit.Must(t, filepath.WalkDir(filepath.Join(y.data, "dead"), func(_ string, d os.DirEntry, err error) error {
			testkit.Must(t, err)
			info := testkit.Value(d.Info())(t)
			testkit.Equal(t, info.Mode().Perm()&0o077, 0, "%s is %v", d.Name(), info.Mode())
			seen++
			return nil
		}))
		if seen < 8 {
			t.Errorf("%d files and folders", seen)
		}
	})
}

// storage is a blob storage that answers as told; what it gives writes a letter to a container
// there.
func storage(t *testing.T, answer http.HandlerFunc) (write func(where string) error) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	y := newYard(t, func(c *Config) { c.Transport = server.Client().Transport })
	sub := y.subscribe("billing", "yard", schema.EventGrid)
	y.die(sub, 1)
	l := testkit.Value(y.whole.box(sub.ID).gather(t.Context(), sub, ""))(t)
	return func(where string) error {
		p, err := y.cfg.targetOf(topics.Target{Kind: topics.TargetBlob, Where: strings.Replace(where, "HOST", strings.TrimPrefix(server.URL, "http://"), 1)})
		if err != nil {
			return err
		}
		_, err = p.write(t.Context(), "ORDERS/BILLING/x.json", l)
		return err
	}
}

// What a storage answers is told in a line that people can read, without a secret of the URL.
func TestErrorsOfBlobStorage(t *testing.T) {
	const signed = "http://HOST/account/dead?sv=2024-01-01&sig=very%2Fsecret"
	for what, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"a signature that has expired": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("x-ms-error-code", "AuthenticationFailed")
			w.WriteHeader(http.StatusForbidden)
		}, "403 Forbidden (AuthenticationFailed)"},
		"a container that is not there": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `<?xml version="1.0"?><Error><Code>ContainerNotFound</Code><Message>sig=very/secret</Message></Error>`)
		}, "404 Not Found (ContainerNotFound)"},
		"a code that is a story": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("x-ms-error-code", r.URL.RawQuery+strings.Repeat("x", 5000))
			w.WriteHeader(http.StatusBadRequest)
		}, "400 Bad Request"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/stolen?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
		}, "307 Temporary Redirect"},
		"somebody who hangs up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			err := storage(t, c.answer)(signed)
			if err == nil {
				t.Fatal("it is taken for written")
			}
			text := err.Error()
			if !strings.Contains(text, c.want) || !strings.Contains(text, "/account/dead") {
				t.Errorf("it says %s, want %s", text, c.want)
			}
			for _, no := range []string{"secret", "sig=", "\n", "----", "xxxxx"} {
				if strings.Contains(text, no) {
					t.Errorf("%s has %q in it", text, no)
				}
			}
			if len(text) > 400 {
				t.Errorf("%d characters", len(text))
			}
		})
	}
}

// An answer without end does not fill the memory.
func TestAnEndlessAnswerOfBlobStorage(t *testing.T) {
	var sent atomic.Int64
	write := storage(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		for block := make([]byte, 64<<10); sent.Load() < 200<<20; sent.Add(int64(len(block))) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	if err := write("http://HOST/account/dead?sig=x"); err == nil {
		t.Fatal("it is taken for written")
	}
	if sent.Load() > 20<<20 {
		t.Errorf("%d MiB were read", sent.Load()>>20)
	}
}

// Accounts are found in hosts and paths, and targets without credentials are refused.
func TestAccountsOfContainers(t *testing.T) {
	y := newYard(t, func(c *Config) { c.Transport = http.DefaultTransport })
	for _, c := range []struct {
		where, key string
		good       bool
	}{
		{"https://account.blob.core.windows.net/dead", "a2V5", true},
		{"https://account.z1.blob.storage.azure.net/dead/", "a2V5", true},
		{"http://127.0.0.1:10000/devstoreaccount1/dead", "", true},
		{"http://azurite:10000/devstoreaccount1/dead", "", true},
		{"http://devstoreaccount1.blob.localhost:10000/dead", "", true},
		{"https://yard.example/blob/eventyard/dead", "a2V5", true},
		{"https://account.blob.core.windows.net/dead?sv=1&sig=x", "", true},
		{"https://account.blob.core.windows.net/dead", "", false},
		{"https://account.blob.core.windows.net/dead/", "not base64!", false},
		{"https://account.blob.core.windows.net/dead?sv=1", "", false},
		{"https://account.blob.core.windows.net/dead?secret", "", false},
	} {
		t.Run(fmt.Sprintf("%s with the key %q", c.where, c.key), func(t *testing.T) {
			err := y.cfg.CheckTarget(topics.Target{Kind: topics.TargetBlob, Where: c.where, Key: c.key})
			if (err == nil) != c.good || err != nil && (!errors.Is(err, topics.ErrInvalid) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("got %v, want it good: %t", err, c.good)
			}
		})
	}
}

// R4: a hub that has a quota gets every letter, once and in order, as fast as it takes them. That is
// no trouble with it.
func TestAHubWithAQuotaGetsEveryLetterOnce(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.hubs.quota = quota.NewMeter("hub", "events")
		y.hubs.quota.Set(quota.Limit{Bytes: 10_000}, time.Now())
		sub := y.subscribe("billing", "hub:failures", schema.EventGrid)
		large := strings.Repeat("x", 200_000)
		for n := range 40 {
			l := letter(sub, n)
			l.Event = []byte(strings.Replace(string(l.Event), `"/s"`, `"/`+large+`"`, 1))
			testkit.Must(t, y.Put(t.Context(), sub, []pending.Delivery{l}))
		}
		defer y.run()()
		pass(time.Hour) // 8 MB take 800 s, longer than one write may
		testkit.MustEqual(t, len(y.hubs.sent), 40, "letters")
		for n, sent := range y.hubs.sent {
			testkit.Equal(t, strings.Contains(sent, fmt.Sprintf(`"id":"e%d"`, n)), true, "letter %d is in its place", n)
		}
		counts := y.counts(sub.ID)
		testkit.Slices(t, []any{counts.Unwritten, counts.Dropped, counts.Problem}, []any{int64(0), int64(0), ""}, "counts")
	})
}

// R4: a raised quota holds at once also for who has been waiting for the old one.
func TestLettersDoNotWaitForAQuotaThatWasRaised(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.hubs.quota = quota.NewMeter("hub", "events")
		y.hubs.quota.Set(quota.Limit{Events: 1}, time.Now())
		testkit.Must(t, quota.Take(5_000, 1, time.Now(), y.hubs.quota))
		sub := y.subscribe("billing", "hub:failures", schema.EventGrid)
		y.die(sub, 1)
		defer y.run()()
		pass(10 * time.Minute)
		testkit.Equal(t, len(y.hubs.sent), 0, "letters while the quota is used up")
		y.hubs.quota.Set(quota.Limit{}, time.Now())
		pass(10 * time.Second)
		testkit.Equal(t, len(y.hubs.sent), 1, "letters when there is none")
	})
}

// C4: where nodes share a yard, only a folder that the operator has allowed is a target: any node may
// write the next file.
func TestFoldersOfAYardWithoutOne(t *testing.T) {
	allowed := t.TempDir()
	t.Chdir(t.TempDir())
	cfg := Config{AllowDirs: []string{allowed}}
	for dir, ok := range map[string]bool{"dead": false, ".": false, "": false, t.TempDir(): false, filepath.Join(allowed, ".."): false, filepath.Join(allowed, "dead"): true} {
		_, err := cfg.folder(dir)
		testkit.Equal(t, err == nil, ok, "folder %q is taken: %v", dir, err)
	}
}
