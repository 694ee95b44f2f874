package parts

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/eventyard/eventyard/internal/testkit"
)

// childVariable tells a copy of the test binary to start a server and wait to be killed.
const childVariable = "PARTS_CHILD"

func TestMain(m *testing.M) {
	if role, address, ok := strings.Cut(os.Getenv(roleVariable), " "); ok {
		play(role, address)
	}
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	server, err := newPostgres()
	if err != nil {
		println("error:", err.Error())
		os.Exit(1)
	}
	println(server.dir)
	select {}
}

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	ctx := t.Context()
	for range 2 {
		conn, err := pgx.Connect(ctx, Postgres(t))
		testkit.Must(t, err)
		defer conn.Close(context.WithoutCancel(ctx))
		testkit.Check(t, testkit.Err(conn.Exec(ctx, "create table only_mine (x int)")))
	}
}

func TestPostgresKeepsWhatItCommittedWhenKilled(t *testing.T) {
	ctx := t.Context()
	server := StartPostgres(t)
	url := server.Database(t)
	exec := func(statement string) {
		t.Helper()
		conn, err := pgx.Connect(ctx, url)
		testkit.Must(t, err)
		defer conn.Close(ctx)
		testkit.Must(t, testkit.Err(conn.Exec(ctx, statement)))
	}
	exec("create table kept (x int)")
	server.Kill(t)
	server.Start(t)
	exec("insert into kept values (1)")
	server.Stop(t)
	server.Start(t)
	exec("drop table kept")
}

func TestAServerIsGoneWithATestProcessThatWasKilled(t *testing.T) {
	_, err := sharedPostgres()
	wantStarted(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"=1")
	stderr, err := cmd.StderrPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	dir, err := bufio.NewReader(stderr).ReadString('\n')
	cmd.Process.Kill()
	cmd.Wait()
	if err != nil || strings.HasPrefix(dir, "error:") {
		t.Fatal(dir, err)
	}
	dir = strings.TrimSpace(dir)
	if err := poll(func() (bool, error) { _, err := os.Stat(dir); return os.IsNotExist(err), nil }); err != nil {
		t.Errorf("folder %s: %v", dir, err)
	}
}

func TestRedisComesBackWithWhatItKept(t *testing.T) {
	server := StartRedis(t, RedisDurable...)
	ask := func(command string) string {
		t.Helper()
		conn, err := net.Dial("tcp", server.Addr)
		testkit.Must(t, err)
		defer conn.Close()
		conn.Write([]byte(command + "\r\n"))
		line, _ := bufio.NewReader(conn).ReadString('\n')
		return strings.TrimSpace(line)
	}
	testkit.MustEqual(t, ask("INCR n"), ":1")
	server.Kill(t)
	server.Start(t)
	testkit.Equal(t, ask("INCR n"), ":2", "after a restart the second INCR")
}

func TestAzuriteAnswers(t *testing.T) {
	blobs := Azurite(t)
	answer, err := http.Get(blobs.Endpoint() + "?comp=list")
	testkit.Must(t, err)
	answer.Body.Close()
	testkit.Equal(t, answer.StatusCode, http.StatusForbidden, "without a key the status")
}
