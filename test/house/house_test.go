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
)

const module = "github.com/eventyard/eventyard"

// pkg is one package of the module, without its tests.
type pkg struct {
	path    string // below the module, "." for the root
	imports []string
	comment string
}

// floors are the ladder, from the bottom up: a package imports only from lower floors. A
// name ending in /... stands for everything below it.
var floors = [][]string{
	{"internal/amqp/wire", "internal/hubs/auth", "internal/storage/vfs", "internal/service", "internal/transport/pipe", "internal/hubs/balance", "internal/hubs/groupwire", "internal/hubs/fact", "internal/grid/retry", "internal/grid/signature", "internal/grid/topickey", "internal/grid/watermark", "internal/api/gridwire", "internal/storage/meta/listeners", "internal/functions/breaker", "internal/functions/triage", "internal/api/functionwire", "internal/panics"},
	{"event", "internal/storage/disk/segment", "internal/amqp", "internal/amqp/amqpjson", "internal/transport/certs", "internal/hubs/access/oidc", "internal/transport/egress"},
	{"internal/amqp/message", "internal/storage/eventlog", "internal/storage/meta", "internal/grid/schema"},
	{"internal/config", "internal/storage/eventlog/logtest", "internal/storage/meta/metatest", "hub", "grid", "internal/grid/filter", "internal/grid/pending", "internal/functions/invoke", "internal/functions/poison"},
	{"internal/storage/disk", "internal/storage/bolt", "processor", "internal/grid/retrylog"},
	{"internal/hubs/broker", "internal/hubs/access", "processor/legacy", "internal/functions/circuit"},
	{"internal/hubs/groups", "internal/hubs/blob", "processor/...", "internal/grid/topics", "functions", "internal/functions/poison/box"},
	{"internal/grid/handshake", "internal/grid/webhook", "internal/grid/deadletter", "internal/api/subscribe", "internal/functions/notify"},
	{"internal/grid/delivery", "internal/functions/runner"},
	{"internal/api/azureblob", "internal/api/eventgrid", "internal/api/define"},
	{"internal/api/v1", "internal/amqp/eventhubs"},
	{"internal/api/httpclient", "server"},
	{"servertest"},
	{"cmd/...", "examples/..."},
	{"test/..."},
}

// forbidden are edges that the floors alone would allow.
var forbidden = []struct{ from, to, because string }{
	{"internal/hubs/broker", "internal/storage/disk", "services know the contracts, never an engine: there are to be two"},
	{"internal/api/v1", "internal/storage/disk", "a door talks to the broker; only server wires engines"},
	{"internal/api/v1", "internal/storage/vfs", "doors touch no files"},
	{"internal/hubs/broker", "internal/amqp", "the broker knows no protocol"},
	{"internal/hubs/access", "internal/amqp", "who may do what is the same at every door"},
	{"internal/hubs/access", "internal/hubs/broker", "it is told whether a hub exists, and needs no more"},
	{"internal/amqp/eventhubs", "internal/storage/disk", "a door talks to the broker; only server wires engines"},
	{"internal/amqp/eventhubs", "internal/api/v1", "doors do not know each other"},
	{"internal/amqp/eventhubs", "internal/api/azureblob", "doors do not know each other"},
	{"internal/api/azureblob", "internal/amqp", "doors do not know each other"},
	{"internal/hubs/groups", "internal/storage/disk", "services know the contracts, never an engine: there are to be two"},
	{"internal/hubs/groups", "internal/amqp", "what a group has done is the same at every door"},
	{"internal/hubs/groups", "hub", "the service stands behind the doors, the client in front of them"},
	{"internal/hubs/blob", "internal/storage/disk", "services know the contracts, never an engine: there are to be two"},
	{"internal/grid/retrylog", "internal/storage/disk", "services know the contracts, never an engine: there are to be two"},
	{"internal/grid/topics", "internal/storage/disk", "services know the contracts, never an engine: there are to be two"},
	{"internal/grid/deadletter", "internal/storage/disk", "services know the contracts, never an engine: there are to be two"},
	{"internal/grid/delivery", "internal/storage/disk", "services know the contracts, never an engine: there are to be two"},
	{"internal/grid/delivery", "internal/transport/egress", "what is sent and how is the courier's"},
	{"internal/grid/delivery", "internal/grid/deadletter", "it is told where the undeliverable goes, and needs no more"},
	{"internal/api/eventgrid", "internal/api/azureblob", "doors do not know each other"},
	{"internal/api/azureblob", "internal/api/eventgrid", "doors do not know each other"},
	{"internal/api/eventgrid", "internal/amqp/eventhubs", "doors do not know each other"},
	{"functions", "server", "a host works with any hub, a yard's or Azure's"},
	{"functions", "internal/hubs/broker", "a host works with any hub, a yard's or Azure's"},
	{"functions", "internal/hubs/groups", "the yard's own store is reached by the hub's connection"},
	{"functions", "internal/grid/topics", "a host reaches a yard by its doors, be it in the same process"},
	{"functions", "internal/storage/meta", "a host has nothing to do with what the yard stores"},
	{"internal/functions/runner", "internal/storage/disk", "services know the contracts, never an engine: there are to be two"},
	{"internal/functions/notify", "internal/functions/runner", "it is told of circuits, and needs no more"},
	{"internal/functions/invoke", "hub", "it is given events, wherever they are from"},
	{"grid", "internal/grid/topics", "a client reaches a yard by its doors, be it in the same process"},
	{"grid", "internal/api/v1", "a client imports no door"},
	{"grid", "internal/api/eventgrid", "a client imports no door"},
	{"hub", "processor", "a client knows hubs; what is made of them is beyond it"},
	{"hub", "server", "a client reaches a yard by its doors, be it in the same process"},
	{"hub", "internal/hubs/broker", "a client reaches a yard by its doors, be it in the same process"},
	{"hub", "internal/hubs/groups", "a client reaches a yard by its doors, be it in the same process"},
	{"hub", "internal/amqp/eventhubs", "a client imports no door"},
	{"hub", "internal/api/v1", "a client imports no door"},
	{"hub", "internal/storage/meta", "a client has nothing to do with what the yard stores"},
	{"processor", "server", "a processor works with any hub, a yard's or Azure's"},
	{"processor", "internal/hubs/broker", "a processor works with any hub, a yard's or Azure's"},
	{"processor", "internal/hubs/groups", "the yard's own store is reached by the hub's connection"},
	{"processor", "internal/amqp/eventhubs", "a processor imports no door"},
	{"processor", "internal/api/v1", "a processor imports no door"},
	{"processor", "internal/storage/meta", "a processor has nothing to do with what the yard stores"},
	{"processor", "internal/storage/disk", "a processor has nothing to do with what the yard stores"},
	{"internal/hubs/balance", "hub", "it is pure: what is seen in, what to do out"},
	{"internal/hubs/groupwire", "processor", "it is the wire between a processor and the yard, and knows neither"},
	{"internal/storage/eventlog", "internal/storage/disk/segment", "nothing file-shaped may leak into the contract"},
	{"internal/storage/eventlog", "internal/storage/vfs", "nothing file-shaped may leak into the contract"},
	{"internal/storage/meta", "internal/storage/vfs", "nothing file-shaped may leak into the contract"},
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
				if below(to, edge.to) {
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

func floorOf(path string) int {
	return slices.IndexFunc(floors, func(floor []string) bool {
		return slices.ContainsFunc(floor, func(name string) bool {
			if dir, ok := strings.CutSuffix(name, "/..."); ok {
				return below(path, dir)
			}
			return path == name
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
	if err != nil {
		t.Fatal(err)
	}
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
