package frame

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/blob"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
	"github.com/eventyard/eventyard/processor"
)

// beneath are the packages whose errors reach a client, and by which forms.
var beneath = map[string][]Wire{
	"hubs/access": {Problem}, "hubs/auth": {Problem, EventGrid}, "hubs/caller": {Problem, EventGrid}, "hubs/broker": {Problem}, "hubs/groups": {Problem}, "hubs/blob": {Blob},
	"grid/deadletter": {Problem}, "grid/delivery": {Problem, EventGrid}, "grid/topics": {Problem, EventGrid}, "grid/topickey": {EventGrid},
	"storage/eventlog": {Problem, EventGrid}, "storage/meta": {Problem, EventGrid},
	"transport/admission": {Problem, EventGrid, Blob},
	"functions/runner":    {Problem}, "functions/poison/box": {Problem},
}

// The table knows every error that the layers beneath can be told apart by: each exported sentinel
// and each exported error type, read from their sources, so that a new one without a row fails
// here, in each form that tells it.
func TestEveryErrorBeneathHasARow(t *testing.T) {
	rows := tableNames(t)
	if len(rows) != len(table)-1 { // the last matches everything
		t.Fatalf("the sources have %d rows, the table %d", len(rows), len(table)-1)
	}
	for dir, wires := range beneath {
		pkg, found := path.Base(dir), exportedErrors(t, "../../"+dir)
		if len(found) == 0 {
			t.Errorf("no errors were found in package %s", pkg)
		}
		for _, name := range found {
			i := slices.Index(rows, pkg+"."+name)
			if pkg+"."+name == "eventlog.ErrUsed" {
				continue // of filling a yard, before it serves
			}
			if i < 0 {
				t.Errorf("%s.%s has no row in the table", pkg, name)
				continue
			}
			for _, wire := range wires {
				if !table[i].matches(wire) {
					t.Errorf("%s.%s is not told in form %d", pkg, name, wire)
				}
			}
		}
	}
	for i, name := range rows {
		testkit.Equal(t, slices.Index(rows, name), i, "%s has two rows", name)
	}
}

// tableNames gives what each row of the table matches, as it stands in the sources.
func tableNames(t *testing.T) (names []string) {
	byVariable := map[string][]string{}
	for _, file := range sources(t, ".") {
		ast.Inspect(file, func(n ast.Node) bool {
			variable, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasSuffix(variable.Names[0].Name, "Rows") {
				return true
			}
			ast.Inspect(variable, func(n ast.Node) bool {
				if name := matched(n); name != "" {
					byVariable[variable.Names[0].Name] = append(byVariable[variable.Names[0].Name], name)
				}
				return true
			})
			return false
		})
	}
	for _, variable := range []string{"guardRows", "authRows", "blobRows", "storageRows", "brokerRows", "policyRows", "groupRows", "gridRows", "functionRows", "ownRows"} {
		names = append(names, byVariable[variable]...)
	}
	return names
}

// matched is what is(X) or as[*X] is about; empty for everything else.
func matched(n ast.Node) string {
	var about ast.Expr
	switch n := n.(type) {
	case *ast.CallExpr:
		if name, ok := n.Fun.(*ast.Ident); ok && name.Name == "is" {
			about = n.Args[0]
		}
	case *ast.IndexExpr:
		if name, ok := n.X.(*ast.Ident); ok && name.Name == "as" {
			about = n.Index.(*ast.StarExpr).X
		}
	}
	switch about := about.(type) {
	case *ast.SelectorExpr:
		return about.X.(*ast.Ident).Name + "." + about.Sel.Name
	case *ast.Ident:
		return about.Name
	}
	return ""
}

func sources(t *testing.T, dir string) (files []*ast.File) {
	t.Helper()
	names, err := fs.Glob(os.DirFS(dir), "*.go")
	testkit.Must(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), dir+"/"+name, nil, 0)
		testkit.Must(t, err)
		files = append(files, file)
	}
	return files
}

