package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// These tests run commands in this process, so that they can talk to them while they run.

// command is a command under way.
type command struct {
	t      *testing.T
	stdin  *io.PipeWriter
	stdout *bufio.Reader
	stderr *buffer
	cancel context.CancelFunc
	ended  chan error

	listeners map[string]string // of a yard: the address of each
}

// buffer is written by a command and read by its test.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func launch(t *testing.T, args ...string) *command {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	c := &command{t: t, stdin: stdin, stdout: bufio.NewReader(stdout), stderr: &buffer{}, cancel: cancel, ended: make(chan error, 1), listeners: map[string]string{}}
	go func() {
		err := run(ctx, args, in, out, c.stderr)
		_ = out.Close()
		c.ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		_ = stdin.Close()
		_ = stdout.Close()
	})
	return c
}

// line waits for the next line that the command prints.
func (c *command) line() string {
	c.t.Helper()
	text, err := c.stdout.ReadString('\n')
	if err != nil {
		c.t.Fatalf("no line came: %v; %v; %s", err, <-c.ended, c.stderr)
	}
	return strings.TrimSuffix(text, "\n")
}

func (c *command) rest() (string, error) {
	c.t.Helper()
	text, err := io.ReadAll(c.stdout)
	testkit.Must(c.t, err)
	return string(text), <-c.ended
}

// serving starts a yard and waits until it is ready.
func serving(t *testing.T, data, address string, flags ...string) (*command, string) {
	t.Helper()
	usual := []string{
		"serve", "--data", data, "--http", address, "--amqp", "off", "--amqps", "off", "--kafka", "off", "--kafkas", "off", "--https", "off",
		"--sync", "os", "--log-level", "error",
	}
	yard := launch(t, append(usual, flags...)...)
	url := ""
	for {
		line := yard.line()
		if m := ready.FindStringSubmatch(line); m != nil {
			url = m[1]
		}
		if m := openListener.FindStringSubmatch(line); m != nil {
			yard.listeners[m[1]] = m[2]
		}
		if line == readyEnd {
			return yard, url
		}
	}
}

func (c *command) stopYard() {
	c.t.Helper()
	c.cancel()
	if said, err := c.rest(); err != nil || said != "stopped\n" {
		c.t.Errorf("the yard stopped with %q, %v; %s", said, err, c.stderr)
	}
}

func do(t *testing.T, args ...string) string {
	t.Helper()
	said, err := launch(t, args...).rest()
	testkit.Must(t, err, "%q", args)
	return said
}

// wants reads a line of a tail, which ends with an event's text.
func (c *command) wants(text string) {
	c.t.Helper()
	if line := c.line(); !strings.HasSuffix(line, "  "+text) {
		c.t.Errorf("line is %q, want %s", line, text)
	}
}

// types writes a line to a command.
func (c *command) types(text string) {
	c.t.Helper()
	_, err := io.WriteString(c.stdin, text+"\n")
	testkit.Must(c.t, err)
}

// following is a yard with a hub, a tail of it, and somebody who is about to type events.
func following(t *testing.T) (yard, tail, sending *command, url string) {
	t.Helper()
	yard, url = serving(t, t.TempDir(), "127.0.0.1:0")
	do(t, "hub", "create", "h", "--partitions", "1", "--server", url)
	return yard, launch(t, "read", "h", "--follow", "--server", url), launch(t, "send", "h", "--server", url), url
}

// H4: a tail outlives its yard.
func TestATailComesBackAfterARestart(t *testing.T) {
	data := t.TempDir()
	address, err := new(ports).free()
	testkit.Must(t, err)
	yard, url := serving(t, data, address)
	do(t, "hub", "create", "h", "--partitions", "2", "--server", url)
	do(t, "send", "h", "before", "--server", url)
	tail := launch(t, "read", "h", "--follow", "--server", url)
	tail.wants("before")
	yard.stopYard()
	yard, _ = serving(t, data, address)
	for _, text := range []string{"one", "two", "three"} {
		do(t, "send", "h", text, "--server", url)
		tail.wants(text)
	}
	if !strings.Contains(tail.stderr.String(), "waiting for the yard") || !strings.Contains(tail.stderr.String(), "going on where it was") {
		t.Errorf("the tail said %q", tail.stderr)
	}
	tail.cancel()
	if rest, err := tail.rest(); rest != "" || err != nil {
		t.Errorf("an interrupt is how following ends: %q, %v", rest, err)
	}
	yard.stopYard()
}

