package eventhubs

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// beneath are the packages whose errors the table has to know, by their folders.
var beneath = map[string]string{
	"broker": "../../hubs/broker", "eventlog": "../../storage/eventlog", "meta": "../../storage/meta",
	"auth": "../../hubs/auth", "access": "../../hubs/access", "amqp": "..", "wire": "../wire",
	"groups": "../../hubs/groups", "groupwire": "../../hubs/groupwire",
}

// rowless are errors that need no row, with the reason.
var rowless = map[string]string{
	"wire.Error":       "it is what clients are told",
	"eventlog.ErrUsed": "of filling a yard, before it serves",
}

// The table of answers knows every error that the layers beneath can be told apart by:
// each exported sentinel and each exported error type, read from their sources, so that
// a new one without a row fails here.
func TestEveryErrorBeneathHasAnAnswer(t *testing.T) {
	rows := map[string]bool{}
	for _, a := range answers {
		testkit.Equal(t, rows[a.name], false, "%s has two rows", a.name)
		rows[a.name] = true
	}
	declared := map[string]bool{}
	for pkg, dir := range beneath {
		names := exportedErrors(t, dir)
		if len(names) == 0 {
			t.Errorf("no errors were found in package %s", pkg)
		}
		for _, name := range names {
			name = pkg + "." + name
			declared[name] = true
			if !rows[name] && rowless[name] == "" {
				t.Errorf("%s has no row in the table of answers", name)
			}
		}
	}
	for name := range rows {
		pkg, _, _ := strings.Cut(name, ".")
		if beneath[pkg] != "" && !declared[name] {
			t.Errorf("the table has a row for %s, which does not exist", name)
		}
	}
}

// exportedErrors reads a package's source for variables named Err… and for types with
// a method Error.
func exportedErrors(t *testing.T, dir string) []string {
	t.Helper()
	files := testkit.Value(fs.Glob(os.DirFS(dir), "*.go"))(t)
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed := testkit.Value(parser.ParseFile(token.NewFileSet(), dir+"/"+file, nil, 0))(t)
		for _, decl := range parsed.Decls {
			names = append(names, errorsOf(decl)...)
		}
	}
	return names
}

func errorsOf(decl ast.Decl) (names []string) {
	switch decl := decl.(type) {
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			values, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for _, name := range values.Names {
				if name.IsExported() && strings.HasPrefix(name.Name, "Err") {
					names = append(names, name.Name)
				}
			}
		}
	case *ast.FuncDecl:
		if decl.Name.Name != "Error" || decl.Recv == nil {
			return nil
		}
		receiver := decl.Recv.List[0].Type
		if star, ok := receiver.(*ast.StarExpr); ok {
			receiver = star.X
		}
		if name, ok := receiver.(*ast.Ident); ok && name.IsExported() {
			names = append(names, name.Name)
		}
	}
	return names
}

var somewhere = entity{host: "localhost:5672", namespace: "yard", address: hubAt("orders", "billing", "3")}

