package parts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// socketPort names the server's socket. The folder is private; so it is the same for all.
const socketPort = 5432

// Postgres gives a new, empty database of a PostgreSQL that all tests of the process share.
func Postgres(t testing.TB) (url string) {
	t.Helper()
	server, err := sharedPostgres()
	wantStarted(t, err)
	return server.Database(t)
}

// sharedPostgres writes nothing to the disk for certain, as nobody cuts its power. It is
// stopped by its guard when the process ends.
var sharedPostgres = sync.OnceValues(func() (*PostgresServer, error) {
	return newPostgres("-c", "fsync=off", "-c", "full_page_writes=off")
})

// PostgresServer is a PostgreSQL of one test, to be stopped and started at will. It is
// reached by a socket in its folder and by no port, so that no two collide.
type PostgresServer struct {
	dir      string
	bin      string
	user     *credential
	settings []string
	process  *guarded
}

// StartPostgres starts a server that syncs what it commits, and removes it at the test's end.
func StartPostgres(t testing.TB) *PostgresServer {
	t.Helper()
	server, err := newPostgres()
	wantStarted(t, err)
	t.Cleanup(func() {
		if err := server.remove(); err != nil {
			t.Errorf("remove PostgreSQL: %v", err)
		}
	})
	return server
}

// errNotHere: there is no PostgreSQL that could be started. One that does not start is a failure.
var errNotHere = errors.New("there is no PostgreSQL")

func wantStarted(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, errNotHere) {
		Missing(t, "%v", err)
	}
	if err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}
}

func newPostgres(settings ...string) (*PostgresServer, error) {
	bin, err := postgresPrograms()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotHere, err)
	}
	user, err := unprivileged()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotHere, err)
	}
	dir, err := os.MkdirTemp("/tmp", "eventyard-postgres-") // a socket's path is short
	if err != nil {
		return nil, err
	}
	s := &PostgresServer{dir: dir, bin: bin, user: user, settings: settings}
	if err := s.init(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return s, s.start()
}

// postgresPrograms is the folder of the server's programs, which Debian keeps out of the path.
func postgresPrograms() (string, error) {
	if dir := findPostgres(); dir != "" {
		return dir, nil
	}
	if err := Debian("postgresql"); err != nil {
		return "", err
	}
	if dir := findPostgres(); dir != "" {
		return dir, nil
	}
	return "", fmt.Errorf("there is no initdb, neither in PATH nor in /usr/lib/postgresql")
}

func findPostgres() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(real)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(slices.Max(found))
}

func (s *PostgresServer) data() string { return filepath.Join(s.dir, "data") }

func (s *PostgresServer) init() error {
	if err := s.user.own(s.dir); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(s.bin, "initdb"), "-D", s.data(), "-U", "postgres",
		"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	cmd.Dir = s.dir
	detach(cmd, s.user)
	return runStep(cmd)
}

// start starts the server and waits until it answers. One that was killed may have
// left processes behind that keep a new one from starting for a moment.
func (s *PostgresServer) start() error {
	return poll(func() (bool, error) {
		process, err := guard(s.dir, "QUIT", s.user, s.command()...)
		if err != nil {
			return false, err
		}
		if err = process.await(s.answers); err == nil {
			s.process = process
			return true, nil
		}
		if strings.Contains(process.log(), "still in use") {
			return false, process.signal("KILL")
		}
		return false, errors.Join(err, process.signal("KILL"))
	})
}

func (s *PostgresServer) command() []string {
	return append([]string{filepath.Join(s.bin, "postgres"), "-D", s.data(), "-p", fmt.Sprint(socketPort),
		"-c", "listen_addresses=", "-c", "max_connections=400", "-c", "unix_socket_directories=" + s.dir}, s.settings...)
}

// answers tells whether the server takes connections.
func (s *PostgresServer) answers() bool {
	conn, err := pgx.Connect(context.Background(), s.url("postgres"))
	if err != nil {
		return false
	}
	return conn.Close(context.Background()) == nil
}

func (s *PostgresServer) url(database string) string {
	return fmt.Sprintf("postgres://postgres@/%s?host=%s&port=%d", database, s.dir, socketPort)
}

// Database makes a database, which is dropped at the test's end.
func (s *PostgresServer) Database(t testing.TB) (url string) {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text())
	if err := s.admin("create database " + name); err != nil {
		t.Fatalf("make a database: %v\n%s", err, Tail(s.process.log(), 4000))
	}
	t.Cleanup(func() {
		// A server that the test has stopped goes with all of its databases.
		_ = s.admin("drop database " + name + " with (force)")
	})
	return s.url(name)
}

func (s *PostgresServer) admin(statement string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

// Kill ends the server without a word, as a crash does.
func (s *PostgresServer) Kill(t testing.TB) { t.Helper(); s.stop(t, "KILL") }

// Stop ends the server at once and in order; open transactions are rolled back.
func (s *PostgresServer) Stop(t testing.TB) { t.Helper(); s.stop(t, "INT") }

func (s *PostgresServer) stop(t testing.TB, signal string) {
	t.Helper()
	if err := s.process.signal(signal); err != nil {
		t.Fatalf("stop PostgreSQL: %v", err)
	}
	s.process = nil
}

// Start starts the server after Kill or Stop, with what it had.
func (s *PostgresServer) Start(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}
}

func (s *PostgresServer) remove() error {
	if s.process == nil {
		return os.RemoveAll(s.dir)
	}
	return s.process.remove()
}