// A tail whose key is good no more says so, and waits for nothing.
func TestATailEndsWithItsKey(t *testing.T) {
	yard, url := serving(t, t.TempDir(), "127.0.0.1:0")
	do(t, "hub", "create", "h", "--partitions", "1", "--server", url)
	do(t, "send", "h", "before", "--server", url)
	var made struct{ PrimaryKey string }
	if err := json.Unmarshal([]byte(do(t, "policy", "create", "p", "--rights", "listen", "-o", "json", "--server", url)), &made); err != nil {
		t.Fatal(err)
	}
	own := auth.ConnectionString{Endpoint: "sb://127.0.0.1/", Policy: "p", Key: made.PrimaryKey}
	tail := launch(t, "read", "h", "--follow", "--server", url, "--connection-string", own.String())
	tail.wants("before")
	do(t, "policy", "regenerate", "p", "--yes", "--server", url)
	if _, err := tail.rest(); err == nil || !strings.Contains(err.Error(), "was replaced, or its policy or hub deleted") {
		t.Errorf("the tail ended with %v", err)
	}
	if said := tail.stderr.String(); strings.Contains(said, "waiting for the yard") {
		t.Errorf("the tail said %q", said)
	}
	yard.stopYard()
}

// Who follows from latest misses nothing, even if nothing had come before the break.
func TestATailFromLatestMissesNothing(t *testing.T) {
	data := t.TempDir()
	address, err := new(ports).free()
	testkit.Must(t, err)
	yard, url := serving(t, data, address)
	do(t, "hub", "create", "h", "--partitions", "1", "--server", url)
	do(t, "send", "h", "old", "--server", url)
	tail := launch(t, "read", "h", "--follow", "--from", "latest", "--server", url)
	awaitTail(t, url)
	yard.stopYard()
	yard, _ = serving(t, data, address)
	do(t, "send", "h", "new", "--server", url)
	tail.wants("new")
	yard.stopYard()
}

// awaitTail returns once the yard counts a tail.
func awaitTail(t *testing.T, url string) {
	t.Helper()
	for {
		request, err := http.NewRequest("GET", url+"/metrics", nil)
		testkit.Must(t, err)
		request.SetBasicAuth(auth.RootPolicy, auth.DevelopmentKey)
		response, err := http.DefaultClient.Do(request)
		testkit.Must(t, err)
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		testkit.Must(t, err)
		if bytes.Contains(body, []byte("eventyard_http_tail_readers 1")) {
			return
		}
	}
}

// H4: what is damaged is told, what is behind it is read, and the end is not a success.
func TestReadGoesOnBehindDamage(t *testing.T) {
	data := t.TempDir()
	yard, url := serving(t, data, "127.0.0.1:0", "--sync", "always")
	do(t, "hub", "create", "h", "--partitions", "1", "--server", url)
	for _, text := range []string{"one", "two", "three"} {
		do(t, "send", "h", text, "--server", url)
	}
	yard.stopYard()
	damage(t, data, "two")
	yard, url = serving(t, data, "127.0.0.1:0", "--sync", "always")
	reading := launch(t, "read", "h", "-o", "json", "--server", url)
	said, err := reading.rest()
	if strings.Count(said, "\n") != 2 || !strings.Contains(said, `"three"`) || strings.Contains(said, "problem") {
		t.Errorf("read %s", said)
	}
	if code := report(io.Discard, err); code != exitFailure || !strings.Contains(reading.stderr.String(), "skipped:") {
		t.Errorf("ended with %v, having said %q", err, reading.stderr)
	}
	yard.stopYard()
}

// damage changes a bit of a body where it is stored.
func damage(t *testing.T, data, body string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(data, "log", "h-*", "0", "*.seg"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("segments: %q, %v", segments, err)
	}
	content, err := os.ReadFile(segments[0])
	testkit.Must(t, err)
	at := bytes.Index(content, []byte(body))
	if at < 0 {
		t.Fatalf("%q is not stored", body)
	}
	content[at] ^= 1
	testkit.Must(t, os.WriteFile(segments[0], content, 0o600))
}

// A line typed by hand is stored before the next one is typed.
func TestALineIsSentAtOnce(t *testing.T) {
	yard, tail, sending, _ := following(t)
	for _, text := range []string{"one", "two"} {
		sending.types(text)
		tail.wants(text)
	}
	sending.stdin.Close()
	if said, err := sending.rest(); err != nil || !strings.HasPrefix(said, "sent 2 events to h") {
		t.Errorf("send said %q, %v", said, err)
	}
	yard.stopYard()
}