// Each error has the condition that clients act on, however deep it is wrapped, and the
// words that they look for.
func TestErrorsHaveConditionAndText(t *testing.T) {
	tests := []struct {
		what      string
		err       error
		condition wire.Symbol
		text      string
	}{
		{"a hub that is not there", &broker.NotFoundError{Kind: broker.KindHub, Hub: "nope", Name: "nope"},
			condNotFound, "The messaging entity 'sb://localhost:5672/nope' could not be found."},
		{"a group that is not there", &broker.NotFoundError{Kind: broker.KindGroup, Hub: "orders", Name: "billing"},
			condNotFound, "The messaging entity 'yard:eventhub:orders~3|billing' could not be found."},
		{"a group that is written otherwise", &broker.NotFoundError{Kind: broker.KindGroup, Hub: "orders", Name: "billing", Similar: "Billing"},
			condNotFound, "The messaging entity 'yard:eventhub:orders~3|billing' could not be found. There is a consumer group 'Billing', and case matters here."},
		{"a partition that is not there", &broker.NotFoundError{Kind: broker.KindPartition, Hub: "orders", Name: "9", Partitions: 4},
			condRange, "The specified partition is invalid for an EventHub partition sender or receiver. It should be between 0 and 3."},
		{"a hub that was deleted", eventlog.ErrRemoved, condNotFound, "The messaging entity 'sb://localhost:5672/orders' could not be found."},
		{"doubt is tried again", eventlog.ErrUncertain, condTimeout, "The outcome is unknown: what was sent may or may not have been stored."},
		{"doubt goes before its certain cause", fmt.Errorf("%w: %w", eventlog.ErrUncertain, eventlog.ErrNoSpace),
			condTimeout, "The outcome is unknown: what was sent may or may not have been stored."},
		{"an end while waiting", context.Canceled, condCancelled, "The operation was cancelled; it may or may not have been done."},
		{"a full disk may have room later", eventlog.ErrNoSpace, condBusy, ""},
		{"storage out of reach comes back", eventlog.ErrUnavailable, condBusy, "Storage is out of reach at present: nothing was stored. Please wait and try again."},
		{"also where it did not answer in time", fmt.Errorf("%w: %w", eventlog.ErrUnavailable, context.DeadlineExceeded), condBusy, ""},
		{"unless something may have been stored", fmt.Errorf("%w: %w", eventlog.ErrUncertain, eventlog.ErrUnavailable), condTimeout, ""},
		{"a replaced writer has a successor", eventlog.ErrFenced, condBusy, ""},
		{"events in another form", eventlog.ErrForm, condNotImplemented, "While doing: events are in a form that is not known here."},
		{"too much for the log", eventlog.ErrTooLarge, condMessageSize, "While doing: batch is too large."},
		{"a key that is too long", broker.ErrKeyTooLong, condArgument, ""},
		{"a producer whose time is over", broker.ErrProducerFenced, condProducerEpoch, ""},
		{"a producer that skips", broker.ErrOutOfOrder, condOutOfOrder, ""},
		{"damage", &eventlog.CorruptError{Where: "segment", First: 3, Next: 7, Reason: "bad checksum"},
			condInternal, "Stored events are damaged: events 3 to 6 cannot be read, go on at 7."},
		{"a lost race", meta.ErrConflict, condBusy, ""},
		{"a store out of reach comes back", meta.ErrUnavailable, condBusy, // C5
			"The request was terminated because storage is out of reach: nothing was changed. Please wait and try again."},
		{"a bad signature", auth.ErrSignature, condUnauthorized, "InvalidSignature: The token has an invalid signature."},
		{"a token that is over", &auth.ExpiredError{At: time.Unix(1700000000, 0)},
			condUnauthorized, "ExpiredToken: The token is expired. Expiration time: 2023-11-14T22:13:20Z."},
		{"a token for something else", auth.ErrAudience, condUnauthorized, "InvalidAudience: The authorization header contains a token with a wrong audience."},
		{"a token that is none", auth.ErrMalformed, condUnauthorized, ""},
		{"bytes that are no message", &wire.DecodeError{Offset: 3, Want: "value", Err: wire.ErrTruncated}, condDecode, ""},
		{"what is told already", &wire.Error{Condition: condNotAllowed, Description: "No."}, condNotAllowed, "No."},
		{"what nobody knows is ours, and stays ours", errors.New("password is hunter2"), condInternal, "The yard could not do it; its log has more."},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			reported, _ := judge(somewhere, fmt.Errorf("while doing: %w", tt.err))
			testkit.Equal(t, reported.Condition, tt.condition, "condition")
			if tt.text != "" && reported.Description != tt.text {
				t.Errorf("text is\n%s\nwant\n%s", reported.Description, tt.text)
			}
			if reported.Description == "" {
				t.Error("there is no text")
			}
		})
	}
	if _, known := judge(somewhere, errors.New("surprise")); known {
		t.Error("what no row knows passes for known")
	}
}

// The status codes of $cbs and $management; never 403, which one client takes for a quota.
func TestStatusesOfConditions(t *testing.T) {
	tests := map[wire.Symbol]int32{
		condNotFound: 404, condUnauthorized: 401, condArgument: 400, condRange: 400,
		condNotImplemented: 501, condBusy: 503, condTimeout: 408, condInternal: 500, condStolen: 500,
	}
	for condition, want := range tests {
		testkit.Equal(t, statusOf(condition), want, "%s", condition)
	}
	for _, a := range answers {
		if status := statusOf(a.condition); status < 400 || status == 403 {
			t.Errorf("%s is answered with %d", a.name, status)
		}
	}
}