// exportedErrors reads a package's source for variables named Err… and for types with a method
// Error.
func exportedErrors(t *testing.T, dir string) (names []string) {
	for _, file := range sources(t, dir) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for _, name := range n.Names {
					if strings.HasPrefix(name.Name, "Err") {
						names = append(names, name.Name)
					}
				}
			case *ast.FuncDecl:
				if n.Name.Name == "Error" && n.Recv != nil {
					receiver := n.Recv.List[0].Type
					if star, ok := receiver.(*ast.StarExpr); ok {
						receiver = star.X
					}
					if name := receiver.(*ast.Ident); name.IsExported() {
						names = append(names, name.Name)
					}
				}
				return false
			}
			return true
		})
	}
	return names
}

// Each error has the status that a client can act on, however deep it is wrapped, in each form. A
// form that has no words for it is left out.
func TestErrorsByStatus(t *testing.T) {
	for _, tt := range []struct {
		what    string
		err     error
		problem string
		grid    string
		blob    string
	}{
		{"a foreign host is forbidden", errForeignHost, "403 foreign-host", "403 ForeignHost", "403 AuthorizationFailure"},
		{"and so is another origin", errCrossOrigin, "403 cross-origin", "403 CrossOrigin", "403 AuthorizationFailure"},
		{"no room for one more connection is told apart from a busy service", &admission.FullError{Kind: admission.Clients, Limit: 9}, "503 too-many-connections", "503 Busy", "503 ServerBusy"},
		{"too much at once is for the caller to end", &admission.QuotaError{What: "requests", Limit: 9}, "429 too-many-readers", "429 TooManyRequests", "429 ServerBusy"},

		{"a hub that is not there is not found", &broker.NotFoundError{Kind: broker.KindHub, Name: "x"}, "404 not-found", "404 ResourceNotFound", ""},
		{"a hub that is there already is a conflict", broker.ErrHubExists, "409 hub-exists", "", ""},
		{"a bad name is the client's to mend", broker.ErrInvalidName, "400 invalid-name", "", ""},
		{"too much is too large", eventlog.ErrTooLarge, "413 too-large", "413 PayloadTooLarge", ""},
		{"a body beyond its bound is, too", &http.MaxBytesError{Limit: 1}, "413 too-large", "413 PayloadTooLarge", ""},
		{"a quota that is used up is too many requests", &quota.Error{What: "hub", Of: "bytes"}, "429 throttled", "429 TooManyRequests", "503 ServerBusy"},
		{"a full disk is insufficient storage, or busy", eventlog.ErrNoSpace, "507 no-space", "503 Busy", ""},
		{"a full store, too", meta.ErrNoSpace, "507 no-space", "503 Busy", ""},
		{"a store out of reach comes back", meta.ErrUnavailable, "503 storage-unavailable", "503 Busy", "503 ServerBusy"},
		{"doubt is told as doubt", eventlog.ErrUncertain, "503 outcome-unknown", "503 OutcomeUnknown", ""},
		{"of changes, too", meta.ErrUncertain, "503 outcome-unknown", "503 OutcomeUnknown", ""},
		{"doubt goes before its certain cause", fmt.Errorf("%w: %w", eventlog.ErrUncertain, eventlog.ErrNoSpace), "503 outcome-unknown", "503 OutcomeUnknown", ""},
		{"an end while waiting for storage is doubt", context.DeadlineExceeded, "503 outcome-unknown", "503 OutcomeUnknown", "503 OperationTimedOut"},
		{"by whomever", context.Canceled, "503 outcome-unknown", "503 OutcomeUnknown", "503 OperationTimedOut"},
		{"an issuer that does not answer in time has nothing to do with what is stored",
			fmt.Errorf("%w: ask issuer: %w", auth.ErrUnavailable, context.DeadlineExceeded), "503 token-unchecked", "503 Busy", "503 OperationTimedOut"},
		{"storage out of reach is busy", eventlog.ErrUnavailable, "503 storage-unavailable", "503 Busy", ""},
		{"also where it did not answer in time", fmt.Errorf("%w: %w", eventlog.ErrUnavailable, context.DeadlineExceeded), "503 storage-unavailable", "503 Busy", ""},
		{"unless something may have been stored", fmt.Errorf("%w: %w", eventlog.ErrUncertain, eventlog.ErrUnavailable), "503 outcome-unknown", "503 OutcomeUnknown", ""},
		{"a replaced writer can be tried again", eventlog.ErrFenced, "503 writer-replaced", "503 Busy", ""},
		{"a position past the end does not fit, or is ours", &eventlog.PositionError{Asked: 9, Last: 3}, "416 position-past-end", "500 InternalError", ""},
		{"another form is not for this reader", eventlog.ErrForm, "501 another-form", "500 InternalError", ""},
		{"damage is ours", &eventlog.CorruptError{Where: "segment"}, "500 damaged-events", "500 InternalError", ""},
		{"a deleted log is a deleted hub or topic", eventlog.ErrRemoved, "410 hub-deleted", "404 ResourceNotFound", ""},
		{"a closed log means stopping", eventlog.ErrClosed, "503 stopping", "503 Stopping", ""},
		{"a closed store, too", meta.ErrClosed, "503 stopping", "503 Stopping", ""},
		{"and so does the yard's own word", ErrStopping, "503 stopping", "", ""},
		{"a yard that catches up is busy", meta.ErrWatchLost, "503 catching-up", "503 Busy", ""},
		{"no events are no publication", eventlog.ErrEmptyBatch, "400 no-events", "400 InputJsonInvalid", ""},
		{"a lost race is a conflict", meta.ErrConflict, "409 changed-meanwhile", "409 ChangedMeanwhile", ""},
		{"what is not stored is not found", meta.ErrNotFound, "404 not-found", "404 ResourceNotFound", ""},
		{"a name that is none is the client's", meta.ErrInvalid, "400 invalid-name", "400 InvalidRequest", ""},

		{"nothing shown calls for something", ErrNoToken, "401 no-token", "", ""},
		{"a bad token calls for another", auth.ErrSignature, "401 invalid-signature", "401 Unauthorized", ""},
		{"one that is none, too", auth.ErrMalformed, "401 malformed-token", "401 Unauthorized", ""},
		{"a revoked one, too", auth.ErrRevoked, "401 revoked-token", "401 Unauthorized", ""},
		{"an expired one, too", &auth.ExpiredError{At: time.Unix(0, 0)}, "401 expired-token", "401 Unauthorized", ""},
		{"and one of a kind that is not taken", auth.ErrUnsupported, "401 unsupported-token", "401 Unauthorized", ""},
		{"a good one for something else does not", auth.ErrAudience, "403 wrong-audience", "403 InsufficientRights", ""},
		{"nor one with too few rights", ErrRights, "403 insufficient-rights", "", ""},
		{"an issuer that is silent may speak again", auth.ErrUnavailable, "503 token-unchecked", "503 Busy", ""},
		{"a right that is none", auth.ErrRights, "400 invalid-rights", "400 InvalidRequest", ""},
		{"a connection string that is none", auth.ErrConnectionString, "400 invalid-connection-string", "400 InvalidRequest", ""},
		{"a topic's token that is none", topickey.ErrMalformed, "", "401 InvalidSas", ""},
		{"one of another key", topickey.ErrSignature, "", "401 Unauthorized", ""},
		{"one whose time is over", topickey.ErrExpired, "", "401 Unauthorized", ""},

		{"a policy that is not there is not found", access.ErrNotFound, "404 policy-not-found", "", ""},
		{"a policy that is there already is a conflict", access.ErrExists, "409 policy-exists", "", ""},
		{"the root policy stays", access.ErrRootPolicy, "409 root-policy", "", ""},
		{"an owned partition is a conflict", &groups.OwnedError{Owner: "a"}, "409 owned", "", ""},
		{"an instance that lives is a conflict", &groups.AliveError{Instance: "a"}, "409 instance-alive", "", ""},
		{"an instance that never was is not found", groups.ErrNoInstance, "404 instance-not-found", "", ""},
		{"a position that is not there does not fit", groups.ErrOutOfRange, "416 position-out-of-range", "", ""},
		{"a lost race for a checkpoint is a conflict", processor.ErrConflict, "409 changed-meanwhile", "", ""},

		{"what cannot be so is the client's to mend", topics.ErrInvalid, "400 invalid-definition", "400 InvalidRequest", ""},
		{"a topic that is there is a conflict", topics.ErrTopicExists, "409 topic-exists", "409 ResourceExists", ""},
		{"and so is a subscription", topics.ErrExists, "409 subscription-exists", "409 ResourceExists", ""},
		{"a topic that is not there is not found", topics.ErrTopicNotFound, "404 topic-not-found", "404 ResourceNotFound", ""},
		{"nor is a subscription", topics.ErrNotFound, "404 subscription-not-found", "404 ResourceNotFound", ""},
		{"a name that several have has to be made clear", topics.ErrAmbiguous, "409 ambiguous-subscription", "409 Ambiguous", ""},
		{"the yard's own topic stays", topics.ErrReserved, "409 reserved-topic", "409 ResourceReserved", ""},
		{"an endpoint's no is no fault of the request's form", topics.ErrHandshake, "422 handshake-failed", "400 EndpointValidationFailed", ""},
		{"a link that is used up is gone, or forbidden", topics.ErrToken, "410 validation-link", "403 InvalidValidationLink", ""},
		{"a dead letter that is not there is not found", deadletter.ErrNotFound, "404 dead-letter-not-found", "", ""},
		{"what is not delivered is in no state for it, or is tried again", delivery.ErrNotFound, "409 not-delivered", "503 Busy", ""},
		{"nor is what is pushed", delivery.ErrNotPull, "409 not-pull", "400 InvalidDeliveryMode", ""},
		{"a lost lock is a conflict", delivery.ErrLockLost, "409 lock-lost", "409 TokenLost", ""},
		{"a token that is none is the client's to mend", delivery.ErrToken, "400 invalid-lock-token", "400 BadToken", ""},
		{"a subscription that moves is asked for again", shards.ErrElsewhere, "503 subscription-moves", "503 Busy", ""},

		{"a blob that is not there is not found", blob.ErrBlobNotFound, "", "", "404 BlobNotFound"},
		{"a body that stops coming is out of time", os.ErrDeadlineExceeded, "", "", "408 OperationTimedOut"},
		{"a panic is ours", errPanicked, "500 internal", "500 InternalError", "500 InternalError"},
		{"what nobody knows is ours", errors.New("surprise"), "500 internal", "500 InternalError", "500 InternalError"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			err := fmt.Errorf("do it: %w", fmt.Errorf("deep down: %w", tt.err))
			for wire, want := range map[Wire]string{Problem: tt.problem, EventGrid: tt.grid, Blob: tt.blob} {
				if want == "" {
					continue
				}
				said := Judge(wire, err)
				if got := fmt.Sprint(said.Status, " ", said.Code); got != want || said.Detail == "" {
					t.Errorf("form %d says %s (%s), want %s", wire, got, said.Detail, want)
				}
				if wire == Problem && (said.Title == "" || said.Next == "" || !strings.Contains(said.Detail, Words(tt.err))) {
					t.Errorf("the problem does not say enough: %+v", said)
				}
				if wire != Problem && strings.Contains(said.Detail, "surprise") {
					t.Errorf("form %d tells what is the log's: %s", wire, said.Detail)
				}
			}
		})
	}
}