func TestAnInterruptedSendSaysHowFarItCame(t *testing.T) {
	yard, tail, sending, url := following(t)
	sending.types("one")
	tail.line()
	sending.cancel()
	if said, err := sending.rest(); !errors.Is(err, errInterrupted) || !strings.HasPrefix(said, "sent 1 event to h") {
		t.Errorf("send said %q, %v", said, err)
	}
	load := launch(t, "send", "h", "--size", "10", "--rate", "1000", "--server", url)
	tail.line()
	load.cancel()
	if said, err := load.rest(); err != nil || !strings.HasPrefix(said, "sent ") {
		t.Errorf("endless load said %q, %v", said, err)
	}
	yard.stopYard()
}

func TestASendThatFailsHalfWay(t *testing.T) {
	yard, tail, sending, _ := following(t)
	sending.types("one")
	tail.line()
	yard.stopYard()
	sending.types("two")
	said, err := sending.rest()
	if err == nil || !strings.HasPrefix(said, "sent 1 event to h") || !strings.HasPrefix(err.Error(), "event 2") {
		t.Errorf("send said %q, %v", said, err)
	}
}

// A hub that goes away under a command is named, and not the log that it was.
func TestAHubIsDeletedUnderItsUsers(t *testing.T) {
	yard, tail, sending, url := following(t)
	sending.types("one")
	tail.line()
	do(t, "hub", "delete", "h", "--yes", "--server", url)
	if _, err := tail.rest(); err == nil || err.Error() != `hub "h" was deleted` {
		t.Errorf("the tail ended with %v", err)
	}
	sending.types("two")
	if _, err := sending.rest(); err == nil || err.Error() != `event 2: hub "h" was deleted; nothing behind that was sent` {
		t.Errorf("the send ended with %v", err)
	}
	yard.stopYard()
}

// A yard that is killed while it stores leaves doubt, and the advice is about that.
func TestAYardGoesAwayUnderASend(t *testing.T) {
	dying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}))
	defer dying.Close()
	_, err := launch(t, "send", "h", "one", "two", "--server", dying.URL).rest()
	var said bytes.Buffer
	if code := report(&said, err); code != exitFailure || !strings.Contains(said.String(), "events 1 to 2 may or may not be stored") ||
		!strings.Contains(said.String(), "the yard went away: it was stopped or killed") {
		t.Errorf("said %q", said.String())
	}
}

// The first signal lets requests finish, the second does not wait for them.
func TestASecondSignalEndsTheYardAtOnce(t *testing.T) {
	program, err := exec.LookPath("eventyard")
	testkit.Must(t, err)
	yard := exec.Command(program, "serve", "--data", t.TempDir(), "--grace", "1h", "--sync", "os")
	yard.Env = append(os.Environ(), anyPort...)
	out, err := yard.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, yard.Start())
	defer func() { _ = yard.Process.Kill() }()
	url := ""
	for lines := bufio.NewScanner(out); url == "" && lines.Scan(); {
		if m := ready.FindStringSubmatch(lines.Text()); m != nil {
			url = m[1]
		}
	}
	// A request that keeps the yard from stopping: its body never ends.
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	testkit.Must(t, err)
	defer conn.Close()
	token := base64.StdEncoding.EncodeToString([]byte(auth.RootPolicy + ":" + auth.DevelopmentKey))
	_, err = io.WriteString(conn, "POST /api/v1/hubs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic "+token+
		"\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n")
	testkit.Must(t, err)
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("answered %q, %v", line, err)
	}
	testkit.Must(t, yard.Process.Signal(syscall.SIGTERM))
	for { // until the listener is closed, the first signal has not been heard
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			break
		}
		_ = c.Close()
	}
	testkit.Must(t, yard.Process.Signal(syscall.SIGTERM))
	var ended *exec.ExitError
	if err := yard.Wait(); !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("the yard ended with %v", err)
	}
}

