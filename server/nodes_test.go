package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/cluster/clustertest"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/service"
	"github.com/eventyard/eventyard/internal/storage"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// shared is storage without a folder that several nodes use: all have the same entries, and each
// knows as few of them as it may. Events are each node's own, which is nobody's business here.
type shared struct {
	t       *testing.T
	entries *metatest.Memory
	local   bool
	prompt  bool // each node knows all entries at once
	key     string
	wire    cluster.Wire             // nil: they ask each other nothing
	listed  map[string]*atomic.Int64 // how often each node has looked for bodies, by its name
	tidy    func(context.Context) error
}

func newShared(t *testing.T) *shared {
	t.Chdir(t.TempDir()) // to see that nothing is written there
	return &shared{t: t, entries: metatest.NewMemory(), local: true, key: sealed.NewKey()}
}

// noBodies are nobody's.
type noBodies struct {
	storage.Bodies
	listed *atomic.Int64 // nil: nobody counts
}

func (b noBodies) List(context.Context) ([]string, error) {
	if b.listed != nil {
		b.listed.Add(1)
	}
	return nil, nil
}

func (s *shared) config() Config {
	return Config{
		Log: testkit.Quiet(), HTTP: "127.0.0.1:0", AMQP: Off, AMQPS: Off, HTTPS: Off, Kafka: Off, Kafkas: Off, Secrets: Secrets{Key: s.key},
		share: func(ctx context.Context, cfg storage.Config) (*storage.Storage, error) {
			engine, err := disk.Open(disk.Config{FS: vfs.NewMem(), Log: cfg.Log})
			if err != nil {
				return nil, err
			}
			var entries meta.Store = metatest.NewLateNode(s.entries)
			if s.prompt {
				entries = s.entries
			}
			return storage.Share(ctx, storage.Parts{
				Log: engine, Meta: entries, Bodies: noBodies{listed: s.listed[cfg.NATS.Node]}, Wire: s.wire, Engine: "nats", Local: s.local, Close: engine.Close, Tidy: s.tidy,
			}, cfg)
		},
	}
}

// named gives each of several nodes its name.
func (s *shared) named(names ...string) (configs []Config) {
	for _, name := range names {
		cfg := s.config()
		cfg.Node = name
		configs = append(configs, cfg)
	}
	return configs
}

// startAll starts nodes at once: none goes on before all have opened the storage, so that each knows
// it as it was before.
func (s *shared) startAll(configs ...Config) []*running {
	s.t.Helper()
	nodes := make([]*running, len(configs))
	var all, opened sync.WaitGroup
	opened.Add(len(configs))
	for i, cfg := range configs {
		share := cfg.share
		cfg.share = func(ctx context.Context, cfg storage.Config) (*storage.Storage, error) {
			defer opened.Wait()
			defer opened.Done()
			return share(ctx, cfg)
		}
		all.Go(func() { nodes[i] = start(s.t, cfg) })
	}
	all.Wait()
	if s.t.Failed() {
		s.t.FailNow()
	}
	return nodes
}

// awaitNodes waits until a node knows of so many, and of a hub; "": of none.
func (r *running) awaitNodes(count int, hub string) {
	r.t.Helper()
	client := r.admin()
	testkit.Eventually(r.t, "all nodes, and what there is, at "+r.cfg.Node, func() bool {
		o, err := client.Overview(r.t.Context())
		return err == nil && o.Totals.Nodes == count && (hub == "" || testkit.Err(client.Hub(r.t.Context(), hub)) == nil)
	})
}

// wantOneKey checks that all nodes let in by the same key of the root policy, that one of them shows
// it, and that nothing was written to this machine. It gives that node's report.
func (s *shared) wantOneKey(nodes []*running) (shown Access) {
	s.t.Helper()
	for _, r := range nodes {
		if r.Access().Show {
			testkit.Equal(s.t, shown.ConnectionString, "", "two nodes show the connection string")
			shown = r.Access()
		}
	}
	kept, err := auth.ParseConnectionString(shown.ConnectionString)
	testkit.Must(s.t, err, "no node shows the connection string")
	for i, r := range nodes {
		testkit.Equal(s.t, r.status(auth.RootPolicy, kept.Key), http.StatusOK, "node %d answers the key that was shown", i)
		testkit.Equal(s.t, r.status(auth.RootPolicy, auth.DevelopmentKey), http.StatusUnauthorized, "node %d answers the well-known key", i)
		reported := testkit.Value(auth.ParseConnectionString(r.Access().ConnectionString))(s.t)
		testkit.Equal(s.t, reported.Key, kept.Key, "node %d knows the key", i)
		testkit.Equal(s.t, r.Access().File, "", "the file of the connection string")
	}
	testkit.Slices(s.t, testkit.Value(os.ReadDir("."))(s.t), nil, "files were written")
	return shown
}

