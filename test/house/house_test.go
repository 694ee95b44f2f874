package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

const module = "github.com/eventyard/eventyard"

// pkg is one package of the module, without its tests.
type pkg struct {
	path    string // below the module, "." for the root
	imports []string
	comment string
}

// floors are the ladder, from the bottom up: a package imports only from lower floors. A
// name ending in /... stands for everything below it that is named on no floor by itself.
var floors = [][]string{
	{"internal/testkit", "docs"},
	{"internal/setaside/ranges", "internal/kafka/groups/member", "internal/kafka/transactions/txn", "internal/api/console/assets", "internal/testkit/history"},
	{"internal/amqp/wire", "internal/kafka/groups/classic", "internal/kafka/groups/consumer", "internal/hubs/auth", "internal/hubs/balance", "internal/hubs/busiest", "internal/hubs/groupwire", "internal/hubs/groupentry", "internal/storage/vfs", "internal/grid/hops", "tracing", "internal/quota", "internal/grid/retry", "internal/grid/shards", "internal/grid/signature", "internal/grid/topickey", "internal/grid/watermark", "internal/functions/breaker", "internal/functions/triage", "internal/config/location", "internal/config/quantity", "internal/service", "internal/panics", "internal/parallel", "internal/sleep", "internal/transport/pipe", "internal/transport/admission", "internal/transport/share", "internal/transport/conns", "internal/transport/reason", "internal/activity", "internal/hubs/oldest"},
	{"admin", "event", "internal/hubs/caller", "internal/storage/disk/segment", "internal/amqp", "internal/amqp/amqpjson", "internal/kafka", "internal/transport/...", "internal/hubs/access/oidc", "internal/series"},
	{"internal/amqp/message", "internal/overview", "internal/storage/eventlog", "internal/storage/meta", "internal/grid/schema"},
	{"internal/api/spec", "internal/kafka/record", "internal/storage/eventlog/logtest", "internal/storage/paths", "internal/storage/jetstream/answers", "internal/storage/jetstream/frames", "internal/storage/jetstream/provide", "internal/storage/meta/holds", "internal/storage/meta/metatest", "internal/storage/meta/looks", "internal/storage/meta/mirror", "internal/storage/meta/sealed", "internal/cluster", "hub", "grid", "internal/grid/filter", "internal/grid/pending", "internal/setaside", "internal/functions/invoke", "internal/functions/poison", "internal/activity/journal"},
	{"internal/config", "internal/kafka/brokers", "internal/backup/archive", "internal/storage/disk", "internal/storage/bolt", "internal/storage/jetstream/...", "internal/cluster/...", "internal/testkit/fakehub", "processor", "internal/grid/retrylog"},
	{"internal/storage/jetstream/logs", "internal/storage/jetstream/model", "internal/storage/jetstream/natsstreams", "internal/storage/jetstream/streamstest", "internal/storage/testengine"},
	{"internal/storage", "internal/backup", "internal/storage/storagetest", "internal/hubs/broker", "internal/hubs/access", "processor/legacy", "processor/internal/stores", "internal/functions/circuit", "internal/hubs/sessions"},
	{"internal/hubs/groups", "internal/kafka/groups", "internal/hubs/hubstest", "internal/hubs/blob", "processor/...", "internal/grid/topics", "functions", "internal/functions/poison/box"},
	{"internal/kafka/transactions", "internal/grid/handshake", "internal/grid/webhook", "internal/grid/deadletter", "internal/api/subscribe", "internal/functions/local", "internal/functions/notify"},
	{"internal/grid/delivery", "internal/grid/placement", "internal/functions/runner"},
	{"internal/api/frame", "internal/api/define", "internal/amqp/eventhubs", "internal/kafka/handler", "internal/grid/forward"},
	{"internal/api/azureblob", "internal/api/console", "internal/api/eventgrid", "internal/api/peer", "internal/api/v1"},
	{"server"},
	{"servertest", "internal/demo", "internal/otlp"},
	{"cmd/...", "examples/...", "packaging/..."},
	{"test/upgrade", "test/parts", "test/pages", "test/bench/measure"},
	{"test/...", "internal/storage/jetstream/natstest"},
}

