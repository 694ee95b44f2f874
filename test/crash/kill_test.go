package crash

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

var killRounds = flag.Int("kill.rounds", 20, "how many times the yard is killed")

const partitions = 4

// TestKillNine sends batches from many clients over HTTP and AMQP, kills the yard with
// SIGKILL, starts it again and reads everything back: what was acknowledged is there, over
// HTTP at the place it was said to be, everything is dense, and what was not acknowledged
// is there whole or not at all. // H2, H3, H8
func TestKillNine(t *testing.T) {
	y := &yard{t: t, binary: parts.Eventyard(t, true), data: t.TempDir(), acked: map[position]string{}, accepted: map[int]bool{}, sizes: map[int]int{}}
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	y.start()
	y.post("/api/v1/hubs", fmt.Sprintf(`{"name":"orders","partitions":%d}`, partitions), http.StatusCreated)
	for round := range *killRounds {
		y.loadAndKill(20 + rnd.IntN(300))
		y.start()
		y.check()
		if t.Failed() {
			t.Fatalf("round %d, seed %d", round, seed)
		}
	}
	t.Logf("%d events acknowledged over HTTP and %d batches accepted over AMQP were found", len(y.acked), len(y.accepted))
	y.stop()
	y.start()
	y.check()
	y.stop()
}

// yard is the program under test and what it owes.
type yard struct {
	t            *testing.T
	binary, data string
	flags        []string // of serve, besides the usual ones
	process      *exec.Cmd
	url, amqp    string // of the listeners

	mu       sync.Mutex
	nextID   int                 // guarded by mu
	acked    map[position]string // guarded by mu: bodies by where they were said to be
	accepted map[int]bool        // guarded by mu: batches that AMQP accepted, without saying where
	sizes    map[int]int         // guarded by mu: how many events each batch that was sent has
}

type position struct {
	partition string
	sequence  int64
}

// start runs the yard and waits until it says where it listens.
func (y *yard) start() {
	y.t.Helper()
	y.process = exec.Command(y.binary, append([]string{"serve", "--data", y.data, "--http", "127.0.0.1:0", "--amqp", "127.0.0.1:0",
		"--amqps", "off", "--kafka", "off", "--kafkas", "off", "--https", "off"}, y.flags...)...)
	stdout, err := y.process.StdoutPipe()
	testkit.Must(y.t, err)
	var complaints bytes.Buffer
	y.process.Stderr = &complaints
	testkit.Must(y.t, y.process.Start())
	y.t.Cleanup(func() { y.process.Process.Kill() })
	lines := bufio.NewScanner(stdout)
	y.url, y.amqp = "", ""
	for (y.url == "" || y.amqp == "") && lines.Scan() {
		switch fields := strings.Fields(lines.Text()); {
		case len(fields) != 2:
		case fields[0] == "http":
			y.url = fields[1]
		case fields[0] == "amqp":
			y.amqp = fields[1]
		}
	}
	if y.url == "" || y.amqp == "" {
		y.t.Fatalf("the yard did not start: %s", complaints.String())
	}
	go io.Copy(io.Discard, stdout)
}

func (y *yard) stop() {
	y.t.Helper()
	testkit.Must(y.t, y.process.Process.Signal(os.Interrupt))
	testkit.Must(y.t, y.process.Wait(), "a graceful stop")
}

// loadAndKill sends from eight clients until so many batches were acknowledged, then kills.
func (y *yard) loadAndKill(batches int) {
	ctx, cancel := context.WithCancel(y.t.Context())
	var wg sync.WaitGroup
	acks := make(chan struct{})
	for i := range 8 {
		wg.Go(func() {
			send := y.send
			if i%2 == 0 {
				client := y.connect(ctx)
				defer client.close()
				send = client.send
			}
			for send(ctx) == nil {
				select {
				case acks <- struct{}{}:
				case <-ctx.Done():
					return
				}
			}
			cancel() // the yard is gone, or refused: in either case this round is over
		})
	}
	for n := 0; n < batches && ctx.Err() == nil; n++ {
		select {
		case <-acks:
		case <-ctx.Done():
			y.t.Errorf("sending ended after %d batches", n)
		}
	}
	y.process.Process.Kill()
	cancel()
	wg.Wait()
	y.process.Wait()
}

