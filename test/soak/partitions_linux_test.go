package soak

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

var soakHubs = flag.Int("soak.hubs", 98, "how many hubs of 1,024 partitions get an event in each partition")

// R3: a hundred thousand partitions with an event each, at a limit of 1,024 descriptors: memory, disk,
// start, stop and the first list of a hub stay within what is promised.
func TestManyPartitionsWithFewDescriptors(t *testing.T) {
	long(t)
	const partitions = 1024
	binary, data := build(t), filepath.Join(t.TempDir(), "data")
	y := limited(t, binary, data)
	for hub := range *soakHubs {
		y.want(t, 201, "POST", "/api/v1/hubs", fmt.Sprintf(`{"name":"hub%d","partitions":%d}`, hub, partitions))
	}
	began := time.Now()
	atOnce(t, *soakHubs*partitions, func(i int) { y.send(t, i/partitions, i%partitions) })
	t.Logf("written in %v", time.Since(began).Round(time.Second))
	y.wantResident(t, 300)
	y.wantDescriptors(t, 1024)
	y.wantStop(t, 3*time.Second)
	took := onDisk(t, data)
	t.Logf("on disk: %d MiB", took>>20)
	testkit.That(t, took < 2<<30, "%d bytes on disk", took)

	began = time.Now()
	y = limited(t, binary, data)
	y.wantWithin(t, began, time.Second, "start")
	for _, which := range []string{"first", "second"} {
		began = time.Now()
		y.want(t, 200, "GET", "/api/v1/hubs/hub0/partitions", "")
		y.wantWithin(t, began, 50*time.Millisecond, which+" list of a hub of 1,024 partitions")
	}
	for hub := range *soakHubs {
		y.want(t, 200, "GET", fmt.Sprintf("/api/v1/hubs/hub%d/partitions", hub), "")
	}
	y.wantResident(t, 300)
	y.wantDescriptors(t, 1024)
	y.wantStop(t, 3*time.Second)
}

// atOnce does something so many times, sixteen at once, until something has failed.
func atOnce(t *testing.T, times int, do func(i int)) {
	t.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < times && !t.Failed(); i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
}

// limitedYard is a yard as a process that may have 1,024 descriptors.
type limitedYard struct {
	program
	process *exec.Cmd
}

func limited(t *testing.T, binary, data string) *limitedYard {
	t.Helper()
	process := exec.Command("sh", "-c", `ulimit -n 1024; exec "$@"`, "sh", binary, "serve", "--data", data,
		"--http", "127.0.0.1:0", "--amqp", "off", "--amqps", "off", "--kafka", "off", "--kafkas", "off", "--https", "off", "--log-level", "error")
	process.Stderr = os.Stderr
	stdout := testkit.Value(process.StdoutPipe())(t)
	testkit.Must(t, process.Start())
	y := &limitedYard{program: program{key: auth.DevelopmentKey}, process: process}
	t.Cleanup(func() {
		if process.ProcessState == nil {
			_ = process.Process.Kill()
			_ = process.Wait()
		}
	})
	lines := bufio.NewScanner(stdout)
	for y.http == "" && lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) == 2 && fields[0] == "http" {
			_, y.http, _ = strings.Cut(fields[1], "://")
		}
	}
	testkit.MustEqual(t, y.http != "", true, "the yard opens its listener")
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	return y
}

func (y *limitedYard) want(t *testing.T, status int, method, path, body string) {
	t.Helper()
	got, err := y.request(http.DefaultClient, method, path, body)
	testkit.Must(t, err)
	testkit.Equal(t, got, status, "%s %s", method, path)
}

func (y *limitedYard) send(t *testing.T, hub, partition int) {
	y.want(t, 201, "POST", fmt.Sprintf("/hub%d/partitions/%d/messages", hub, partition), strings.Repeat("x", 100))
}

func (y *limitedYard) wantWithin(t *testing.T, began time.Time, most time.Duration, what string) {
	t.Helper()
	took := time.Since(began)
	t.Logf("%s: %v", what, took.Round(time.Millisecond))
	testkit.That(t, took < most, "%s took %v, want less than %v", what, took, most)
}

func (y *limitedYard) wantStop(t *testing.T, most time.Duration) {
	t.Helper()
	began := time.Now()
	testkit.Must(t, y.process.Process.Signal(os.Interrupt))
	testkit.Must(t, y.process.Wait())
	y.wantWithin(t, began, most, "stop")
}

func (y *limitedYard) wantResident(t *testing.T, mebibytes int) {
	t.Helper()
	resident := residentSize(t, y.process.Process.Pid)
	t.Logf("resident: %d MiB", resident)
	testkit.That(t, resident < mebibytes, "%d MiB resident, want less than %d", resident, mebibytes)
}

// residentSize is what a process has of the machine's memory.
func residentSize(t *testing.T, pid int) (mebibytes int) {
	t.Helper()
	status := string(testkit.Value(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))(t))
	_, rest, _ := strings.Cut(status, "VmRSS:")
	return testkit.Value(strconv.Atoi(strings.Fields(rest)[0]))(t) >> 10
}

func (y *limitedYard) wantDescriptors(t *testing.T, most int) {
	t.Helper()
	open := len(testkit.Value(os.ReadDir(fmt.Sprintf("/proc/%d/fd", y.process.Process.Pid)))(t))
	t.Logf("descriptors: %d", open)
	testkit.That(t, open < most, "%d descriptors", open)
}

// onDisk is the room that a folder takes, in bytes.
func onDisk(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	testkit.Must(t, filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			bytes += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return err
	}))
	return bytes
}