// Reasons that stand beside more than one edge.
const (
	contracts = "services know the two contracts, never an engine: there are to be several"
	wires     = "services ask other nodes by package cluster, whatever carries it"
	strangers = "listeners do not know each other"
	anyHub    = "it works with any hub, a yard's or Azure's, and reaches a yard by its listeners"
	opener    = "only the package storage knows the engines, and opens them from a URL"
	apiClient = "the console is a client of the HTTP API: what it shows and does, anybody can by that API"
	anyForm   = "engines keep batches of every form, and look into none"
	noStore   = "a client has nothing to do with what the yard stores"
)

// forbidden are edges that the floors alone would allow. Each from and to stands for all that is
// below it, but for the exceptions.
var forbidden = []struct {
	from, to, because string
	except            []string
}{
	{from: "internal/hubs", to: "internal/storage/disk", because: contracts},
	{from: "internal/hubs", to: "internal/storage/bolt", because: contracts},
	{from: "internal/hubs", to: "internal/storage/jetstream", because: contracts},
	{from: "internal/grid", to: "internal/storage/disk", because: contracts},
	{from: "internal/grid", to: "internal/storage/bolt", because: contracts},
	{from: "internal/grid", to: "internal/storage/jetstream", because: contracts},
	{from: "internal/functions", to: "internal/storage/disk", because: contracts},
	{from: "internal/functions", to: "internal/storage/bolt", because: contracts},
	{from: "internal/functions", to: "internal/storage/jetstream", because: contracts},
	{from: "internal/hubs", to: "internal/cluster/natswire", because: wires},
	{from: "internal/grid", to: "internal/cluster/natswire", because: wires},
	{from: "internal/functions", to: "internal/cluster/natswire", because: wires},
	{from: "internal/api", to: "internal/storage/disk", because: opener},
	{from: "internal/api", to: "internal/storage/bolt", because: opener},
	{from: "internal/api", to: "internal/storage/jetstream", because: opener},
	{from: "internal/api", to: "internal/storage/vfs", because: "listeners touch no files"},
	{from: "internal/backup", to: "internal/storage/disk", because: "what is backed up from one engine is restored to any"},
	{from: "internal/backup", to: "internal/storage/bolt", because: "what is backed up from one engine is restored to any"},
	{from: "internal/backup", to: "internal/storage/jetstream", because: "what is backed up from one engine is restored to any"},
	{from: "internal/amqp", to: "internal/storage/disk", because: opener},
	{from: "internal/amqp", to: "internal/storage/bolt", because: opener},
	{from: "internal/amqp", to: "internal/storage/jetstream", because: opener},
	{from: "internal/amqp", to: "internal/api", because: strangers},
	{from: "internal/api", to: "internal/amqp/eventhubs", because: strangers},
	{from: "internal/api/eventgrid", to: "internal/api/azureblob", because: strangers},
	{from: "internal/api/azureblob", to: "internal/api/eventgrid", because: strangers},
	{from: "internal/api/azureblob", to: "internal/amqp", because: strangers},
	{from: "internal/api/console", to: "internal/api/v1", because: apiClient},
	{from: "internal/api/console", to: "internal/hubs", because: apiClient, except: []string{"internal/hubs/auth", "internal/hubs/sessions"}},
	{from: "internal/api/console", to: "internal/grid", because: apiClient},
	{from: "internal/api/console", to: "internal/functions", because: apiClient},
	{from: "internal/api/console", to: "internal/storage", because: apiClient},
	{from: "internal/api/console", to: "internal/amqp", because: apiClient},
	{from: "internal/hubs", to: "internal/amqp", because: "what happens in a hub is the same at every listener"},
	{from: "internal/hubs/broker", to: "internal/kafka", because: "what happens in a hub is the same at every listener; it is given translators"},
	{from: "internal/storage/disk", to: "internal/kafka", because: anyForm},
	{from: "internal/storage/jetstream", to: "internal/kafka", because: anyForm},
	{from: "internal/storage/eventlog", to: "internal/kafka", because: anyForm},
	{from: "internal/amqp", to: "internal/kafka", because: strangers},
	{from: "internal/kafka", to: "internal/amqp/eventhubs", because: strangers},
	{from: "internal/kafka", to: "internal/api", because: strangers},
	{from: "internal/kafka", to: "internal/storage/disk", because: opener},
	{from: "internal/kafka", to: "internal/storage/bolt", because: opener},
	{from: "internal/kafka", to: "internal/storage/jetstream", because: opener},
	{from: "internal/api", to: "internal/kafka", because: strangers, except: []string{"internal/kafka/groups"}},
	{from: "internal/hubs", to: "hub", because: "the services stand behind the listeners, the client in front of them"},
	{from: "internal/hubs/access", to: "internal/hubs/broker", because: "it asks whether a hub exists, and needs no more"},
	{from: "internal/grid/delivery", to: "internal/transport/egress", because: "what is sent, and how, is webhook's"},
	{from: "internal/grid/delivery", to: "internal/grid/deadletter", because: "it is given a sink for what cannot be delivered, and needs no more"},
	{from: "internal/functions/notify", to: "internal/functions/runner", because: "it is given circuits, and needs no more"},
	{from: "internal/functions/invoke", to: "hub", because: "it is given events, wherever they are from"},
	{from: "functions", to: "internal/hubs", because: anyHub, except: []string{"internal/hubs/groupwire", "internal/hubs/groupentry", "internal/hubs/auth", "internal/hubs/balance"}},
	{from: "functions", to: "internal/grid/topics", because: anyHub},
	{from: "functions", to: "internal/storage", because: noStore},
	{from: "functions", to: "server", because: anyHub},
	{from: "processor", to: "internal/hubs", because: anyHub, except: []string{"internal/hubs/groupwire", "internal/hubs/groupentry", "internal/hubs/auth", "internal/hubs/balance"}},
	{from: "processor", to: "internal/amqp/eventhubs", because: anyHub},
	{from: "processor", to: "internal/api", because: anyHub},
	{from: "processor", to: "internal/storage", because: noStore},
	{from: "processor", to: "server", because: anyHub},
	{from: "server", to: "internal/storage/disk", because: opener},
	{from: "server", to: "internal/storage/bolt", because: opener},
	{from: "server", to: "internal/storage/jetstream", because: opener},
	{from: "cmd", to: "internal/storage", because: opener},
	{from: "hub", to: "processor", because: "a client knows hubs; what is made of them is beyond it"},
	{from: "hub", to: "internal/hubs", because: anyHub, except: []string{"internal/hubs/groupwire", "internal/hubs/auth"}},
	{from: "hub", to: "internal/amqp/eventhubs", because: anyHub},
	{from: "hub", to: "internal/api", because: anyHub},
	{from: "hub", to: "internal/storage", because: noStore},
	{from: "hub", to: "server", because: anyHub},
	{from: "grid", to: "internal/grid/topics", because: "a client reaches a yard by its listeners, be it in the same process"},
	{from: "grid", to: "internal/api/v1", because: "a client imports no listener"},
	{from: "grid", to: "internal/api/eventgrid", because: "a client imports no listener"},
	{from: "internal/hubs/groupwire", to: "processor", because: "it is the wire between a processor and the yard, and knows neither"},
	{from: "internal/storage/eventlog", to: "internal/storage/disk", because: "nothing file-shaped may leak into the contract"},
	{from: "internal/storage/eventlog", to: "internal/storage/vfs", because: "nothing file-shaped may leak into the contract"},
	{from: "internal/storage/jetstream/frames", to: "internal/storage/meta", because: "the rule is a function of frames, and reads nothing else"},
	{from: "internal/storage/meta", to: "internal/storage/vfs", because: "nothing file-shaped may leak into the contract"},
}

