package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/spf13/cobra"
)

// What a row allows, to the last, is accepted by flag, file and API, and what is just outside is
// refused by each: a configuration that is called right comes to be.
func TestBoundsAreTheSameForFlagsFileAndAPI(t *testing.T) {
	_, url := serving(t, t.TempDir(), "127.0.0.1:0")
	post(t, url+"/api/v1/topics", []byte(`{"name":"orders"}`), http.StatusCreated)
	post(t, url+"/api/v1/hubs", []byte(`{"name":"orders"}`), http.StatusCreated)
	for _, d := range []spec.Definition{spec.Subscription, spec.Function} {
		for _, row := range d.List(spec.API | spec.File | spec.Create) {
			for text, good := range probes(row) {
				t.Run(fmt.Sprintf("%s/%s=%.20s", d.Name, row.Name, text), func(t *testing.T) {
					cmd := &cobra.Command{}
					addDefinitionFlags(cmd, d, spec.Create, reflect.New(d.Type).Interface())
					err := cmd.Flags().Set(row.FlagName(), text)
					testkit.Equal(t, err == nil, good, "the flag: %v", err)

					body := encoded(t, minimal(t, d, row, text))
					name := filepath.Join(t.TempDir(), "eventyard.yaml")
					testkit.Must(t, os.WriteFile(name, fmt.Appendf(nil, "hubs: [{name: orders}]\n%ss: [%s]", d.Name, body), 0o600))
					err = run(t.Context(), []string{"config", "check", name}, nil, io.Discard, io.Discard)
					testkit.Equal(t, err == nil, good, "the file: %v", err)

					path := url + "/api/v1/" + d.Name + "s"
					if !good {
						post(t, path, body, http.StatusBadRequest)
						return
					}
					post(t, path, body, http.StatusCreated)
					testkit.Must(t, run(t.Context(), []string{d.Name, "delete", "one", "--yes", "--server", url}, nil, io.Discard, io.Discard))
				})
			}
		}
	}
}

// probes are values at the bounds of a row and just outside them.
func probes(row spec.Field) map[string]bool {
	all := map[string]bool{}
	number := func(n float64, good bool) { all[strconv.FormatFloat(n, 'f', -1, 64)] = good }
	if row.Min != 0 {
		number(row.Min, true)
		below := row.Min - 1
		if row.Min < 1 {
			below = row.Min / 2
		}
		number(below, false)
	}
	if row.Max != 0 {
		number(row.Max, true)
		number(row.Max+1, false)
	}
	if row.Zero != "" {
		number(0, true)
	}
	if row.Least != 0 {
		all[row.Least.String()], all[(row.Least-1).String()] = true, false
	}
	if row.Most != 0 {
		all[row.Most.String()], all[(row.Most+time.Nanosecond).String()] = true, false
	}
	if row.Length != 0 {
		all[strings.Repeat("x", row.Length)], all[strings.Repeat("x", row.Length+1)] = true, false
	}
	for _, word := range row.OneOf {
		all[word], all["other"] = true, false
	}
	return all
}

// minimal is a definition that is good but for one field.
func minimal(t *testing.T, d spec.Definition, row spec.Field, text string) any {
	t.Helper()
	definition := any(&admin.FunctionRequest{Name: "one", Hub: "orders", Endpoint: new("http://127.0.0.1:1/"), Poison: new("none")})
	if d.Name == spec.Subscription.Name {
		s := &admin.SubscriptionRequest{Name: "one", Topic: "orders", SkipValidation: new(true)}
		if !strings.HasPrefix(row.Name, "pull.") {
			s.Endpoint = new("https://127.0.0.1:1/")
		}
		definition = s
	} else if row.Name == "minBatch" {
		definition.(*admin.FunctionRequest).Batch = new(10_000) // which is not to be below it
	}
	testkit.Must(t, row.Set(definition, text))
	return definition
}

func post(t *testing.T, url string, body []byte, want int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	testkit.Must(t, err)
	r.SetBasicAuth("RootManageSharedAccessKey", "SAS_KEY_VALUE")
	answer, err := http.DefaultClient.Do(r)
	testkit.Must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	testkit.Must(t, err)
	testkit.Equal(t, answer.StatusCode, want, "the API: %s: %s", body, text)
}
