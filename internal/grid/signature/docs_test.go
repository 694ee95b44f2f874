package signature_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// request is one that a receiver is to judge.
type request struct {
	What    string
	Headers map[string]string
	Body    string
	Good    bool
}

// V7, G12: the programs of the guide take what is signed, and nothing else.
func TestTheGuideVerifiesSignatures(t *testing.T) {
	key, other := testkit.Value(signature.New(signature.HMAC))(t), testkit.Value(signature.New(signature.HMAC))(t)
	const body = `[{"total":42,"name":"Käse"}]`
	signed := func(at time.Time, keys ...signature.Key) map[string]string {
		header := http.Header{}
		testkit.Value(signature.NewSigner(keys))(t).Sign(header, "b2c1", at, []byte(body))
		all := map[string]string{}
		for name := range header {
			all[strings.ToLower(name)] = header.Get(name)
		}
		return all
	}
	now := time.Now()
	cases := testkit.Value(json.Marshal(struct {
		Key      string
		Requests []request
	}{key.Text, []request{
		{"signed", signed(now, key), body, true},
		{"signed with two keys", signed(now, other, key), body, true},
		{"signed with another key", signed(now, other), body, false},
		{"changed", signed(now, key), body + " ", false},
		{"old", signed(now.Add(-time.Hour), key), body, false},
		{"not signed", map[string]string{}, body, false},
	}}))(t)
	for name, program := range map[string]struct{ interpreter, pkg, file, judge string }{
		"Python": {"python3", "python3", "signature.py", `
import json, sys
given = json.load(sys.stdin)
for r in given["Requests"]:
    if verify(given["Key"], r["Headers"], r["Body"].encode()) != r["Good"]:
        print(r["What"])
`},
		"JavaScript": {"node", "nodejs", "signature.js", `
const given = JSON.parse(require("node:fs").readFileSync(0));
for (const r of given.Requests) {
  if (exports.verify(given.Key, r.Headers, Buffer.from(r.Body)) !== r.Good) console.log(r.What);
}
`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := parts.Need(program.interpreter, program.pkg); err != nil {
				parts.Missing(t, "%v", err)
			}
			file := filepath.Join(t.TempDir(), program.file)
			testkit.Must(t, os.WriteFile(file, []byte(guideProgram(t, program.file)+program.judge), 0o600))
			cmd := exec.CommandContext(t.Context(), program.interpreter, file)
			cmd.Stdin = bytes.NewReader(cases)
			out, err := cmd.CombinedOutput()
			testkit.Must(t, err, "it says %s", out)
			testkit.Equal(t, string(out), "", "judged wrongly")
		})
	}
}

// guideProgram is the block of the guide that begins with the name of a file.
func guideProgram(t *testing.T, name string) string {
	t.Helper()
	page := testkit.Value(os.ReadFile("../../../docs/guides/grid.md"))(t)
	block := regexp.MustCompile("(?s)```[a-z]+\n(?:#|//) " + regexp.QuoteMeta(name) + "\n(.*?)```").FindSubmatch(page)
	testkit.MustThat(t, block != nil, "the guide has no %s", name)
	return string(block[1])
}
