package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/server"
)

// R6: a disk without a free byte can be emptied, although somebody else takes every byte that
// becomes free: the yard starts, deletes a hub, shortens a retention and applies it. With room
// again it goes on, and nothing that was acknowledged is lost.
func TestAFullDiskCanBeEmptied(t *testing.T) {
	long(t)
	for _, kind := range []string{"ext4", "tmpfs"} {
		for _, mode := range []string{"always", "os"} {
			t.Run(kind+" "+mode, func(t *testing.T) { emptyAFullDisk(t, smallDisk(t, kind), mode) })
		}
	}
}

func emptyAFullDisk(t *testing.T, disk, mode string) {
	// The data folder is the disk itself: its lost+found is nobody's.
	y := startYard(t, disk, mode)
	for _, hub := range []string{"doomed", "short", "kept", "more"} {
		y.want(201, "POST", "/api/v1/hubs", fmt.Sprintf(`{"name":%q,"partitions":4}`, hub))
		y.want(201, "POST", "/api/v1/hubs/"+hub+"/groups", `{"name":"readers"}`)
	}
	acknowledged := y.publish("kept", 3, 1000)
	y.publish("short", 20, 60_000)
	y.publish("more", 3, 1000)
	y.publish("doomed", -1, 60_000)

	thief := steal(t, filepath.Join(disk, "thief"))
	y.stop()
	thief.wantNothingFree()
	y = startYard(t, disk, mode)
	thief.wantNothingFree()

	y.want(507, "POST", "/api/v1/hubs/kept/events", eventOf(100_000))
	y.want(200, "PATCH", "/api/v1/hubs/short", `{"retention":{"age":"1s"}}`)
	for partition := range 4 {
		y.waitForEmpty("short", partition)
	}
	thief.wantNothingFree()
	for _, hub := range []string{"doomed", "more"} {
		y.want(204, "DELETE", "/api/v1/hubs/"+hub, "")
		y.want(404, "GET", "/api/v1/hubs/"+hub, "")
		left := testkit.Value(filepath.Glob(filepath.Join(disk, "log", hub+"-*")))(t)
		testkit.Equal(t, len(left), 0, "folders of the deleted hub: %v", left)
	}
	y.want(200, "PATCH", "/api/v1/hubs/kept", `{"retention":{"age":"240h","bytes":1000000}}`)
	thief.wantNothingFree()

	thief.stop()
	acknowledged += y.publish("kept", 3, 1000)
	y.want(201, "POST", "/api/v1/hubs", `{"name":"new","partitions":2}`)
	y.stop()
	y = startYard(t, disk, mode)
	testkit.Equal(t, y.count("kept"), acknowledged, "events")
	y.stop()
	found := testkit.Value(server.Inspect(t.Context(), server.Inspection{DataDir: disk}))(t)
	if found.Meta != nil || len(found.Problems) != 0 {
		t.Errorf("found %+v", found)
	}
}

// yard is a running one.
type yard struct {
	t    *testing.T
	url  string
	stop func()
}

func startYard(t *testing.T, dir, mode string) *yard {
	t.Helper()
	s := testkit.Value(server.New(server.Config{
		DataDir: dir, Sync: mode, SegmentBytes: 4 << 20, Log: testkit.Quiet(),
		HTTP: "127.0.0.1:0", AMQP: server.Off, AMQPS: server.Off, HTTPS: server.Off, Kafka: server.Off, Kafkas: server.Off,
	}))(t)
	ended := make(chan struct{})
	y := &yard{t: t, stop: testkit.Run(t, func(ctx context.Context) error {
		defer close(ended)
		return s.Run(ctx)
	})}
	select {
	case <-s.Started():
	case <-ended:
		y.stop()
		t.Fatal("the yard does not start")
	}
	y.url = s.Addresses()["http"]
	return y
}

func (y *yard) do(method, path, body string) (status int, answer string) {
	y.t.Helper()
	request := testkit.Value(http.NewRequestWithContext(y.t.Context(), method, y.url+path, strings.NewReader(body)))(y.t)
	request.SetBasicAuth(auth.RootPolicy, auth.DevelopmentKey)
	response := testkit.Value(http.DefaultClient.Do(request))(y.t)
	defer response.Body.Close()
	text := testkit.Value(io.ReadAll(response.Body))(y.t)
	return response.StatusCode, string(text)
}

func (y *yard) want(status int, method, path, body string) string {
	y.t.Helper()
	got, answer := y.do(method, path, body)
	testkit.MustEqual(y.t, got, status, "%s %s answers: %.300s", method, path, answer)
	return answer
}

func eventOf(bytes int) string {
	return fmt.Sprintf(`{"events":[{"body":%q}]}`, strings.Repeat("x", bytes))
}

// publish sends so many events, or with a negative number as many as there is room for, and gives
// how many were acknowledged.
func (y *yard) publish(hub string, events, bytes int) (acknowledged int) {
	y.t.Helper()
	for acknowledged != events {
		status, answer := y.do("POST", "/api/v1/hubs/"+hub+"/events", eventOf(bytes))
		if status == 507 && events < 0 {
			return acknowledged
		}
		testkit.MustEqual(y.t, status, 201, "event %d of %s: %.300s", acknowledged, hub, answer)
		acknowledged++
	}
	return acknowledged
}

func (y *yard) partition(hub string, number int) (found admin.Partition) {
	y.t.Helper()
	answer := y.want(200, "GET", fmt.Sprintf("/api/v1/hubs/%s/partitions/%d", hub, number), "")
	testkit.Must(y.t, json.Unmarshal([]byte(answer), &found))
	return found
}

func (y *yard) count(hub string) (events int) {
	y.t.Helper()
	for number := range 4 {
		events += int(y.partition(hub, number).Events())
	}
	return events
}

// waitForEmpty waits for some rounds of retention.
func (y *yard) waitForEmpty(hub string, number int) {
	y.t.Helper()
	for began := time.Now(); !y.partition(hub, number).Empty; time.Sleep(time.Second) {
		if time.Since(began) > 2*time.Minute {
			y.t.Fatalf("partition %d of %s still holds %+v", number, hub, y.partition(hub, number))
		}
	}
}

// thief takes what is free on a disk, and all that becomes free.
type thief struct {
	t    *testing.T
	file *os.File
	stop func()
}

func steal(t *testing.T, path string) *thief {
	t.Helper()
	h := &thief{t: t, file: testkit.Value(os.Create(path))(t)}
	end := testkit.Run(t, func(ctx context.Context) error {
		for ctx.Err() == nil {
			for _, bytes := range []int{1 << 20, 64 << 10, 4 << 10, 512} {
				for err := error(nil); err == nil; {
					_, err = h.file.Write(make([]byte, bytes))
					if err != nil && !errors.Is(err, syscall.ENOSPC) {
						return err
					}
				}
			}
			time.Sleep(time.Millisecond)
		}
		return nil
	})
	h.stop = sync.OnceFunc(func() {
		end()
		testkit.Check(t, errors.Join(h.file.Close(), os.Remove(path)))
	})
	t.Cleanup(h.stop)
	return h
}

// wantNothingFree waits until the last byte is taken.
func (h *thief) wantNothingFree() {
	h.t.Helper()
	testkit.Eventually(h.t, "nothing is free", func() bool {
		free, err := vfs.FreeBytes(filepath.Dir(h.file.Name()))
		testkit.Must(h.t, err)
		return free == 0
	})
}
