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

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

var soakPartitions = flag.String("soak.partitions", "1000,10000,100000", "how many partitions get an event each")

// R3: up to a hundred thousand partitions with an event each, at a limit of 1,024 descriptors and with all
// listeners: memory, disk, start, stop and the first list of a hub stay within what is promised, and each event is there
// after the restart.
func TestManyPartitionsWithFewDescriptors(t *testing.T) {
	long(t)
	binary := build(t)
	for _, partitions := range sizes(t, *soakPartitions) {
		t.Run(strconv.Itoa(partitions), func(t *testing.T) { manyPartitions(t, binary, partitions) })
	}
}

// partitionsOfHub is how many one hub has.
const partitionsOfHub = 1_024

func manyPartitions(t *testing.T, binary string, partitions int) {
	data := filepath.Join(t.TempDir(), "data")
	hubs := (partitions + partitionsOfHub - 1) / partitionsOfHub
	y := limited(t, binary, data)
	for hub := range hubs {
		y.want(t, 201, "POST", "/api/v1/hubs", fmt.Sprintf(`{"name":"hub%d","partitions":%d}`, hub, min(partitions, partitionsOfHub)))
	}
	began := time.Now()
	atOnce(t, partitions, func(i int) { y.send(t, i/partitionsOfHub, i%partitionsOfHub) })
	row := growth{Of: "partitions", Size: partitions, Made: time.Since(began)}
	row.Resident, row.Descriptors = y.wantResident(t, 300), y.wantDescriptors(t, 1024)
	row.Stop = y.wantStop(t, 3*time.Second)
	row.Disk = onDisk(t, data)
	testkit.That(t, row.Disk < 2<<30, "%d bytes on disk", row.Disk)

	began = time.Now()
	y = limited(t, binary, data)
	row.Start = y.wantWithin(t, began, time.Second, "start")
	row.Rested = y.wantResident(t, 300)
	for _, which := range []string{"first", "second"} {
		began = time.Now()
		y.want(t, 200, "GET", "/api/v1/hubs/hub0/partitions", "")
		y.wantWithin(t, began, 50*time.Millisecond, fmt.Sprintf("%s list of a hub of %d partitions", which, min(partitions, partitionsOfHub)))
	}
	events := 0
	for hub := range hubs {
		for _, p := range y.partitions(t, fmt.Sprintf("hub%d", hub)) {
			testkit.That(t, p.Events() <= 1, "partition %s of hub%d has %d events", p.ID, hub, p.Events())
			events += int(p.Events())
		}
	}
	testkit.Equal(t, events, partitions, "events after the restart")
	row.Busy = y.wantResident(t, 300)
	y.wantDescriptors(t, 1024)
	y.wantStop(t, 3*time.Second)
	row.print(t)
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

// limitedYard is a yard as a process that may have 1,024 descriptors, with the listeners that one has by default.
type limitedYard struct {
	program
	process *exec.Cmd
}

func limited(t *testing.T, binary, data string) *limitedYard {
	t.Helper()
	process := exec.Command("sh", "-c", `ulimit -n 1024; exec "$@"`, "sh", binary, "serve", "--data", data,
		"--http", "127.0.0.1:0", "--amqp", "127.0.0.1:0", "--amqps", "127.0.0.1:0", "--kafka", "127.0.0.1:0", "--kafkas", "127.0.0.1:0", "--https", "127.0.0.1:0", "--log-level", "error")
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

func (y *limitedYard) partitions(t *testing.T, hub string) []admin.Partition {
	t.Helper()
	client := testkit.Value(admin.New(admin.Config{Server: "http://" + y.http, Policy: auth.RootPolicy, Key: y.key}))(t)
	defer client.Close()
	return testkit.Value(client.Partitions(t.Context(), hub))(t)
}

func (y *limitedYard) send(t *testing.T, hub, partition int) {
	y.want(t, 201, "POST", fmt.Sprintf("/hub%d/partitions/%d/messages", hub, partition), strings.Repeat("x", 100))
}

func (y *limitedYard) wantWithin(t *testing.T, began time.Time, most time.Duration, what string) (took time.Duration) {
	t.Helper()
	took = time.Since(began)
	t.Logf("%s: %v", what, took.Round(time.Millisecond))
	testkit.That(t, took < most, "%s took %v, want less than %v", what, took, most)
	return took
}

func (y *limitedYard) wantStop(t *testing.T, most time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	testkit.Must(t, y.process.Process.Signal(os.Interrupt))
	testkit.Must(t, y.process.Wait())
	return y.wantWithin(t, began, most, "stop")
}

func (y *limitedYard) wantResident(t *testing.T, mebibytes int) (resident int) {
	t.Helper()
	resident = residentSize(t, y.process.Process.Pid)
	t.Logf("resident: %d MiB", resident)
	testkit.That(t, resident < mebibytes, "%d MiB resident, want less than %d", resident, mebibytes)
	return resident
}

// residentSize is what a process has of the machine's memory, and mostResidentSize what it had at most since it
// was started.
func residentSize(t *testing.T, pid int) (mebibytes int)     { return sizeOf(t, pid, "VmRSS:") }
func mostResidentSize(t *testing.T, pid int) (mebibytes int) { return sizeOf(t, pid, "VmHWM:") }

func sizeOf(t *testing.T, pid int, name string) (mebibytes int) {
	t.Helper()
	status := string(testkit.Value(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))(t))
	_, rest, found := strings.Cut(status, name)
	testkit.MustThat(t, found, "the kernel does not tell %s of process %d", name, pid)
	return testkit.Value(strconv.Atoi(strings.Fields(rest)[0]))(t) >> 10
}

func (y *limitedYard) wantDescriptors(t *testing.T, most int) (open int) {
	t.Helper()
	open = len(testkit.Value(os.ReadDir(fmt.Sprintf("/proc/%d/fd", y.process.Process.Pid)))(t))
	t.Logf("descriptors: %d", open)
	testkit.That(t, open < most, "%d descriptors", open)
	return open
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