// What an API refuses by itself is told as it said.
func TestOwnRefusalsStay(t *testing.T) {
	own := &Refusal{Status: 418, Code: "teapot", Detail: "short and stout"}
	for _, wire := range []Wire{Problem, EventGrid, Blob} {
		testkit.Equal(t, Judge(wire, fmt.Errorf("pour: %w", own)), *own, "form %d says", wire)
	}
	testkit.Equal(t, own.Error(), "teapot: short and stout", "the log says %q", own)
}

func TestADeletedHubIsNoRemovedLog(t *testing.T) {
	if said := Judge(Problem, fmt.Errorf("read orders/0: %w", eventlog.ErrRemoved)); said.Detail != "read orders/0: the hub was deleted" {
		t.Errorf("detail is %q", said.Detail)
	}
}

// C5: what was refused because the store is out of reach may be asked for again, and clients are told
// when.
func TestAnUnavailableStoreSaysWhenToComeBack(t *testing.T) {
	for _, wire := range []Wire{Problem, EventGrid, Blob} {
		if said := Judge(wire, fmt.Errorf("create hub: %w", meta.ErrUnavailable)); said.Status != 503 || said.RetryAfter <= 0 {
			t.Errorf("form %d: %+v", wire, said)
		}
	}
}

// An unknown outcome is said in so many words: a client must not take it for "not stored", and has
// to know that sending again may store twice.
func TestUnknownOutcomeIsSaidInWords(t *testing.T) {
	for _, err := range []error{eventlog.ErrUncertain, context.DeadlineExceeded, context.Canceled} {
		said := Judge(Problem, err)
		for _, word := range []string{"unknown", "may or may not", "a repeat is possible", "read first whether it is there"} {
			if !strings.Contains(said.Title+" "+said.Next, word) {
				t.Errorf("%v: the problem does not say %q: %+v", err, word, said)
			}
		}
	}
}

