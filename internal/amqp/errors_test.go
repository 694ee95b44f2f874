package amqp

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// withoutRow are the errors that need no row, and why.
var withoutRow = map[string]string{
	"errPeerClosed": "the peer knows",
	"errSaid":       "the peer has been told",
	"errEnded":      "there is nobody left to tell",
	"errVanished":   "there is nobody left to tell",
	"errNotSource":  "it is told to the handler",
}

// Every error of ours has a row by which the peer is told, or a reason why not.
func TestFaultsAreTotal(t *testing.T) {
	file := testkit.Value(parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0))(t)
	rows := map[string]int{}
	for _, f := range faults {
		rows[f.name]++
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || !strings.HasPrefix(spec.Names[0].Name, "err") {
			return true
		}
		name := spec.Names[0].Name
		_, excused := withoutRow[name]
		if rows[name] != 1 && !excused || rows[name] > 0 && excused {
			t.Errorf("%s has %d rows, excused: %v", name, rows[name], excused)
		}
		delete(rows, name)
		return true
	})
	delete(rows, "wire.DecodeError")
	if len(rows) > 0 {
		t.Errorf("rows without an error: %v", rows)
	}
}

func TestRowsNameTheirErrors(t *testing.T) {
	seen := map[error]string{}
	for _, f := range faults {
		if f.condition == "" || f.reason == "" {
			t.Errorf("%s has no condition, or no reason", f.name)
		}
		if f.err == nil {
			continue
		}
		testkit.Equal(t, seen[f.err], "", "%s and", f.name)
		seen[f.err] = f.name
		got, ok := judge(fmt.Errorf("doing: %w", f.err))
		testkit.Equal(t, ok, true)
		testkit.Equal(t, got.name, f.name)
	}
}

func TestErrorsAsThePeerHearsThem(t *testing.T) {
	own := &Error{Condition: ConditionStolen, Description: "text"}
	r := wire.NewReader([]byte{0x40})
	_, decoding := r.ReadDescriptor()
	tests := []struct {
		name  string
		err   error
		want  wire.Symbol
		level slog.Level
	}{
		{"the handler's, wrapped", fmt.Errorf("attach: %w", own), ConditionStolen, slog.LevelDebug},
		{"one of ours", fmt.Errorf("%w: 7", errHandleUnknown), ConditionUnattachedHandle, slog.LevelDebug},
		{"the codec's", fmt.Errorf("read begin: %w", decoding), ConditionDecodeError, slog.LevelDebug},
		{"a stranger", io.ErrNoProgress, ConditionInternalError, slog.LevelWarn},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := asError(tt.err); got.Condition != tt.want || got.Description == "" {
				t.Errorf("got %v", got)
			}
			testkit.Equal(t, levelOf(tt.err), tt.level, "level")
		})
	}
	if asError(nil) != nil {
		t.Error("no error is told as one")
	}
	if _, ok := judge(errors.New("x")); ok {
		t.Error("a stranger has a row")
	}
}