// C4: entries are stored again, in a form that older programs may not know, only by a node that has joined.
func TestEntriesAreTidiedOnceANodeHasJoined(t *testing.T) {
	s := newShared(t)
	s.prompt, s.wire = true, &clustertest.Network{}
	seen := make(chan int, 1)
	s.tidy = func(ctx context.Context) error {
		joined, err := s.entries.List(ctx, "nodes/")
		testkit.Check(t, err)
		seen <- len(joined)
		<-ctx.Done()
		return nil
	}
	s.startAll(s.config())
	testkit.That(t, <-seen > 0, "it begins before the node has an entry")
}

// C4: nodes that start at once on new storage have the same keys, policies and authority, and one of
// them shows the root policy's connection string. A later start shows nothing.
func TestNodesThatStartAtOnce(t *testing.T) {
	s := newShared(t)
	configs := make([]Config, 3)
	for i := range configs {
		configs[i] = outside(s.config())
		configs[i].Hubs, configs[i].Topics = []Hub{{Name: "orders", Partitions: 2, Groups: []string{"billing"}}}, []Topic{{Name: "shop"}}
		configs[i].Policies = []Policy{{Name: "reports", Rights: []string{"Listen"}}, {Name: "till", Rights: []string{"Send"}, PrimaryKey: strings.Repeat("k", 43) + "="}}
	}
	nodes := s.startAll(configs...)
	shown := s.wantOneKey(nodes)
	testkit.That(t, !shown.Renewed, "new keys are said to be made anew")
	sealing := sealed.New(s.entries, testkit.Value(sealed.ParseKeys(s.key))(t))
	text, _, err := authorityEntries{sealing}.Get(t.Context())
	testkit.Must(t, err)
	pool := x509.NewCertPool()
	testkit.MustThat(t, pool.AppendCertsFromPEM(text), "there is no authority")
	for _, r := range nodes {
		conn, err := tls.Dial("tcp", strings.Replace(r.host("amqps"), "0.0.0.0", "127.0.0.1", 1), &tls.Config{RootCAs: pool, ServerName: "yard.example.com"})
		testkit.Must(t, err)
		testkit.Must(t, conn.Close())
	}
	policies := testkit.Value(sealing.List(t.Context(), "policies/"))(t)
	testkit.Equal(t, len(policies), 3, "policies")
	raw := testkit.Value(s.entries.Get(t.Context(), authorityEntry))(t)
	testkit.That(t, !strings.Contains(string(raw.Value), "PRIVATE KEY"), "the authority's key is in clear")

	later := start(t, configs[0])
	testkit.That(t, !later.Access().Show, "a later start shows the connection string again")
	testkit.Equal(t, later.Access().ConnectionString[strings.Index(later.Access().ConnectionString, ";"):],
		shown.ConnectionString[strings.Index(shown.ConnectionString, ";"):], "its key")
	testkit.Deep(t, testkit.Value(sealing.List(t.Context(), "policies/"))(t), policies, "policies after a later start")
}

// C4, R5: keys that could be read in development are made anew once, however many nodes start beyond it. They
// stay from then on: a node without listeners for others does not bring development back.
func TestNodesLeaveDevelopmentTogether(t *testing.T) {
	s := newShared(t)
	here := s.startAll(s.config(), s.config())
	var root []string
	for _, r := range here {
		testkit.That(t, r.Access().Development, "it is not in development")
		p := r.policy("/api/v1/policies/" + auth.RootPolicy)
		root = append(root, p.PrimaryKey)
		r.want(http.StatusOK, "GET", "/api/v1/policies", "")
	}
	testkit.Equal(t, root[0], root[1], "the root policy's key")
	for _, r := range here {
		r.shutdown()
	}
	nodes := s.startAll(outside(s.config()), outside(s.config()), outside(s.config()))
	shown := s.wantOneKey(nodes)
	testkit.That(t, shown.Renewed, "the keys of development are still valid")
	for _, r := range nodes {
		testkit.Equal(t, r.status(auth.RootPolicy, root[0]), http.StatusUnauthorized, "a key of development is answered")
	}
	key := testkit.Value(auth.ParseConnectionString(shown.ConnectionString))(t).Key
	beside := start(t, s.config())
	testkit.That(t, !beside.Access().Development, "it is in development, and others are not")
	testkit.Equal(t, beside.status(auth.RootPolicy, auth.DevelopmentKey), http.StatusUnauthorized, "the well-known key")
	testkit.Equal(t, beside.status(auth.RootPolicy, key), http.StatusOK, "the yard's key")
	for _, r := range append(nodes, beside) {
		r.shutdown()
	}
	for _, cfg := range []Config{s.config(), outside(s.config())} {
		later := start(t, cfg)
		reported := later.Access()
		testkit.That(t, !reported.Development && !reported.Renewed, "later it told %+v", reported)
		testkit.Equal(t, later.status(auth.RootPolicy, key), http.StatusOK, "the yard's key")
		later.shutdown()
	}
	any := s.config()
	any.AcceptAnyJWT = true
	err := testkit.Value(New(any))(t).Run(t.Context())
	testkit.That(t, err != nil && strings.Contains(err.Error(), "only in development"), "with every token it is %v", err)
}

