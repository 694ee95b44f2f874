package eventgrid

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// beneath are the folders of the packages whose errors reach the listener.
var beneath = []string{"hubs/auth", "grid/delivery", "storage/eventlog", "storage/meta", "grid/schema", "grid/topickey", "grid/topics"}

// The table of verdicts knows every error that the layers beneath can be told apart by: each
// exported sentinel and each exported error type, read from their sources, so that a new one
// without a row fails here.
func TestEveryErrorBeneathHasAVerdict(t *testing.T) {
	rows := map[string]bool{}
	for _, v := range verdicts {
		if rows[v.name] {
			t.Errorf("%s has two rows", v.name)
		}
		rows[v.name] = true
	}
	declared := map[string]bool{}
	for _, pkg := range beneath {
		found, pkg := exportedErrors(t, "../../"+pkg), path.Base(pkg)
		if len(found) == 0 {
			t.Errorf("no errors were found in package %s", pkg)
		}
		for _, name := range found {
			declared[pkg+"."+name] = true
			if !rows[pkg+"."+name] {
				t.Errorf("%s.%s has no row in the table of verdicts", pkg, name)
			}
		}
	}
	for name := range rows {
		pkg, _, _ := strings.Cut(name, ".")
		if slices.ContainsFunc(beneath, func(dir string) bool { return path.Base(dir) == pkg }) && !declared[name] {
			t.Errorf("the table has a row for %s, which does not exist", name)
		}
	}
}

// exportedErrors reads a package's source for variables named Err… and for types with a method
// Error.
func exportedErrors(t *testing.T, dir string) (found []string) {
	t.Helper()
	files, err := fs.Glob(os.DirFS(dir), "*.go")
	must(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), dir+"/"+file, nil, 0)
		must(t, err)
		for _, decl := range parsed.Decls {
			found = append(found, errorsOf(decl)...)
		}
	}
	return found
}

func errorsOf(decl ast.Decl) (found []string) {
	switch decl := decl.(type) {
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			values, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for _, name := range values.Names {
				if name.IsExported() && strings.HasPrefix(name.Name, "Err") {
					found = append(found, name.Name)
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
			found = append(found, name.Name)
		}
	}
	return found
}

// Each error has the status that a client can act on, however deep it is wrapped.
func TestErrorsAreReportedByStatus(t *testing.T) {
	tests := []struct {
		what       string
		err        error
		status     int
		word, code string
	}{
		{"a topic that is not there is not found", topics.ErrTopicNotFound, 404, "NotFound", "ResourceNotFound"},
		{"a subscription that is not there is not found", topics.ErrNotFound, 404, "NotFound", "ResourceNotFound"},
		{"a hub that is not there is not found", &broker.NotFoundError{Kind: broker.KindHub, Name: "x"}, 404, "NotFound", "ResourceNotFound"},
		{"what is there already is a conflict", topics.ErrTopicExists, 409, "Conflict", "ResourceExists"},
		{"a subscription, too", topics.ErrExists, 409, "Conflict", "ResourceExists"},
		{"a name of several is a conflict", topics.ErrAmbiguous, 409, "Conflict", "Ambiguous"},
		{"the yard's own topic stays", topics.ErrReserved, 409, "Conflict", "ResourceReserved"},
		{"what is not allowed is the client's to mend", topics.ErrInvalid, 400, "BadRequest", "InvalidRequest"},
		{"an endpoint that does not agree is, too", topics.ErrHandshake, 400, "BadRequest", "EndpointValidationFailed"},
		{"a link that is not good is forbidden", topics.ErrToken, 403, "Forbidden", "InvalidValidationLink"},
		{"a pushed subscription is not pulled", delivery.ErrNotPull, 400, "BadRequest", "InvalidDeliveryMode"},
		{"a subscription that is just made is tried again", delivery.ErrNotFound, 503, "Busy", "Busy"},
		{"a lost lock is a conflict", delivery.ErrLockLost, 409, "Conflict", "TokenLost"},
		{"a token of something else is the client's", delivery.ErrToken, 400, "BadRequest", "BadToken"},
		{"a full disk is busy", eventlog.ErrNoSpace, 503, "Busy", "Busy"},
		{"a full store is busy", meta.ErrNoSpace, 503, "Busy", "Busy"},
		{"doubt is told as doubt", eventlog.ErrUncertain, 503, "Busy", "OutcomeUnknown"},
		{"of changes, too", meta.ErrUncertain, 503, "Busy", "OutcomeUnknown"},
		{"doubt goes before its certain cause", fmt.Errorf("%w: %w", eventlog.ErrUncertain, eventlog.ErrNoSpace), 503, "Busy", "OutcomeUnknown"},
		{"an issuer that does not answer in time has nothing to do with what is stored", fmt.Errorf("%w: ask issuer: %w", auth.ErrUnavailable, context.DeadlineExceeded), 503, "Busy", "Busy"},
		{"a replaced writer can be tried again", eventlog.ErrFenced, 503, "Busy", "Busy"},
		{"a closed log means stopping", eventlog.ErrClosed, 503, "Busy", "Stopping"},
		{"a closed store, too", meta.ErrClosed, 503, "Busy", "Stopping"},
		{"a yard that catches up is busy", meta.ErrWatchLost, 503, "Busy", "Busy"},
		{"a deleted log is a deleted topic", eventlog.ErrRemoved, 404, "NotFound", "ResourceNotFound"},
		{"too much is too large", eventlog.ErrTooLarge, 413, "PayloadTooLarge", "PayloadTooLarge"},
		{"a body beyond its bound is, too", &http.MaxBytesError{Limit: 1}, 413, "PayloadTooLarge", "PayloadTooLarge"},
		{"no events are no publication", eventlog.ErrEmptyBatch, 400, "BadRequest", "InputJsonInvalid"},
		{"damage is ours", &eventlog.CorruptError{Where: "segment"}, 500, "InternalServerError", "InternalError"},
		{"a position is ours", &eventlog.PositionError{}, 500, "InternalServerError", "InternalError"},
		{"a lost race is a conflict", meta.ErrConflict, 409, "Conflict", "ChangedMeanwhile"},
		{"an entry that is not there is not found", meta.ErrNotFound, 404, "NotFound", "ResourceNotFound"},
		{"a name that is none is the client's", meta.ErrInvalid, 400, "BadRequest", "InvalidRequest"},
		{"what the schema refuses keeps its words", &schema.InputError{Status: 415, Code: "InvalidContentType", Message: "use another: x"}, 415, "UnsupportedMediaType", "InvalidContentType"},
		{"a bad key calls for another", errKey, 401, "Unauthorized", "Unauthorized"},
		{"no key calls for one", errNoCredential, 401, "Unauthorized", "Unauthorized"},
		{"no keys at all are told", errKeysDisabled, 401, "Unauthorized", "Unauthorized"},
		{"a token for something else calls for another", errResource, 401, "Unauthorized", "Unauthorized"},
		{"too few rights are told", errRights, 403, "Forbidden", "InsufficientRights"},
		{"a token that is none", topickey.ErrMalformed, 401, "Unauthorized", "InvalidSas"},
		{"a token of another key", topickey.ErrSignature, 401, "Unauthorized", "Unauthorized"},
		{"a token whose time is over", topickey.ErrExpired, 401, "Unauthorized", "Unauthorized"},
		{"a signature that is none", auth.ErrMalformed, 401, "Unauthorized", "Unauthorized"},
		{"a signature of another key", auth.ErrSignature, 401, "Unauthorized", "Unauthorized"},
		{"a signature whose time is over", &auth.ExpiredError{At: time.Unix(0, 0)}, 401, "Unauthorized", "Unauthorized"},
		{"a revoked one", auth.ErrRevoked, 401, "Unauthorized", "Unauthorized"},
		{"one of a kind that is not taken", auth.ErrUnsupported, 401, "Unauthorized", "Unauthorized"},
		{"one for something else", auth.ErrAudience, 403, "Forbidden", "InsufficientRights"},
		{"an issuer that is silent may speak again", auth.ErrUnavailable, 503, "Busy", "Busy"},
		{"a right that is none", auth.ErrRights, 400, "BadRequest", "InvalidRequest"},
		{"a connection string that is none", auth.ErrConnectionString, 400, "BadRequest", "InvalidRequest"},
		{"an end while waiting for storage is doubt", context.DeadlineExceeded, 503, "Busy", "OutcomeUnknown"},
		{"by whomever", context.Canceled, 503, "Busy", "OutcomeUnknown"},
		{"what nobody knows is ours", errors.New("surprise"), 500, "InternalServerError", "InternalError"},
	}
	proved := map[string]bool{}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			f := judge(fmt.Errorf("while doing: %w", test.err))
			if f.status != test.status || f.word() != test.word || f.code != test.code {
				t.Errorf("got %d %s %s", f.status, f.word(), f.code)
			}
			if f.message == "" || strings.Contains(f.text(), "surprise") {
				t.Errorf("told %q", f.text())
			}
			for _, v := range verdicts {
				if v.match(test.err) {
					proved[v.name] = true
				}
			}
		})
	}
	for _, v := range verdicts {
		if !proved[v.name] {
			t.Errorf("no test proves the verdict on %s", v.name)
		}
	}
}