func TestImportsGoDownTheLadder(t *testing.T) {
	for _, p := range packages(t) {
		from := floorOf(p.path)
		if from < 0 {
			t.Errorf("%s stands on no floor: add it to the ladder in this test", p.path)
			continue
		}
		for _, to := range p.imports {
			if floor := floorOf(to); floor >= from {
				t.Errorf("%s (floor %d) imports %s (floor %d): imports go downwards", p.path, from, to, floor)
			}
		}
	}
}

func TestForbiddenEdges(t *testing.T) {
	for _, p := range packages(t) {
		for _, edge := range forbidden {
			if !below(p.path, edge.from) {
				continue
			}
			for _, to := range p.imports {
				if below(to, edge.to) && !slices.Contains(edge.except, to) {
					t.Errorf("%s imports %s: %s", p.path, to, edge.because)
				}
			}
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range packages(t) {
		if len(strings.Fields(p.comment)) < 8 {
			t.Errorf("%s has no package comment worth the name: %q", p.path, p.comment)
		}
	}
}

// floorOf prefers the floor that names the package itself to one that names its room.
func floorOf(path string) int {
	if floor := slices.IndexFunc(floors, func(floor []string) bool { return slices.Contains(floor, path) }); floor >= 0 {
		return floor
	}
	return slices.IndexFunc(floors, func(floor []string) bool {
		return slices.ContainsFunc(floor, func(name string) bool {
			dir, ok := strings.CutSuffix(name, "/...")
			return ok && below(path, dir)
		})
	})
}

func below(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// packages parses all Go files of the module that are not tests.
func packages(t *testing.T) []*pkg {
	t.Helper()
	root := filepath.Join("..", "..")
	found := map[string]*pkg{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		if found[dir] == nil {
			found[dir] = &pkg{path: dir}
		}
		return found[dir].read(path)
	})
	testkit.Must(t, err)
	if len(found) < 10 {
		t.Fatalf("found only %d packages", len(found))
	}
	var all []*pkg
	for _, p := range found {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *pkg) int { return strings.Compare(a.path, b.path) })
	return all
}

func (p *pkg) read(path string) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	p.comment += commentOf(file)
	for _, imported := range file.Imports {
		name, err := strconv.Unquote(imported.Path.Value)
		if err != nil {
			return err
		}
		if rest, ok := strings.CutPrefix(name, module+"/"); ok && !slices.Contains(p.imports, rest) {
			p.imports = append(p.imports, rest)
		}
	}
	return nil
}