// V7: SIGHUP has a yard read the level of its log anew, and ends nothing; a configuration that is wrong
// by then is refused. Ctrl-C then stops it as ever, and ends another command with the code that says so.
func TestAHangupReloads(t *testing.T) {
	program, err := exec.LookPath("eventyard")
	testkit.Must(t, err)
	dir := t.TempDir()
	settings := func(text string) {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, "eventyard.yaml"), []byte(text), 0o600))
	}
	settings("log:\n  level: error\n")
	yard := exec.Command(program, "serve", "--config", filepath.Join(dir, "eventyard.yaml"), "--data", filepath.Join(dir, "data"), "--sync", "os")
	yard.Env = append(os.Environ(), anyPort...)
	out, log := testkit.Value(yard.StdoutPipe())(t), testkit.Value(yard.StderrPipe())(t)
	testkit.Must(t, yard.Start())
	defer func() { _ = yard.Process.Kill() }()
	said, url := bufio.NewScanner(out), ""
	for said.Scan() && said.Text() != readyEnd {
		if m := ready.FindStringSubmatch(said.Text()); m != nil {
			url = m[1]
		}
	}
	late := time.AfterFunc(time.Minute, func() { _ = yard.Process.Kill() })
	defer late.Stop()
	logged := bufio.NewScanner(log)
	wantLog := func(words string) {
		t.Helper()
		for logged.Scan() {
			if strings.Contains(logged.Text(), words) {
				return
			}
		}
		t.Fatalf("the log ends without %q: %v", words, logged.Err())
	}
	settings("log:\n  level: info\n")
	testkit.Must(t, yard.Process.Signal(syscall.SIGHUP))
	wantLog("reloaded")
	settings("log:\n  level: loud\n")
	testkit.Must(t, yard.Process.Signal(syscall.SIGHUP))
	wantLog("is wrong")

	for _, args := range [][]string{{"hub", "create", "h"}, {"send", "h", "one"}} {
		testkit.Must(t, testkit.Err(launch(t, append(args, "--server", url)...).rest()))
	}
	tail := exec.Command(program, "read", "h", "--follow", "--server", url)
	tailed := testkit.Value(tail.StdoutPipe())(t)
	testkit.Must(t, tail.Start())
	testkit.MustEqual(t, bufio.NewScanner(tailed).Scan(), true, "an event is read")
	testkit.Must(t, tail.Process.Signal(os.Interrupt))
	_ = tail.Wait()
	testkit.Equal(t, tail.ProcessState.ExitCode(), exitInterrupted, "code of an interrupted command")

	testkit.Must(t, yard.Process.Signal(os.Interrupt))
	go func() { _, _ = io.Copy(io.Discard, out) }()
	_, _ = io.Copy(io.Discard, log)
	testkit.Must(t, yard.Wait(), "the yard stops")
}

// V7: SIGHUP has a yard take a certificate that was renewed, for connections that come then; one that cannot
// be used is told in the log, and the one before goes on.
func TestAHangupReloadsTheCertificate(t *testing.T) {
	program := testkit.Value(exec.LookPath("eventyard"))(t)
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "yard.pem"), filepath.Join(dir, "yard.key")
	renew := func(serial int64) {
		private := testkit.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
		template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
		der := testkit.Value(x509.CreateCertificate(rand.Reader, template, template, private.Public(), private))(t)
		secret := testkit.Value(x509.MarshalPKCS8PrivateKey(private))(t)
		testkit.Must(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
		testkit.Must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	}
	renew(1)
	yard := exec.Command(program, "serve", "--data", filepath.Join(dir, "data"), "--sync", "os", "--tls-cert-file", cert, "--tls-key-file", key)
	yard.Dir, yard.Env = dir, append(os.Environ(), anyPort...)
	out, log := testkit.Value(yard.StdoutPipe())(t), testkit.Value(yard.StderrPipe())(t)
	testkit.Must(t, yard.Start())
	late := time.AfterFunc(time.Minute, func() { _ = yard.Process.Kill() })
	defer late.Stop()
	said, address := bufio.NewScanner(out), ""
	for said.Scan() && said.Text() != readyEnd {
		if _, at, is := strings.Cut(said.Text(), " https://"); is {
			address = at
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	shown := func() int64 { // the number of the certificate that a client is shown
		t.Helper()
		c := testkit.Value(tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}))(t)
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	logged := bufio.NewScanner(log)
	hangUp := func(words string) {
		t.Helper()
		testkit.Must(t, yard.Process.Signal(syscall.SIGHUP))
		for logged.Scan() {
			if strings.Contains(logged.Text(), words) {
				return
			}
		}
		t.Fatalf("the log ends without %q: %v", words, logged.Err())
	}
	testkit.Equal(t, shown(), 1)
	renew(2)
	hangUp("reloaded")
	testkit.Eventually(t, "the renewed certificate is shown", func() bool { return shown() == 2 })
	testkit.Must(t, os.WriteFile(cert, []byte("no certificate"), 0o600))
	hangUp("cannot be used")
	testkit.MustEqual(t, logged.Scan(), true, "a line about what was reloaded")
	testkit.That(t, strings.Contains(logged.Text(), "reloaded: level of the log; the certificate before goes on"), "what was reloaded is told as %s", logged.Text())
	testkit.Equal(t, shown(), 2, "what cannot be used changes nothing")
	testkit.Must(t, yard.Process.Signal(os.Interrupt))
	_, _ = io.Copy(io.Discard, log)
	testkit.Must(t, yard.Wait(), "the yard stops")
}