// next gives the number of a batch that nobody has sent yet, and how many events it has.
func (y *yard) next() (id, size int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	id = y.nextID
	y.nextID++
	y.sizes[id] = 1 + id%7
	return id, y.sizes[id]
}

// send posts one batch and notes what was acknowledged.
func (y *yard) send(ctx context.Context) error {
	id, size := y.next()
	var body strings.Builder
	body.WriteString(`{"events":[`)
	for i := range size {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `{"body":%q}`, text(id, i))
	}
	fmt.Fprintf(&body, `],"partition":"%d"}`, id%partitions)
	response, err := y.do(ctx, http.MethodPost, "/api/v1/hubs/orders/events", body.String())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var sent struct {
		Partition string
		First     int64
		Count     int
	}
	if response.StatusCode != http.StatusCreated {
		return errors.New(response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&sent); err != nil {
		return err
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	for i := range size {
		y.acked[position{sent.Partition, sent.First + int64(i)}] = text(id, i)
	}
	return nil
}

// text is the body of one event: batch, place in it, and bytes that follow from both.
func text(id, i int) string {
	return fmt.Sprintf("%d/%d/%s", id, i, strings.Repeat(string(rune('a'+(id+i)%26)), (id*31+i*7)%900))
}

// check reads all that is there and compares.
func (y *yard) check() {
	y.t.Helper()
	found := y.read()
	for at, want := range y.acked {
		if got, ok := found[at]; !ok {
			y.t.Errorf("event %d of partition %s was acknowledged and is gone", at.sequence, at.partition)
		} else if got != want {
			y.t.Errorf("event %d of partition %s has another body", at.sequence, at.partition)
		}
	}
	seen := map[int]int{}
	for _, body := range found {
		var id, i int
		fmt.Sscanf(body, "%d/%d/", &id, &i)
		testkit.Equal(y.t, body, text(id, i), "a body that nobody sent")
		seen[id]++
	}
	for id := range y.accepted {
		if seen[id] == 0 {
			y.t.Errorf("batch %d was accepted and is gone", id)
		}
	}
	for id, n := range seen {
		if n != y.sizes[id] {
			y.t.Errorf("batch %d has %d events and %d are there", id, y.sizes[id], n)
		}
	}
}

func (y *yard) read() map[position]string {
	y.t.Helper()
	response, err := y.do(y.t.Context(), http.MethodGet, "/api/v1/hubs/orders/events?from=earliest", "")
	testkit.Must(y.t, err)
	defer response.Body.Close()
	found := map[position]string{}
	next := map[string]int64{}
	lines := json.NewDecoder(response.Body)
	for {
		var event struct {
			Partition string
			Sequence  int64
			Body      string
		}
		if err := lines.Decode(&event); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			y.t.Fatal(err)
		}
		testkit.Equal(y.t, event.Sequence, next[event.Partition],
			"partition %s: follows %d", event.Partition, next[event.Partition]-1)
		next[event.Partition] = event.Sequence + 1
		found[position{event.Partition, event.Sequence}] = event.Body
	}
}

func (y *yard) post(path, body string, want int) []byte {
	y.t.Helper()
	response, err := y.do(y.t.Context(), http.MethodPost, path, body)
	testkit.Must(y.t, err)
	defer response.Body.Close()
	answer, _ := io.ReadAll(response.Body)
	testkit.MustEqual(y.t, response.StatusCode, want, "%s: %s", response.Status, answer)
	return answer
}

// do asks with the key that is good for every yard on loopback.
func (y *yard) do(ctx context.Context, method, path, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, y.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.SetBasicAuth(policy, key)
	request.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(request)
}
