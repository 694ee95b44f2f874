//go:build linux

package interop

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

const httpGuide = "../../docs/guides/functions-http.md"

// promptly is what "at once" means on a busy machine.
const promptly = 5 * time.Second

// guideProgram is a program that the guide shows, to the letter.
func guideProgram(t *testing.T, name string) string {
	t.Helper()
	found := regexp.MustCompile("(?s)<!-- program: " + regexp.QuoteMeta(name) + " -->\n```\\w+\n(.*?)\n```\n").FindStringSubmatch(recipeFile(t, httpGuide))
	if found == nil {
		t.Fatalf("%s shows no program %s", httpGuide, name)
	}
	return found[1] + "\n"
}

// guideCommands are the commands that the guide shows below the programs, without their comments.
func guideCommands(t *testing.T) (lines []string) {
	t.Helper()
	found := regexp.MustCompile("(?s)With a yard running.*?\n```sh\n(.*?)\n```\n").FindStringSubmatch(recipeFile(t, httpGuide))
	if found == nil {
		t.Fatalf("%s shows no commands", httpGuide)
	}
	for line := range strings.SplitSeq(found[1], "\n") {
		command, _, _ := strings.Cut(line, " #")
		lines = append(lines, strings.TrimSpace(command))
	}
	return lines
}

// httpFunction is one of the guide's programs at work.
type httpFunction struct {
	*process
	port string
}

// handled is what the program printed of an event.
type handled struct {
	ID      string
	Attempt int
	Data    struct {
		N   int
		Bad bool
	}
}

func startFunction(t *testing.T, interpreter, pkg, name string) *httpFunction {
	t.Helper()
	if err := parts.Need(interpreter, pkg); err != nil {
		parts.Missing(t, "%v", err)
	}
	file := filepath.Join(t.TempDir(), name)
	testkit.Must(t, os.WriteFile(file, []byte(guideProgram(t, name)), 0o600))
	f := &httpFunction{port: ownPort(t)}
	cmd := exec.Command(interpreter, file)
	cmd.Env = environment(map[string]string{"PORT": f.port})
	f.process = launch(t, cmd)
	eventually(t, func() string {
		conn, err := net.Dial("tcp", "localhost:"+f.port)
		if err != nil {
			return fmt.Sprintf("%v\n%s", err, f.out)
		}
		conn.Close()
		return ""
	})
	return f
}

var handledLine = regexp.MustCompile(`(?m)^(\S+) attempt (\d+) (.*)$`)

// handled is all that the program printed so far.
func (f *httpFunction) handled(t *testing.T) (all []handled) {
	t.Helper()
	for _, m := range handledLine.FindAllStringSubmatch(f.out.String(), -1) {
		h := handled{ID: m[1]}
		h.Attempt, _ = strconv.Atoi(m[2])
		testkit.Must(t, json.Unmarshal([]byte(m[3]), &h.Data), "it printed %q", m[0])
		all = append(all, h)
	}
	return all
}

// eventuallyHandled waits until the program has printed so many lines about an event, and gives
// them.
func (f *httpFunction) eventuallyHandled(t *testing.T, n, times int) (lines []handled) {
	t.Helper()
	eventually(t, func() string {
		lines = slices.DeleteFunc(f.handled(t), func(h handled) bool { return h.Data.N != n })
		if len(lines) >= times {
			return ""
		}
		return fmt.Sprintf("event %d was handled %d times, want %d:\n%s", n, len(lines), times, f.out)
	})
	return lines
}

// shell runs a command of the guide as a user would, but for the port.
func (y *yard) shell(t *testing.T, f *httpFunction, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(command, "localhost:5000", "localhost:"+f.port))
	cmd.Env = environment(map[string]string{
		"PATH":             filepath.Dir(checkedBuild.binary(t)) + string(os.PathListSeparator) + os.Getenv("PATH"),
		"EVENTYARD_SERVER": "http://" + y.hostPort(t, "http"), "GORACE": "atexit_sleep_ms=0",
	})
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// TestHTTPFunctions runs the programs and the commands of the guide, to the letter: events arrive
// at once and in order, and the one that the program refuses ends in the poison hub, with its
// reason. // F1, F3, F4
func TestHTTPFunctions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ interpreter, pkg, program string }{{"python3", "python3", "function.py"}, {"node", "nodejs", "function.mjs"}} {
		t.Run(c.program, func(t *testing.T) {
			t.Parallel()
			f := startFunction(t, c.interpreter, c.pkg, c.program)
			y := startYard(t, layout{})
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the program said:\n%s", parts.Tail(f.out.String(), 5_000))
				}
			})
			followGuide(t, y, f)
			keepOrder(t, y, f)
		})
	}
}

