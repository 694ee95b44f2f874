package v1

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

	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/processor"
)

// The table of answers knows every error that the layers beneath can be told apart by:
// each exported sentinel and each exported error type, read from their sources, so that
// a new one without a row fails here.
func TestEveryErrorBeneathHasAnAnswer(t *testing.T) {
	rows := map[string]bool{}
	for _, a := range allAnswers {
		if rows[a.name] {
			t.Errorf("%s has two rows", a.name)
		}
		rows[a.name] = true
	}
	declared := map[string]bool{}
	beneath := []string{"hubs/access", "hubs/auth", "hubs/broker", "grid/deadletter", "grid/delivery", "storage/eventlog", "hubs/groups", "storage/meta", "functions/poison/box", "functions/runner", "grid/topics"} // folders
	for _, pkg := range beneath {
		names, pkg := exportedErrors(t, "../../"+pkg), path.Base(pkg)
		if len(names) == 0 {
			t.Errorf("no errors were found in package %s", pkg)
		}
		for _, name := range names {
			declared[pkg+"."+name] = true
			if !rows[pkg+"."+name] {
				t.Errorf("%s.%s has no row in the table of answers", pkg, name)
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

// exportedErrors reads a package's source for variables named Err… and for types with
// a method Error.
func exportedErrors(t *testing.T, dir string) []string {
	t.Helper()
	files, err := fs.Glob(os.DirFS(dir), "*.go")
	must(t, err)
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), dir+"/"+file, nil, 0)
		must(t, err)
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

// Each error has the status that a client can act on, however deep it is wrapped.
func TestADeletedHubIsNoRemovedLog(t *testing.T) {
	if p := judge(fmt.Errorf("read orders/0: %w", eventlog.ErrRemoved)); p.Detail != "read orders/0: the hub was deleted" {
		t.Errorf("detail is %q", p.Detail)
	}
}

func TestErrorsAreReportedByStatus(t *testing.T) {
	tests := []struct {
		what   string
		err    error
		status int
		kind   string
	}{
		{"a hub that is not there is not found", &broker.NotFoundError{Kind: broker.KindHub, Name: "x"}, 404, "not-found"},
		{"a hub that is there already is a conflict", broker.ErrHubExists, 409, "hub-exists"},
		{"a bad name is the client's to mend", broker.ErrInvalidName, 400, "invalid-name"},
		{"too much is too large", eventlog.ErrTooLarge, 413, "too-large"},
		{"a full disk is insufficient storage", eventlog.ErrNoSpace, 507, "no-space"},
		{"doubt is told as doubt", eventlog.ErrUncertain, 503, "outcome-unknown"},
		{"doubt goes before its certain cause", fmt.Errorf("%w: %w", eventlog.ErrUncertain, eventlog.ErrNoSpace), 503, "outcome-unknown"},
		{"an end while waiting for storage is doubt", context.Canceled, 503, "outcome-unknown"},
		{"a replaced writer can be tried again", eventlog.ErrFenced, 503, "writer-replaced"},
		{"a position past the end does not fit", &eventlog.PositionError{Asked: 9, Last: 3}, 416, "position-past-end"},
		{"damage is ours", &eventlog.CorruptError{Where: "segment"}, 500, "damaged-events"},
		{"a deleted hub is gone", eventlog.ErrRemoved, 410, "hub-deleted"},
		{"a closed log means stopping", eventlog.ErrClosed, 503, "stopping"},
		{"a lost race is a conflict", meta.ErrConflict, 409, "changed-meanwhile"},
		{"a body beyond its bound is too large", &http.MaxBytesError{Limit: 1}, 413, "too-large"},
		{"a bad token calls for another", auth.ErrSignature, 401, "invalid-signature"},
		{"a revoked token, too", auth.ErrRevoked, 401, "revoked-token"},
		{"an expired token, too", &auth.ExpiredError{At: time.Unix(0, 0)}, 401, "expired-token"},
		{"a good token for something else does not", auth.ErrAudience, 403, "wrong-audience"},
		{"an issuer that is silent may speak again", auth.ErrUnavailable, 503, "token-unchecked"},
		{"a policy that is not there is not found", access.ErrNotFound, 404, "policy-not-found"},
		{"a policy that is there already is a conflict", access.ErrExists, 409, "policy-exists"},
		{"the root policy stays", access.ErrRootPolicy, 409, "root-policy"},
		{"an owned partition is a conflict", &groups.OwnedError{Owner: "a"}, 409, "owned"},
		{"a position that is not there does not fit", groups.ErrOutOfRange, 416, "position-out-of-range"},
		{"a lost race for a checkpoint is a conflict", processor.ErrConflict, 409, "changed-meanwhile"},
		{"what nobody knows is ours", errors.New("surprise"), 500, "internal"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			p := judge(fmt.Errorf("while doing: %w", tt.err))
			if p.Status != tt.status || p.Type != problemPrefix+tt.kind {
				t.Errorf("got %d %s", p.Status, p.Type)
			}
			if p.Title == "" || p.Next == "" || !strings.Contains(p.Detail, words(tt.err)) {
				t.Errorf("the problem does not say enough: %+v", p)
			}
		})
	}
}

// An unknown outcome is said in so many words: a client must not take it for "not
// stored", and has to know that sending again may store twice.
func TestUnknownOutcomeIsSaidInWords(t *testing.T) {
	for _, err := range []error{eventlog.ErrUncertain, context.DeadlineExceeded, context.Canceled} {
		p := judge(err)
		for _, word := range []string{"unknown", "may or may not", "a repeat is possible", "read first whether it is there"} {
			if !strings.Contains(p.Title+" "+p.Next, word) {
				t.Errorf("%v: the problem does not say %q: %+v", err, word, p)
			}
		}
	}
}

// No client is told to repeat by itself what may be stored already.
func TestUnknownOutcomeHasNoRetryAfter(t *testing.T) {
	for _, a := range allAnswers {
		if a.kind == "outcome-unknown" && a.retryAfter != 0 {
			t.Errorf("%s has a Retry-After", a.name)
		}
	}
}

// panicking is a broker with a mistake in it.
type panicking struct{ *broker.Broker }

func (panicking) Groups(context.Context, string) ([]broker.Group, error) { panic("index out of range") }

func (p panicking) Cursor(context.Context, string, string, string, eventlog.Position) (eventlog.Cursor, error) {
	panic("index out of range")
}

// A panic costs its own request and no other: it is logged, counted as ours, and told
// as far as the answer has not begun. One that has begun is cut off.
func TestPanicsAreAnswered(t *testing.T) {
	y := newYard(t, func(c *Config) { c.Broker = panicking{c.Broker.(*broker.Broker)} })
	y.hub("orders", 1)
	y.send("orders", "0", "a")
	y.errors.want.Store(2)
	p := y.refused(500, "internal", "GET", "/api/v1/hubs/orders", nil)
	if strings.Contains(p.Detail, "index") {
		t.Errorf("the client is told what only the log should have: %s", p.Detail)
	}
	if n := y.counted("/api/v1/hubs/{hub}", "GET", "5xx"); n != 1 {
		t.Errorf("%v requests are counted as failed by us", n)
	}
	func() {
		defer func() {
			if reason := recover(); reason != http.ErrAbortHandler {
				t.Errorf("an answer that has begun ends with %v", reason)
			}
		}()
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/hubs/orders/events", nil)
		r.Header.Set("Authorization", y.authorization)
		y.handler.ServeHTTP(httptest.NewRecorder(), r)
	}()
	if n := y.counted("/api/v1/hubs/{hub}/events", "GET", "5xx"); n != 1 {
		t.Errorf("%v streams are counted as failed by us", n)
	}
}

// failing is a broker whose publishing fails.
type failing struct {
	*broker.Broker
	err error
}

func (f failing) Publish(context.Context, string, broker.Target, []eventlog.Event) (broker.Published, error) {
	return broker.Published{}, f.err
}

// H2: what storage says of a send reaches the client by status, and when to try again.
func TestSendNotifiesWhatStorageSaid(t *testing.T) {
	tests := []struct {
		what       string
		err        error
		status     int
		retryAfter string
		logged     int64 // what the operator has to mend is logged, once for each request
	}{
		{"full", eventlog.ErrNoSpace, 507, "10", 0},
		{"in doubt", eventlog.ErrUncertain, 503, "", 0},
		{"given up", context.DeadlineExceeded, 503, "", 0},
		{"fenced", eventlog.ErrFenced, 503, "1", 0},
		{"broken", errors.New("the disk caught fire"), 500, "", 2},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			y := newYard(t, func(c *Config) { c.Broker = failing{c.Broker.(*broker.Broker), tt.err} })
			y.hub("orders", 1)
			y.errors.want.Store(tt.logged)
			got := y.want(tt.status, "POST", "/api/v1/hubs/orders/events", `[{"body":"x"}]`)
			if after := got.header.Get("Retry-After"); after != tt.retryAfter {
				t.Errorf("Retry-After is %q", after)
			}
			xml := y.want(tt.status, "POST", "/orders/messages", "x", "Content-Type", "text/plain")
			if want := fmt.Sprintf("<Error><Code>%d</Code><Detail>", tt.status); !strings.HasPrefix(string(xml.body), want) {
				t.Errorf("REST error is %s", xml.body)
			}
		})
	}
}

// A request whose context ends is answered only if somebody is there to hear: not when
// the client has left, but when it is the yard that gave up on stopping.
func TestEndedRequestsAreAnsweredWhileStopping(t *testing.T) {
	y := newYard(t, func(c *Config) { c.Broker = failing{c.Broker.(*broker.Broker), context.Canceled} })
	y.hub("orders", 1)
	ended, end := context.WithCancel(t.Context())
	end()
	ask := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ended, "POST", "/api/v1/hubs/orders/events", strings.NewReader(`[{"body":"x"}]`))
		r.Header.Set("Authorization", y.authorization)
		y.handler.ServeHTTP(w, r)
		return w
	}
	if w := ask(); w.Code != statusClientGone || w.Body.Len() != 0 {
		t.Errorf("a client that left was answered %d %s", w.Code, w.Body)
	}
	y.stopping()
	if w := ask(); w.Code != 503 || !strings.Contains(w.Body.String(), "outcome-unknown") {
		t.Errorf("a client of a stopping yard was answered %d %s", w.Code, w.Body)
	}
}
