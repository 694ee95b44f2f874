package handler

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// beneath are the packages whose errors the table has to know, by their folders.
var beneath = map[string]string{
	"broker": "../../hubs/broker", "eventlog": "../../storage/eventlog", "meta": "../../storage/meta",
	"auth": "../../hubs/auth", "access": "../../hubs/access", "record": "../record", "quota": "../../quota",
	"groups": "../groups", "member": "../groups/member", "consumer": "../groups/consumer",
}

// elsewhere are errors that no request of Kafka's meets, with the reason.
var elsewhere = map[string]string{
	"broker.EpochError":            "receivers of AMQP",
	"broker.EvictedError":          "receivers of AMQP",
	"broker.ReceiverQuotaError":    "receivers of AMQP",
	"broker.ErrGroupExists":        "consumer groups of hubs",
	"broker.ErrDefaultGroup":       "consumer groups of hubs",
	"broker.ErrKeyTooLong":         "partition keys: Kafka's keys are any bytes",
	"broker.ErrInvalidKey":         "partition keys: Kafka's keys are any bytes",
	"broker.ErrTooManyKeysCounted": "counting keys, which is for HTTP",
	"broker.ErrInvalidQuota":       "quotas, which are set by HTTP",
	"auth.ErrRights":               "policies, which are made by HTTP",
	"access.ErrExists":             "policies, which are made by HTTP",
	"access.ErrInvalid":            "policies, which are made by HTTP",
	"access.ErrRootPolicy":         "policies, which are made by HTTP",
	"eventlog.ErrUsed":             "filling a yard, before it serves",
}

// The table knows every error that the layers beneath can be told apart by, read from their sources, so
// that a new one without a row fails here.
func TestEveryErrorBeneathHasACode(t *testing.T) {
	rows := map[string]bool{}
	for _, a := range answers {
		testkit.Equal(t, rows[a.name], false, "%s has two rows", a.name)
		rows[a.name] = true
		testkit.That(t, a.code > codeNone, "%s has code %d", a.name, a.code)
	}
	declared := map[string]bool{}
	for pkg, dir := range beneath {
		names := exportedErrors(t, dir)
		testkit.That(t, len(names) > 0, "no errors were found in package %s", pkg)
		for _, name := range names {
			name = pkg + "." + name
			declared[name] = true
			testkit.Equal(t, rows[name], elsewhere[name] == "", "%s has a row", name)
		}
	}
	for name := range rows {
		pkg, _, _ := strings.Cut(name, ".")
		testkit.That(t, beneath[pkg] == "" || declared[name], "the table has a row for %s, which does not exist", name)
	}
	for name := range elsewhere {
		testkit.That(t, declared[name], "%s does not exist", name)
	}
}

// exportedErrors reads a package's source for variables named Err… and for types with a method Error.
func exportedErrors(t *testing.T, dir string) (names []string) {
	t.Helper()
	for _, file := range testkit.Value(fs.Glob(os.DirFS(dir), "*.go"))(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed := testkit.Value(parser.ParseFile(token.NewFileSet(), dir+"/"+file, nil, 0))(t)
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for _, name := range n.Names {
					if strings.HasPrefix(name.Name, "Err") {
						names = append(names, name.Name)
					}
				}
			case *ast.FuncDecl:
				if n.Name.Name == "Error" && n.Recv != nil {
					names = append(names, receiverOf(n)...)
				}
				return false
			}
			return true
		})
	}
	return names
}

func receiverOf(method *ast.FuncDecl) []string {
	receiver := method.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if name, ok := receiver.(*ast.Ident); ok && name.IsExported() {
		return []string{name.Name}
	}
	return nil
}

// Doubt goes before its certain cause, and an id that is unknown before the hub that is.
func TestWhichRowCounts(t *testing.T) {
	missing := &broker.NotFoundError{Kind: broker.KindHub, Hub: "x", Name: "x"}
	for _, tt := range []struct {
		err  error
		code int16
	}{
		{fmt.Errorf("%w: %w", eventlog.ErrUncertain, eventlog.ErrNoSpace), codeTimedOut},
		{missing, codeUnknownTopic},
		{&unknownIDError{missing}, codeUnknownID},
		{&unknownIDError{eventlog.ErrUnavailable}, codeStorage},
		{errors.New("surprise"), codeUnknown},
	} {
		code, known := codeOf(fmt.Errorf("while doing: %w", tt.err))
		testkit.Equal(t, code, tt.code, "code of %v", tt.err)
		testkit.Equal(t, known, tt.code != codeUnknown, "whether %v is known", tt.err)
	}
}