// usualAttempts is how often an event is tried where nothing was said of retries.
const usualAttempts = 6

// followGuide runs the commands, and looks after each whether it did what the guide says.
func followGuide(t *testing.T, y *yard, f *httpFunction) {
	t.Helper()
	done := 0
	for _, command := range guideCommands(t) {
		switch {
		case strings.HasPrefix(command, "eventyard poison"):
			eventually(t, func() string { return y.poisonIs(t, 1) })
		case strings.Contains(command, "function show"):
			f.eventuallyHandled(t, 2, usualAttempts)
		}
		began := time.Now()
		out := y.shell(t, f, command)
		done++
		switch {
		case strings.Contains(command, `'{"n":1}'`):
			lines := f.eventuallyHandled(t, 1, 1)
			took := time.Since(began)
			if took > promptly || lines[0].Attempt != 1 {
				t.Errorf("it arrived after %v: %+v", took, lines)
			}
			t.Logf("proved: an event that is sent is handled, %v after the command began", took.Round(time.Millisecond))
		case strings.Contains(command, "poison list"):
			wantPoisoned(t, y, f, out)
		case strings.Contains(command, "poison redrive"):
			f.eventuallyHandled(t, 2, 2*usualAttempts)
			t.Log("proved: an event that was put away is redriven, and tried anew")
		}
	}
	testkit.Equal(t, done, 7, "the guide")
}

// poisonIs complains unless so many events are in the poison hub.
func (y *yard) poisonIs(t *testing.T, count int) string {
	t.Helper()
	if got := ask[[]admin.PoisonEvent](t, y, "poison", "list", "billing-poison"); len(got) != count {
		return fmt.Sprintf("%d events were put away, want %d: %+v", len(got), count, got)
	}
	return ""
}

// wantPoisoned wants the bad event in the list and in the poison hub, with its reason, after all
// its attempts.
func wantPoisoned(t *testing.T, y *yard, f *httpFunction, list string) {
	t.Helper()
	letter := ask[[]admin.PoisonEvent](t, y, "poison", "list", "billing-poison")[0]
	if !strings.Contains(list, letter.ID) || !strings.Contains(list, "this order is bad") || letter.Reason != "this order is bad" || letter.Attempts != usualAttempts {
		t.Errorf("the poison event is %+v, and listed as\n%s", letter, list)
	}
	lines := f.eventuallyHandled(t, 2, usualAttempts)
	for i, h := range lines {
		if h.ID != letter.ID || h.Attempt != i+1 {
			t.Errorf("attempt %d was %+v, and the poison event is %s", i+1, h, letter.ID)
		}
	}
	t.Log("proved: an event that fails is tried six times under one id, and put away with its reason")
}

// keepOrder sends events of one key, one of them bad, and wants the others handled once each, in
// order, those behind the bad one after its last attempt.
func keepOrder(t *testing.T, y *yard, f *httpFunction) {
	t.Helper()
	const first, bad, last = 101, 106, 130
	args := []string{"send", "orders", "--key", "customer-42"}
	var want []int
	for n := first; n <= last; n++ {
		if n == bad {
			args, want = append(args, fmt.Sprintf(`{"n":%d,"bad":true}`, n)), append(want, slices.Repeat([]int{n}, usualAttempts)...)
			continue
		}
		args, want = append(args, fmt.Sprintf(`{"n":%d}`, n)), append(want, n)
	}
	y.do(t, args...)
	f.eventuallyHandled(t, last, 1)
	var got []int
	for _, h := range f.handled(t) {
		if h.Data.N >= first {
			got = append(got, h.Data.N)
		}
	}
	testkit.Slices(t, got, want, "events were handled in the order")
	eventually(t, func() string {
		shown := ask[admin.Function](t, y, "function", "show", "billing")
		if shown.State == "running" && shown.Lag != nil && *shown.Lag == 0 {
			return ""
		}
		return fmt.Sprintf("the function is %+v", shown)
	})
	t.Log("proved: events behind one that fails wait for it, and order holds")
}