// R5, C4: with servers that others can reach a yard is not in development, wherever it listens.
func TestDevelopmentWantsStorageOnThisMachine(t *testing.T) {
	s := newShared(t)
	s.local = false
	r := start(t, s.config())
	testkit.That(t, !r.Access().Development, "it is in development")
	s.wantOneKey([]*running{r})
	for _, also := range []func(*Config){func(c *Config) { c.AcceptAnyJWT = true }, func(c *Config) { c.DevStorage = "127.0.0.1:0" }} {
		cfg := s.config()
		also(&cfg)
		refused := testkit.Value(New(cfg))(t)
		err := refused.Run(t.Context())
		testkit.That(t, err != nil && strings.Contains(err.Error(), "only in development"), "it is %v", err)
	}
}

// C4: a node without the yard's secret key does not start.
func TestANodeWithAnotherSecretKey(t *testing.T) {
	s := newShared(t)
	start(t, s.config())
	for key, want := range map[string]error{"": storage.ErrNoSecretKey, sealed.NewKey(): storage.ErrOtherSecretKey} {
		cfg := s.config()
		cfg.Secrets.Key = key
		testkit.ErrorIs(t, testkit.Value(New(cfg))(t).Run(t.Context()), want)
	}
}

// under has all changes of the entry about the root policy's keys go through a function.
func under(cfg Config, change func(try int) error) Config {
	share, tries := cfg.share, 0
	cfg.share = func(ctx context.Context, storageConfig storage.Config) (*storage.Storage, error) {
		opened, err := share(ctx, storageConfig)
		if err != nil {
			return nil, err
		}
		faulty := metatest.NewFaulty(opened.Meta)
		faulty.Inject(func(op metatest.Op) error {
			if op.Kind != metatest.OpSet || op.Key != rootKeysEntry {
				return nil
			}
			tries++
			return change(tries)
		})
		opened.Meta = faulty
		return opened, nil
	}
	return cfg
}

// A node that finds out that another has changed the entry meanwhile looks again; nobody shows the
// keys twice.
func TestDoubtAboutTheRootKeys(t *testing.T) {
	s := newShared(t)
	start(t, s.config()).shutdown()
	tries := 0
	r := start(t, under(outside(s.config()), func(try int) error {
		if tries = try; try == 1 {
			return meta.ErrConflict
		}
		return nil
	}))
	s.wantOneKey([]*running{r})
	testkit.That(t, r.Access().Renewed && tries == 2, "after %d tries: %+v", tries, r.Access())
}

// R5: keys that were made anew by a start that was cut short, and could be read in development since,
// are made anew once more; those that nobody could read since are shown by the next start.
func TestAStartThatIsCutShort(t *testing.T) {
	for _, back := range []bool{false, true} {
		s := newShared(t)
		start(t, s.config()).shutdown()
		cut := testkit.Value(New(under(outside(s.config()), func(int) error { return meta.ErrUnavailable })))(t)
		testkit.ErrorIs(t, cut.Run(t.Context()), meta.ErrUnavailable)
		var seen string
		if back {
			r := start(t, s.config())
			seen = r.policy("/api/v1/policies/" + auth.RootPolicy).PrimaryKey
			r.shutdown()
		}
		r := start(t, outside(s.config()))
		shown := s.wantOneKey([]*running{r})
		testkit.That(t, shown.Renewed, "it is not said that the keys are new")
		testkit.Equal(t, r.status(auth.RootPolicy, seen), http.StatusUnauthorized, "a key that could be read is answered")
		r.shutdown()
	}
}

// C4: of the nodes that share bodies one looks for those that nobody names, and another when that one
// is gone.
func TestOneNodeSweepsBodies(t *testing.T) {
	s := newShared(t)
	synctest.Test(t, func(t *testing.T) {
		s.wire, s.listed = &clustertest.Network{}, map[string]*atomic.Int64{}
		stops := map[string]func(){}
		for _, name := range []string{"a", "b"} {
			s.listed[name] = &atomic.Int64{}
			cfg := s.config()
			cfg.Node = name
			y := testkit.Value(openYard(t.Context(), testkit.Value(New(cfg))(t).cfg, nil))(t)
			t.Cleanup(func() { testkit.Must(t, y.close()) })
			stops[name] = testkit.Run(t, func(ctx context.Context) error {
				return service.Group{Parts: []service.Part{
					{Name: "nodes", Run: y.nodes.Run}, {Name: "blobs", Run: y.blobs.Run}, {Name: "placement", Run: y.runPlacement},
				}}.Run(ctx)
			})
		}
		for len(stops) > 0 {
			time.Sleep(time.Minute) // shards have been taken
			for _, listed := range s.listed {
				listed.Store(0)
			}
			time.Sleep(time.Hour)
			var tending []string
			for name, listed := range s.listed {
				if listed.Load() > 0 {
					tending = append(tending, name)
					testkit.Equal(t, listed.Load(), 1, "sweeps of node %s in an hour", name)
				}
			}
			testkit.MustThat(t, len(tending) == 1 && stops[tending[0]] != nil, "%q sweep", tending)
			stops[tending[0]]()
			delete(stops, tending[0])
		}
	})
}
