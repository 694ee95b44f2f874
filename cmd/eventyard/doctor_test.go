package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/server"
)

// V7: a secret key that cannot be read here is not one that is lost.
func TestDoctorsAdviceAboutKeys(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		next string
	}{
		"lost":         {fmt.Errorf("secret.key is missing, and %w", server.ErrKeyLost), "look for a copy of secret.key"},
		"another":      {fmt.Errorf("policies/a: %w", server.ErrUnknownKey), "look for a copy of secret.key"},
		"another's":    {fmt.Errorf("read the secret key: %w", &os.PathError{Op: "open", Path: "secret.key", Err: fs.ErrPermission}), "as the user that runs the yard"},
		"a wrong path": {fmt.Errorf("read the secret key: %w", &os.PathError{Op: "stat", Path: "k", Err: fs.ErrNotExist}), "--secrets-key-file"},
		"rubbish":      {errors.New("line 1 is not a key"), "nothing is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &doctor{}
			d.judgeKey(server.Findings{Key: tt.err})
			testkit.That(t, d.findings[0].Status == problem && strings.Contains(d.findings[0].Next, tt.next), "found %+v", d.findings)
		})
	}
}

// V7: the listener in the place of the storage emulator is known as the yard's, and its flag has its own name.
func TestDoctorKnowsTheStorageListener(t *testing.T) {
	t.Chdir(t.TempDir())
	y := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Server", "Eventyard-Blob/1.0")
	}))
	defer y.Close()
	d := &doctor{cfg: config.Config{Data: "mine"}, named: true}
	d.examineListener(t.Context(), config.Listener{Name: config.DevStorage, Address: y.Listener.Addr().String()})
	testkit.That(t, strings.Contains(d.findings[0].Detail, "another yard") && strings.Contains(d.findings[0].Next, "--dev-storage off"), "found %+v", d.findings)
}

// V7: where nobody has named a data folder, a yard that does not say which it has is no problem.
func TestDoctorKnowsAYardThatKeepsToItself(t *testing.T) {
	t.Chdir(t.TempDir())
	y := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"type":"urn:eventyard:no-token"}`)
	}))
	defer y.Close()
	cfg := config.Config{Data: config.Default().Data, HTTP: y.Listener.Addr().String()}
	for named, want := range map[bool]status{false: fine, true: problem} {
		d := &doctor{cfg: cfg, named: named}
		d.findYard(t.Context())
		d.examineListener(t.Context(), config.Listener{Name: "http", Address: cfg.HTTP})
		testkit.That(t, d.findings[0].Status == want && strings.Contains(d.findings[0].Next, "--data"), "named %t: found %+v", named, d.findings)
	}
}
