// Command generate writes an archive for package upgrade with an older program, and what the
// archive has to yield. The package comment of test/upgrade says when and how.
package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/eventyard/eventyard/test/upgrade"
)

func main() {
	binary := flag.String("binary", "", "the older program")
	commit := flag.String("commit", "", "the commit that it was built from")
	name := flag.String("name", "", "the archive's name")
	kill := flag.Bool("kill", false, "end the yard with SIGKILL instead of SIGTERM")
	onServer := flag.Bool("server", false, "have the yard be a node on a NATS server, and pack what that stores, too")
	out := flag.String("out", "test/upgrade/testdata", "the folder for the archive")
	flag.Parse()
	if *binary == "" || *commit == "" || *name == "" || *kill && *onServer {
		flag.Usage()
		os.Exit(2)
	}
	if err := generate(context.Background(), *binary, *commit, filepath.Join(*out, *name), *kill, *onServer); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func generate(ctx context.Context, binary, commit, base string, kill, onServer bool) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	work, err := os.MkdirTemp("", "upgrade")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	m := &upgrade.Manifest{Commit: commit, Made: time.Now().UTC(), Killed: kill, OnServer: onServer, Answers: map[string]json.RawMessage{}}
	data := filepath.Join(work, "data")
	if onServer {
		if err := newKey(data); err != nil {
			return err
		}
	}
	if err := fill(ctx, binary, data, m, kill); err != nil {
		return fmt.Errorf("fill the yard: %w", err)
	}
	twin := filepath.Join(work, "copy")
	if err := os.CopyFS(twin, os.DirFS(data)); err != nil {
		return err
	}
	// A yard reads no secret key that others can read, and a copy has other rights.
	if err := os.Chmod(filepath.Join(twin, "secret.key"), 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := record(ctx, binary, twin, m); err != nil {
		return fmt.Errorf("record its answers: %w", err)
	}
	if err := pack(data, base+".tar.gz"); err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(base+".json", append(text, '\n'), 0o644)
}

// fill lives the yard's life: twice, for dead letters are first written to their folder at once and
// then gathered.
func fill(ctx context.Context, binary, data string, m *upgrade.Manifest, kill bool) error {
	world, err := newWorld(ctx, m)
	if err != nil {
		return err
	}
	defer world.close()
	y, err := start(ctx, binary, data, m.OnServer, "--grid-dead-delay", "0s")
	if err != nil {
		return err
	}
	defer y.kill()
	if err := world.first(y.Yard); err != nil {
		return err
	}
	if err := y.stop(); err != nil {
		return err
	}
	if m.OnServer {
		if err := storeAgain(ctx, data); err != nil {
			return fmt.Errorf("store entries again: %w", err)
		}
	}
	y, err = start(ctx, binary, data, m.OnServer, "--grid-dead-delay", "1h")
	if err != nil {
		return err
	}
	defer y.kill()
	if err := world.second(y.Yard); err != nil {
		return err
	}
	if kill {
		y.kill()
		return nil
	}
	return y.stop()
}

// record asks the old program what it finds in a folder. It does not say at once what functions are
// about.
func record(ctx context.Context, binary, data string, m *upgrade.Manifest) error {
	y, err := start(ctx, binary, data, m.OnServer, "--grid-dead-delay", "1h")
	if err != nil {
		return err
	}
	defer y.kill()
	for _, path := range paths(m) {
		if m.Answers[path], err = y.Recall(ctx, path); err != nil {
			return err
		}
	}
	return y.stop()
}

// yard is the older program, running.
type yard struct {
	upgrade.Yard
	process *exec.Cmd
	ended   chan error
	servers *server.Server // nil: it has none
}

func start(ctx context.Context, binary, data string, onServer bool, flags ...string) (started *yard, err error) {
	y := &yard{ended: make(chan error, 1)}
	if onServer {
		if y.servers, err = serve(data); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				y.leaveServers()
			}
		}()
		flags = append(flags, "--engine", y.servers.ClientURL(), "--yard", upgrade.YardName, "--replicas", "1", "--node", "node0",
			"--secrets-key-file", filepath.Join(data, upgrade.SecretKey))
	}
	process := exec.CommandContext(ctx, binary, append([]string{
		"serve", "--data", data, "--http", "127.0.0.1:0", "--amqp", "127.0.0.1:0", "--amqps", "off", "--https", "off",
		"--grid-topic-retention", "365d", "--grid-dead-keep", "3650d", "--segment-bytes", "64KiB", "--log-level", "error",
	}, flags...)...)
	// Not by flags: older programs than have these settings only warn of the variables.
	process.Env = append(os.Environ(), "EVENTYARD_KAFKA=off", "EVENTYARD_KAFKAS=off")
	stdout, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		return nil, err
	}
	y.process = process
	for lines := bufio.NewScanner(stdout); (y.HTTP == "" || y.AMQP == "") && lines.Scan(); {
		switch fields := strings.Fields(lines.Text()); {
		case len(fields) != 2:
		case fields[0] == "http":
			y.HTTP = fields[1]
		case fields[0] == "amqp":
			y.AMQP = fields[1]
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdout)
		y.ended <- process.Wait()
	}()
	if y.HTTP == "" || y.AMQP == "" {
		y.kill()
		return nil, errors.New("the yard did not start")
	}
	return y, nil
}