// No client is told to repeat by itself what may be stored already; and those of Event Grid are
// told when to ask again for everything else.
func TestUnknownOutcomeHasNoRetryAfter(t *testing.T) {
	for _, r := range table {
		for _, wire := range []Wire{Problem, EventGrid} {
			if !r.matches(wire) {
				continue
			}
			said := r.refusal(wire, errPanicked)
			unknown := said.Code == "outcome-unknown" || said.Code == "OutcomeUnknown"
			if unknown && said.RetryAfter != 0 {
				t.Errorf("%s has a Retry-After", said.Code)
			}
			if wire == EventGrid && said.Status == http.StatusServiceUnavailable && !unknown && said.RetryAfter == 0 {
				t.Errorf("%+v does not say when to ask again", said)
			}
		}
	}
}

// R1: what a client is told holds no path of the machine, in any form.
func TestAnswersHoldNoPaths(t *testing.T) {
	const path = "/var/lib/yard/logs/orders-x/0/00.seg"
	for _, err := range []error{
		fmt.Errorf("append orders/0: sync segment: %w", &fs.PathError{Op: "sync", Path: path, Err: errors.New("input/output error")}),
		fmt.Errorf("roll: %w", errors.Join(errors.New("other"), &os.LinkError{Op: "rename", Old: path, New: path + ".new", Err: errors.New("no space left")})),
		fmt.Errorf("read logs/orders-x/0/00.seg: %w", &fs.PathError{Op: "read", Path: path, Err: errors.New("input/output error")}),
		fmt.Errorf("read orders/0: %w", &eventlog.CorruptError{Where: "logs/orders-x/0/00.seg at offset 7", Reason: "bad checksum", First: 3, Next: 7}),
		fmt.Errorf("%w: %w", eventlog.ErrNoSpace, &fs.PathError{Op: "write", Path: path, Err: errors.New("no space left")}),
		fmt.Errorf("%w: %w", blob.ErrNoSpace, &fs.PathError{Op: "write", Path: path, Err: errors.New("no space left")}),
	} {
		for _, wire := range []Wire{Problem, EventGrid, Blob} {
			if said := Judge(wire, err); strings.Contains(said.Detail, "/var/lib") || strings.Contains(said.Detail, ".seg") || said.Detail == "" || !errors.Is(said.Cause, err) {
				t.Errorf("form %d tells %q", wire, said.Detail)
			}
		}
	}
}
