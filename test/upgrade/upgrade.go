// Package upgrade holds the test that a data folder which an older program wrote opens under the
// present one, and that everything in it is there. Its archives, testdata/NAME.tar.gz, were written
// by real older programs; what each has to yield stands beside it in NAME.json. They are never
// edited, nor made again by a newer program: whoever changes a format on disk adds one, made by the
// last commit that wrote the old form:
//
//	git worktree add /tmp/old COMMIT && (cd /tmp/old && go build -o /tmp/eventyard-old ./cmd/eventyard)
//	go run ./test/upgrade/generate -binary /tmp/eventyard-old -commit COMMIT -name before-CHANGE
//	go run ./test/upgrade/generate -binary /tmp/eventyard-old -commit COMMIT -name before-CHANGE-killed -kill
//
// The first archive is of a yard that was stopped, the second of one that was killed (SIGKILL). The
// generator records what the old program answers about a copy of the folder, after a restart; the
// test asks the present one the same. Beyond that the test goes on with what was under way:
// numbered producers, a group, retries, dead letters, functions.
//
// What a node has stored on NATS servers is read by later ones likewise: servers-1 is the folder of a server with one node,
// whose older entries, values and deletions, were stored again. Whoever changes a message in a stream (frames, marks, entries,
// announcements) adds one, made at the last commit that wrote the old form, in a worktree of it, since the generator has
// entries stored again by its own code:
//
//	cd /tmp/old && go run ./test/upgrade/generate -server -binary /tmp/eventyard-old -commit COMMIT -name servers-before-CHANGE
//
// There is none of a node that was killed. Servers forget a deletion's message after a day, so that no deletion is in such an
// archive by the time that it is opened; and there are no dead letters in folders, which nodes do not share.
//
// The archives keep for good. Hubs keep their events for ever; the test runs the yard with a
// retention of a century; retries whose time to live is over become dead letters, which are sent
// again; and producers, which a yard forgets after a week, are made to have been active just now.
package upgrade

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Manifest is what an archive has to yield.
type Manifest struct {
	// Commit is the one that the program was built from, Made when the folder was written. Killed:
	// it ended by SIGKILL. OnServer: it was a node on a NATS server, whose folder is in the archive.
	Commit   string    `json:"commit"`
	Made     time.Time `json:"made"`
	Killed   bool      `json:"killed"`
	OnServer bool      `json:"onServer,omitzero"`
	// Answers are what the program said of the folder, by path of the HTTP API.
	Answers map[string]json.RawMessage `json:"answers"`
	// Blobs are the digests of what is in Container, by name.
	Container string            `json:"container"`
	Blobs     map[string]string `json:"blobs"`
	Producers []Producer        `json:"producers"`
	Groups    []Group           `json:"groups"`
	// Owed are the events that each subscription of Topic has not delivered, by subscription and
	// id, with their data: they wait in the topic, in a retry log or parked, or are dead letters.
	// InFolder are those whose dead letters go to the folder Folder of the data folder. Pull are
	// those that clients of the subscription PullFrom have not acknowledged.
	Topic    string                                `json:"topic"`
	Owed     map[string]map[string]json.RawMessage `json:"owed"`
	Folder   string                                `json:"folder"`
	InFolder []string                              `json:"inFolder"`
	PullFrom string                                `json:"pullFrom"`
	Pull     []string                              `json:"pull"`
	// Functions are those with something left to do.
	Functions []Function `json:"functions"`
}

// Producer is an idempotent producer of a partition. All numbers up to Last are stored.
type Producer struct {
	Hub       string `json:"hub"`
	Partition string `json:"partition"`
	ID        int64  `json:"id"`
	Epoch     int16  `json:"epoch"`
	Last      int32  `json:"last"`
}

// Body is that of the event with a number.
func (p Producer) Body(number int32) string { return fmt.Sprintf("producer %d, %d", p.ID, number) }

// Group is a consumer group whose member Owner had all partitions when the yard ended.
type Group struct {
	Hub   string `json:"hub"`
	Name  string `json:"name"`
	Owner string `json:"owner"`
	// Next is the number of the first event behind the checkpoint, by partition.
	Next map[string]int64 `json:"next"`
}