func (y *yard) stop() error {
	if err := y.process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err := <-y.ended
	y.ended <- err
	y.leaveServers()
	return err
}

func (y *yard) kill() {
	_ = y.process.Process.Kill()
	y.ended <- <-y.ended
	y.leaveServers()
}

func (y *yard) leaveServers() {
	if y.servers != nil {
		y.servers.Shutdown()
		y.servers.WaitForShutdown()
	}
}

// pack writes a folder as an archive. Zeros that were written ahead cost next to nothing.
func pack(dir, archive string) (err error) {
	file, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	zip, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err != nil {
		return err
	}
	list := tar.NewWriter(zip)
	if err := list.AddFS(withoutLock{os.DirFS(dir)}); err != nil {
		return err
	}
	return errors.Join(list.Close(), zip.Close())
}

// withoutLock leaves out the file that a running yard holds: a killed one leaves its process id
// there.
type withoutLock struct{ fs.FS }

func (w withoutLock) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(w.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "LOCK" }), err
}

// paths are those whose answers tell what is in a folder.
func paths(m *upgrade.Manifest) []string {
	list := []string{"/api/v1/hubs", "/api/v1/policies", "/api/v1/circuits"}
	for _, hub := range []string{"orders", "trimmed", "copies", "stuck-poison", "picky-poison"} {
		base := "/api/v1/hubs/" + hub
		list = append(list, base, base+"/groups", base+"/policies", base+"/partitions", base+"/events?from=earliest")
	}
	for _, g := range m.Groups {
		base := "/api/v1/hubs/" + g.Hub + "/groups/" + g.Name
		list = append(list, base, base+"/checkpoints", base+"/ownership")
	}
	list = append(list, "/api/v1/hubs/work/groups/stuck/checkpoints", "/api/v1/hubs/work/groups/held/checkpoints")
	for _, f := range m.Functions {
		list = append(list, "/api/v1/functions/"+f.Name, "/api/v1/circuits/"+f.Name, "/api/v1/hubs/"+f.Poison+"/poison")
	}
	list = append(list, "/api/v1/topics/"+m.Topic, "/api/v1/topics/clouds", "/api/v1/subscriptions/detailed?topic=clouds",
		"/api/v1/subscriptions/to-hub", "/api/v1/subscriptions/"+m.PullFrom)
	for _, s := range slices.Sorted(maps.Keys(m.Owed)) {
		list = append(list, "/api/v1/subscriptions/"+s)
	}
	for _, s := range []string{"refused", "filed"} {
		list = append(list, "/api/v1/subscriptions/"+s+"/dead", "/api/v1/subscriptions/"+s+"/dead/0")
	}
	return list
}

// post asks for something to be made.
func post(ctx context.Context, y upgrade.Yard, path string, body any) ([]byte, error) {
	return y.Do(ctx, http.MethodPost, path, body)
}
