package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// wrongRequests has requests that are wrong, each with what is said about it: the status, what is wrong, and what is
// next. A request is a method, a path, headers and a body, as in wrongInputs.
const wrongRequests = "testdata/wrong/requests.txt"

// The same of requests over HTTP as of command lines.
func TestWrongRequests(t *testing.T) {
	table, err := filepath.Abs(wrongRequests)
	testkit.Must(t, err)
	kept := string(testkit.Value(os.ReadFile(table))(t))
	newWrongWorld(t)
	var said strings.Builder
	tried := 0
	for block := range strings.SplitSeq(strings.TrimSpace(kept), "\n\n") {
		line, _, _ := strings.Cut(block, "\n")
		request, is := strings.CutPrefix(line, "$ ")
		if !is {
			said.WriteString(block + "\n\n") // a heading
			continue
		}
		tried++
		fmt.Fprintf(&said, "$ %s\n%s\n", request, refusedAs(t, request))
	}
	testkit.That(t, tried >= 40, "only %d requests were tried", tried)
	now := strings.TrimSpace(said.String()) + "\n"
	if *update {
		testkit.Must(t, os.WriteFile(table, []byte(now), 0o644))
		kept = now
	}
	testkit.Diff(t, kept, now)
}

var headerOfRequest = regexp.MustCompile(`^([A-Z][A-Za-z-]+): (.*)$`)

// refusedAs sends a request, which has to be refused with what to do next.
func refusedAs(t *testing.T, request string) string {
	t.Helper()
	words := shellWords(request)
	header, body := http.Header{}, ""
	for _, word := range words[2:] {
		if found := headerOfRequest.FindStringSubmatch(word); found != nil {
			header.Set(found[1], found[2])
		} else {
			body = word
		}
	}
	r := testkit.Value(http.NewRequestWithContext(t.Context(), words[0], os.Getenv("EVENTYARD_SERVER")+words[1], strings.NewReader(body)))(t)
	r.SetBasicAuth(auth.RootPolicy, auth.DevelopmentKey)
	for name, values := range header {
		r.Header[name] = values
	}
	if r.Header.Get("Authorization") == "none" {
		r.Header.Del("Authorization")
	}
	answer := testkit.Value(http.DefaultClient.Do(r))(t)
	defer answer.Body.Close()
	text := string(testkit.Value(io.ReadAll(answer.Body))(t))
	testkit.That(t, answer.StatusCode >= 400 && answer.StatusCode < 500, "%s: %s", request, answer.Status)
	testkit.That(t, !ofGo.MatchString(strings.ReplaceAll(text, "/api/v1", "")) && !strings.Contains(text, `\u00`), "%s: words of Go: %s", request, text)
	var problem struct{ Detail, Next string }
	testkit.Must(t, json.Unmarshal([]byte(text), &problem), "%s: %s", request, text)
	testkit.That(t, problem.Detail != "" && problem.Next != "", "%s: and what is next? %s", request, text)
	said := fmt.Sprintf("%d %s\n  %s\n", answer.StatusCode, problem.Detail, problem.Next)
	return strings.ReplaceAll(said, strings.TrimPrefix(os.Getenv("EVENTYARD_SERVER"), "http://"), "$HTTP")
}