// Function is a function that stood still, or failed, when the yard ended.
type Function struct {
	Name string `json:"name"`
	// Poison is its hub of poison events.
	Poison string `json:"poison"`
	// Circuit is its state.
	Circuit string `json:"circuit"`
	// Owed are the bodies of events that it has not handled, poison ones included.
	Owed []string `json:"owed"`
}

// What a data folder has of a yard on a NATS server: the file of its secret key and the folder of the server. YardName is
// its name there.
const (
	SecretKey = "secret.key"
	Servers   = "nats"
	YardName  = "old"
)

// Policy and Key let everybody in on loopback.
const (
	Policy = "RootManageSharedAccessKey"
	Key    = "SAS_KEY_VALUE"
)

// ErrStatus: a request was answered with an error.
var ErrStatus = errors.New("the yard refused")

// Yard is a running yard's HTTP API.
type Yard struct {
	// HTTP and AMQP are the URLs of its listeners.
	HTTP, AMQP string
}

// ConnectionString is for package hub.
func (y Yard) ConnectionString() string {
	return fmt.Sprintf("Endpoint=sb://%s/;SharedAccessKeyName=%s;SharedAccessKey=%s;UseDevelopmentEmulator=true",
		strings.TrimPrefix(y.AMQP, "amqp://"), Policy, Key)
}

// Do makes a request as Policy and gives the answer; body nil: none, a string: as it is, else as
// JSON.
func (y Yard) Do(ctx context.Context, method, path string, body any) ([]byte, error) {
	return y.As(ctx, Policy, Key, method, path, body)
}

// As is Do with another policy.
func (y Yard) As(ctx context.Context, policy, key, method, path string, body any) ([]byte, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, y.HTTP+path, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.SetBasicAuth(policy, key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		return nil, fmt.Errorf("%w: %s %s: %s: %.300s", ErrStatus, method, path, response.Status, answer)
	}
	return answer, nil
}

// Recall asks a path and gives the answer in a form that another yard on the same folder would
// give, too: what says where the yard listens is replaced, what tells of this moment is left out.
// Lines become a list.
func (y Yard) Recall(ctx context.Context, path string) (json.RawMessage, error) {
	answer, err := y.Do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	text := strings.NewReplacer(y.HTTP, "http://yard", strings.TrimPrefix(y.AMQP, "amqp://"), "yard").Replace(string(answer))
	var all []any
	for lines := json.NewDecoder(strings.NewReader(text)); ; {
		lines.UseNumber()
		var value any
		if err := lines.Decode(&value); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, lasting(value))
	}
	if len(all) == 1 {
		return json.Marshal(all[0])
	}
	return json.Marshal(all)
}

// fleeting are the members of answers that tell of a moment or of this process.
var fleeting = map[string]bool{
	"stats": true, "deadLetters": true, "retrieved": true, "alive": true, "renewed": true, "readers": true, "instances": true,
	"lagSeconds": true, "oldestSeconds": true, "counts": true, "failures": true, "total": true, "recommended": true,
	"recommendedInstances": true, "lastError": true, "lastErrorAt": true, "problem": true,
}

// foreign are the members that are not the yard's own words.
var foreign = map[string]bool{"body": true, "event": true, "properties": true}

func lasting(value any) any {
	switch v := value.(type) {
	case map[string]any:
		_, isFunction := v["breaker"]
		for name, member := range v {
			text, isText := member.(string)
			switch {
			case fleeting[name], name == "state" && isFunction, name == "at" && isText:
				delete(v, name)
			case foreign[name] && isText:
				v[name] = lasting(text)
			case !foreign[name]:
				v[name] = lasting(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = lasting(v[i])
		}
	case string:
		if len(v) > 256 {
			return Digest([]byte(v))
		}
	}
	return value
}

// Digest stands for bytes that are too many for a manifest.
func Digest(b []byte) string { return fmt.Sprintf("%d bytes, sha256 %x", len(b), sha256.Sum256(b)) }