// No client is told when to repeat what may be stored already.
func TestUnknownOutcomeHasNoRetryAfter(t *testing.T) {
	for _, v := range verdicts {
		if v.code == "OutcomeUnknown" && v.retryAfter != 0 {
			t.Errorf("%s has a Retry-After", v.name)
		}
		if v.status == http.StatusServiceUnavailable && v.code != "OutcomeUnknown" && v.retryAfter == 0 {
			t.Errorf("%s does not say when to ask again", v.name)
		}
	}
}

// panicking is definitions with a mistake in them.
type panicking struct{ *memory }

func (panicking) Publish(context.Context, string, [][]byte) error { panic("index out of range") }

// cut is an answer that panics when it is written.
type cut struct{ *httptest.ResponseRecorder }

func (cut) Write([]byte) (int, error) { panic("connection fell over") }

// A panic costs its own request and no other: it is logged, and told as far as the answer has not
// begun. One that has begun is cut off.
func TestPanicsAreAnswered(t *testing.T) {
	y := newYard(t, func(c *Config) { c.Topics = panicking{c.Topics.(*memory)} })
	y.errors.want.Store(2)
	message := y.ask("POST", "/topics/orders/api/events", "["+event("a")+"]", withKey).refused(500, "InternalError")
	if strings.Contains(message, "index") {
		t.Errorf("the client is told what only the log should have: %s", message)
	}
	if n := y.counted(y.handler.metrics.requests, "Publish", "500"); n != 1 {
		t.Errorf("%v requests are counted as failed by us", n)
	}
	defer func() {
		if reason := recover(); reason != http.ErrAbortHandler {
			t.Errorf("an answer that has begun ends with %v", reason)
		}
		if n := y.counted(y.handler.metrics.requests, "none", "500"); n != 1 {
			t.Errorf("%v cut answers are counted", n)
		}
	}()
	y.handler.ServeHTTP(cut{httptest.NewRecorder()}, httptest.NewRequest("GET", "https://localhost/topics/x/y/z", nil))
}

func TestAnUnfinishedConfigPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a listener without topics was made")
		}
	}()
	New(Config{})
}
