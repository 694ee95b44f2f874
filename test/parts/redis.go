package parts

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Redis gives the address of a Redis of the test's own, which forgets everything when it stops.
func Redis(t testing.TB) (addr string) {
	t.Helper()
	return StartRedis(t).Addr
}

// RedisServer is a Redis of one test, to be stopped and started at will.
type RedisServer struct {
	// Addr is a port of a loopback address that is its alone; so no two servers collide, also
	// after a restart.
	Addr     string
	dir      string
	settings []string
	process  *guarded
}

// RedisDurable are the settings of a Redis that has on disk what it has acknowledged.
var RedisDurable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// StartRedis starts a server with further settings as its command line takes them, and
// removes it at the test's end.
func StartRedis(t testing.TB, settings ...string) *RedisServer {
	t.Helper()
	if err := Need("redis-server", "redis-server"); err != nil {
		Missing(t, "Redis: %v", err)
	}
	dir, err := os.MkdirTemp("", "eventyard-redis-")
	if err != nil {
		t.Fatal(err)
	}
	s := &RedisServer{Addr: net.JoinHostPort(OwnLoopback(), "6379"), dir: dir, settings: settings}
	t.Cleanup(func() { s.remove(t) })
	s.Start(t)
	return s
}

// OwnLoopback is an address below 127 that nobody else is likely to have: a port of it that is
// closed is still free when its server comes back.
func OwnLoopback() string {
	var b [3]byte
	rand.Read(b[:])
	return fmt.Sprintf("127.%d.%d.%d", 1+b[0]%254, b[1], 1+b[2]%254)
}

// Start starts the server after Kill or Stop, with what it had kept.
func (s *RedisServer) Start(t testing.TB) {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(s.Addr)
	args := append([]string{program, "--bind", host, "--port", port,
		"--dir", s.dir, "--save", "", "--cluster-announce-ip", host}, s.settings...)
	s.process, err = guard(s.dir, "TERM", nil, args...)
	if err == nil {
		err = s.process.await(func() bool { return strings.Contains(s.process.log(), "Ready to accept connections") })
	}
	if err != nil {
		t.Fatalf("start Redis: %v", err)
	}
}

// Kill ends the server without a word, as a crash does.
func (s *RedisServer) Kill(t testing.TB) {
	t.Helper()
	if err := s.process.signal("KILL"); err != nil {
		t.Fatalf("kill Redis: %v", err)
	}
	s.process = nil
}

func (s *RedisServer) remove(t testing.TB) {
	var err error
	if s.process == nil {
		err = os.RemoveAll(s.dir)
	} else {
		err = s.process.remove()
	}
	if err != nil {
		t.Errorf("remove Redis in %s: %v", filepath.Base(s.dir), err)
	}
}

// RedisCluster gives the address of a Cluster of one server that has all slots: what
// is not in one slot it refuses, as a large one does.
func RedisCluster(t testing.TB) (addr string) {
	t.Helper()
	addr = StartRedis(t, "--cluster-enabled", "yes").Addr
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	ctx := context.Background()
	if err := client.Do(ctx, "cluster", "addslotsrange", 0, 16383).Err(); err != nil {
		t.Fatalf("give Redis its slots: %v", err)
	}
	err := poll(func() (bool, error) {
		info, err := client.ClusterInfo(ctx).Result()
		return strings.Contains(info, "cluster_state:ok"), err
	})
	if err != nil {
		t.Fatalf("start a Redis Cluster: %v", err)
	}
	return addr
}