func commentOf(file *ast.File) string {
	if file.Doc == nil {
		return ""
	}
	return file.Doc.Text()
}

// TestOnlyTheServerLetsIn: whoever puts a grant into a request's context decides who is let in, so that
// only the package that wires the console does. // V3
func TestOnlyTheServerLetsIn(t *testing.T) {
	called := false
	forEachFile(t, func(path string, file *ast.File, _ *token.FileSet) {
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "WithGrant" {
				if filepath.ToSlash(path) != "server/console.go" {
					t.Errorf("%s calls WithGrant", path)
				}
				called = true
			}
			return true
		})
	})
	testkit.That(t, called, "nobody calls WithGrant: the test looks for another name")
}

// TestOnlyTheCommandKnowsOpenTelemetry: who uses the library, or runs a yard inside, gets hooks and no
// dependency of megabytes. // V6
func TestOnlyTheCommandKnowsOpenTelemetry(t *testing.T) {
	used := false
	forEachFile(t, func(path string, file *ast.File, _ *token.FileSet) {
		dir := filepath.ToSlash(filepath.Dir(path))
		for _, imported := range file.Imports {
			name, _ := strconv.Unquote(imported.Path.Value)
			switch {
			case strings.HasPrefix(name, "go.opentelemetry.io/"):
				used = true
				testkit.That(t, dir == "internal/otlp" || below(dir, "test"), "%s imports %s: use the hook of package tracing", path, name)
			case name == module+"/internal/otlp":
				testkit.That(t, below(dir, "cmd") || below(dir, "test"), "%s imports %s: only the command does", path, name)
			}
		}
	})
	testkit.That(t, used, "nobody imports OpenTelemetry: the test looks for another name")
}
