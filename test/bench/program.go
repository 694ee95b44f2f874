package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// buildProgram builds the real thing into a folder.
func buildProgram(ctx context.Context, dir string) (string, error) {
	name := filepath.Join(dir, "eventyard")
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", name, "github.com/eventyard/eventyard/cmd/eventyard")
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build eventyard: %w: %s", err, text)
	}
	return filepath.Abs(name)
}

// program is a running eventyard serve.
type program struct {
	cmd    *exec.Cmd
	url    string
	stderr bytes.Buffer
	rest   chan struct{} // closed when its output has ended
}

// startProgram returns when the yard says that it is ready. Of a flag that is given twice the last counts.
func startProgram(ctx context.Context, name, data string, flags ...string) (*program, error) {
	return launch(ctx, name, filepath.Dir(data), append([]string{"--data", data, "--sync", "always", "--amqp", "off"}, flags...)...)
}

// launch starts a yard with an HTTP listener, in a folder where no configuration file lies, and
// returns when it says that it is ready.
func launch(ctx context.Context, name, dir string, args ...string) (*program, error) {
	p := &program{rest: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, name, append([]string{"serve", "--http", "127.0.0.1:0",
		"--amqps", "off", "--https", "off", "--kafka", "off", "--kafkas", "off"}, args...)...)
	p.cmd.Dir = dir
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(stdout)
	p.url, err = findAddress(lines, "http")
	go func() {
		defer close(p.rest)
		_, _ = io.Copy(io.Discard, lines)
	}()
	if err == nil {
		err = p.awaitReady(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// findAddress reads what serve prints up to the address of a listener.
func findAddress(lines *bufio.Reader, listener string) (string, error) {
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return "", fmt.Errorf("eventyard serve ended without an address: %w", err)
		}
		if f := strings.Fields(line); len(f) == 2 && f[0] == listener {
			return f[1], nil
		}
	}
}

func (p *program) awaitReady(ctx context.Context) error {
	for {
		answer, err := p.get(ctx, "/readyz")
		if err == nil {
			return answer.Body.Close()
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// askBounds makes the yard open all partitions of the hub.
func (p *program) askBounds(ctx context.Context) error {
	answer, err := p.get(ctx, "/api/v1/hubs/"+hubName+"/partitions")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var list struct {
		Partitions []struct {
			Last int64 `json:"last"`
		} `json:"partitions"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
		return fmt.Errorf("read partitions: %w", err)
	}
	if len(list.Partitions) != partitions {
		return fmt.Errorf("the yard knows %d partitions, want %d", len(list.Partitions), partitions)
	}
	for i, q := range list.Partitions {
		if q.Last < 0 {
			return fmt.Errorf("partition %d is empty", i)
		}
	}
	return nil
}

func (p *program) get(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(p.url, "/")+path, nil)
	if err != nil {
		return nil, err
	}
	request.SetBasicAuth(auth.RootPolicy, auth.DevelopmentKey)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s", path, answer.Status), answer.Body.Close())
	}
	return answer, nil
}

// stop ends the program as an operator would, and waits for it.
func (p *program) stop() error {
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		_ = p.cmd.Process.Kill()
	}
	<-p.rest
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("eventyard serve: %w: %s", err, p.stderr.String())
	}
	return nil
}
