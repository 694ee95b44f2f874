package console

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// withoutForm are the calls that change something, or cost much, and have no form, with the reason.
var withoutForm = map[string]string{
	"POST /api/v1/hubs/{hub}/groups/{group}/checkpoints":              "it takes a file of what another store has exported: eventyard checkpoint import reads and checks it",
	"DELETE /api/v1/hubs/{hub}/kafka-groups/{group}":                  "its consumers have to be stopped first, and it is about all its hubs: eventyard group delete --kafka",
	"DELETE /api/v1/hubs/{hub}/kafka-groups/{group}/offsets":          "its consumers have to be stopped first: eventyard group delete --kafka --offsets-only",
	"PUT /api/v1/hubs/{hub}/kafka-groups/{group}/offsets/{partition}": "its consumers have to be stopped first: eventyard checkpoint rewind --kafka",
	"POST /api/v1/hubs/{hub}/kafka-groups/{group}/copy":               "consumers of one group have to be stopped, and those of another started: eventyard group copy",
	"POST /api/v1/cluster/scrub":                                      "it answers line by line for as long as it reads: eventyard cluster scrub shows them",
	"POST /api/v1/cluster/replicas":                                   "it answers line by line until all streams are changed: eventyard cluster replicas shows them",
	"PATCH /api/v1/blob-account":                                      "programs that keep checkpoints in blobs depend on it: eventyard blob update",
	"POST /api/v1/blob-account/regenerate":                            "programs that keep checkpoints in blobs lose them with the key: eventyard blob regenerate",
}

// V1: the other way round: each call of the API that changes something has a form, or stands among those that have
// none and why.
func TestEachChangeHasAForm(t *testing.T) {
	have := map[string]bool{}
	for _, a := range allActions() {
		for _, call := range a.calls {
			have[call] = true
		}
	}
	var lack []string
	table := apiTable(t)
	for _, call := range table {
		method, path, _ := strings.Cut(call, " ")
		if !slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE"}, method) || !strings.HasPrefix(path, "/api/v1/") || have[call] {
			continue
		}
		if withoutForm[call] == "" {
			lack = append(lack, call)
		}
	}
	slices.Sort(lack)
	testkit.That(t, len(lack) == 0, "these have neither a form nor a reason:\n%s", strings.Join(lack, "\n"))
	for call := range withoutForm {
		testkit.That(t, slices.Contains(table, call), "the API has no %s", call)
		testkit.That(t, !have[call], "%s has a form, and needs no reason", call)
	}
}

// V1: the guide names each of them, with the command that does it.
func TestTheGuideNamesWhatHasNoForm(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guides", "console.md"))
	testkit.Must(t, err)
	_, section, _ := strings.Cut(string(text), "## What it leaves to the command line\n")
	section, _, _ = strings.Cut(section, "\n## ")
	named := map[string]string{} // the command by the call
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]+ [^`]+)` \\| `(eventyard [^`]+)` \\|").FindAllStringSubmatch(section, -1) {
		named[row[1]] = row[2]
		testkit.That(t, withoutForm[row[1]] != "", "the guide says that %s has no form", row[1])
	}
	for call, reason := range withoutForm {
		testkit.That(t, named[call] != "" && strings.Contains(reason, named[call]), "the guide has for %s the command %q, and the reason is: %s", call, named[call], reason)
	}
}
