//go:build linux

package reliable

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
)

// yard is the real program with a folder of its own. It may be killed and started again: clients
// find it where it was.
type yard struct {
	binary, data string
	flags        []string // of serve, besides the usual ones
	process      *process
	http, amqp   string // URLs of the listeners
	connection   string
	client       *hub.Client
}

// startYard starts one with settings in the form of eventyard.yaml; watched: with the race
// detector.
func startYard(t *testing.T, watched bool, settings string) *yard {
	t.Helper()
	y := &yard{data: t.TempDir()}
	find := program
	if watched {
		find = racing
	}
	binary, err := find()
	testkit.Must(t, err)
	y.binary = binary
	if settings != "" {
		file := filepath.Join(t.TempDir(), "eventyard.yaml")
		testkit.Must(t, os.WriteFile(file, []byte(settings), 0o600))
		y.flags = []string{"--config", file}
	}
	y.start(t)
	y.connection = strings.TrimSpace(y.cli(t, "connection-string"))
	if y.client, err = hub.Dial(t.Context(), y.connection, hub.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { y.client.Close() })
	return y
}

// start runs the yard, on the addresses that it had, and waits until it says where it listens.
func (y *yard) start(t *testing.T) {
	t.Helper()
	until(t, "a yard that starts", func() (bool, string) { // the ports may be taken for a moment
		args := append([]string{"serve", "--data", y.data, "--http", address(y.http), "--amqp", address(y.amqp), "--amqps", "off", "--kafka", "off", "--kafkas", "off", "--https", "off"}, y.flags...)
		y.process = start(t, "the yard", exec.Command(y.binary, args...))
		y.listen(bufio.NewScanner(y.process.out))
		if y.process.alive() {
			go io.Copy(io.Discard, y.process.out)
			return true, ""
		}
		return false, y.process.complaints.String()
	})
}

// listen reads where the listeners are until the yard says no more about it.
func (y *yard) listen(lines *bufio.Scanner) {
	for lines.Scan() {
		switch fields := strings.Fields(lines.Text()); {
		case len(fields) == 2 && fields[0] == "http":
			y.http = fields[1]
		case len(fields) == 2 && fields[0] == "amqp":
			y.amqp = fields[1]
		case lines.Text() == "Ctrl-C stops it.":
			return
		}
	}
	<-y.process.gone
}

// address is that of a listener's URL; any free one where there is none.
func address(listener string) string {
	if u, err := url.Parse(listener); err == nil && u.Host != "" {
		return u.Host
	}
	return "127.0.0.1:0"
}

// killAndStart is kill -9 and a start on the same folder.
func (y *yard) killAndStart(t *testing.T) {
	t.Helper()
	y.process.kill(t)
	y.start(t)
}

// cli runs the program as an operator does and gives what it prints.
func (y *yard) cli(t *testing.T, args ...string) string {
	t.Helper()
	out, err := y.try(t, args...)
	testkit.Must(t, err)
	return out
}

func (y *yard) try(t *testing.T, args ...string) (string, error) {
	t.Helper()
	binary, err := program()
	testkit.Must(t, err)
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "EVENTYARD_SERVER="+y.http)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("eventyard %s: %w\n%s%s", strings.Join(args, " "), err, out, complaints.String())
	}
	return string(out), nil
}

// ask runs a command that prints JSON.
func (y *yard) ask(t *testing.T, into any, args ...string) {
	t.Helper()
	text := y.cli(t, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("eventyard %s: %v\n%s", strings.Join(args, " "), err, text)
	}
}

// position is how far a group is, as an operator's program reads it.
type position struct {
	Partitions []struct {
		Partition  string `json:"partition"`
		Owner      string `json:"owner"`
		Last       int64  `json:"last"`
		Lag        int64  `json:"lagEvents"`
		Checkpoint *struct {
			Sequence int64 `json:"sequence"`
		} `json:"checkpoint"`
	} `json:"partitions"`
}

func (y *yard) position(t *testing.T, hub, group string) position {
	t.Helper()
	var p position
	y.ask(t, &p, "group", "show", hub, group)
	return p
}

// checkpoints are the last events done, by partition; -1: none.
func (p position) checkpoints() map[string]int64 {
	all := map[string]int64{}
	for _, one := range p.Partitions {
		all[one.Partition] = -1
		if one.Checkpoint != nil {
			all[one.Partition] = one.Checkpoint.Sequence
		}
	}
	return all
}
