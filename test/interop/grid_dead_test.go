//go:build linux

package interop

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// deadContainer is one that dead letters are written to.
type deadContainer struct {
	url, key  string // key is empty where the URL has a signature
	container *container.Client
}

func containerOf(t *testing.T, connection, name string) *container.Client {
	t.Helper()
	c, err := container.NewClientFromConnectionString(connection, name, nil)
	testkit.Must(t, err)
	return c
}

func (p deadContainer) create(t *testing.T) {
	t.Helper()
	testkit.Must(t, testkit.Err(p.container.Create(t.Context(), nil)))
}

func (p deadContainer) flags() []string {
	if p.key == "" {
		return []string{"--dead-letter", "blob:" + p.url}
	}
	return []string{"--dead-letter", "blob:" + p.url, "--dead-letter-key", p.key}
}

// plainURL has no signature.
func (p deadContainer) plainURL() string {
	plain, _, _ := strings.Cut(p.url, "?")
	return plain
}

// blobs are those in the container, by name.
func (p deadContainer) blobs(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for pager := p.container.NewListBlobsFlatPager(nil); pager.More(); {
		page, err := pager.NextPage(t.Context())
		testkit.Must(t, err)
		for _, b := range page.Segment.BlobItems {
			testkit.Equal(t, *b.Properties.ContentType, "application/json", "%s", *b.Name)
			found[*b.Name] = p.download(t, *b.Name)
		}
	}
	return found
}

func (p deadContainer) download(t *testing.T, name string) string {
	t.Helper()
	answer, err := p.container.NewBlobClient(name).DownloadStream(t.Context(), nil)
	testkit.Must(t, err)
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	testkit.Must(t, err)
	return string(content)
}

// TestGridDeadLettersInAzurite writes dead letters to a container of the storage emulator, by the
// account's key and by a signature. // G8
func TestGridDeadLettersInAzurite(t *testing.T) {
	t.Parallel()
	blobs := startAzurite(t)
	positions := map[string]deadContainer{}
	for _, name := range []string{"by-key", "by-signature"} {
		positions[name] = deadContainer{url: blobs.Endpoint() + "/" + name, key: blobs.Key, container: containerOf(t, blobs.Connection(), name)}
	}
	signed := positions["by-signature"]
	signed.url, signed.key = signed.url+"?"+blobs.signature().Encode(), ""
	positions["by-signature"] = signed
	y := startGrid(t)
	for name, setting := range positions {
		t.Run(name, func(t *testing.T) {
			setting.create(t)
			writesDeadLetters(t, y, name, setting)
		})
	}
	t.Run("a container that comes late", func(t *testing.T) {
		late := deadContainer{url: blobs.Endpoint() + "/late", key: blobs.Key, container: containerOf(t, blobs.Connection(), "late")}
		containerComesLate(t, y, late)
	})
}

// TestGridDeadLettersInTheYard writes dead letters to the yard's own blobs. // G8
func TestGridDeadLettersInTheYard(t *testing.T) {
	t.Parallel()
	y := startGrid(t)
	connection := y.blobs(t)
	parts := map[string]string{}
	for part := range strings.SplitSeq(connection, ";") {
		name, value, _ := strings.Cut(part, "=")
		parts[name] = value
	}
	setting := deadContainer{url: parts["BlobEndpoint"] + "/dead", key: parts["AccountKey"], container: containerOf(t, connection, "dead")}
	setting.create(t)
	writesDeadLetters(t, y, "own", setting)
}

// blobName is what Event Grid calls a blob of dead letters: nothing in it is padded with zeros.
var blobName = regexp.MustCompile(`^([A-Z0-9-]+)/([A-Z0-9-]+)/(\d{4}/[1-9]\d?/[1-9]\d?/(?:0|[1-9]\d?))/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.json$`)

// writesDeadLetters has events of every schema die, and looks at what is written of them and at the
// event that tells of each write.
func writesDeadLetters(t *testing.T, y *yard, name string, setting deadContainer) {
	reported := newHook(t, nil)
	y.subscribe(t, "yard-events", name+"-told", reported.URL, "--type", "Microsoft.Storage.BlobCreated", "--filter", "data.url StringBeginsWith "+setting.plainURL()+"/")
	dying := newDying(t, y, name)
	before := time.Now().UTC()
	dying.publish(t, y, setting)
	// Those of one subscription may be written together or one by one.
	var found map[string]string
	eventually(t, func() string {
		if found = setting.blobs(t); strings.Count(strings.Join(slices.Collect(maps.Values(found)), ""), notWanted) >= 4 {
			return ""
		}
		return fmt.Sprintf("written: %v", found)
	})
	dying.check(t, lettersIn(t, found, before))
	checkReported(t, reported.await(t, len(found)), setting, found)
	y.eventuallyShown(t, name+"-told", func(s admin.Subscription) bool { return s.Stats.Delivered == int64(len(found)) })
}

// dying is a topic of each schema, whose events nobody takes.
type dying struct{ grid, clouds, custom admin.Topic }

func newDying(t *testing.T, y *yard, name string) dying {
	t.Helper()
	mapping := filepath.Join(t.TempDir(), "mapping.json")
	if err := os.WriteFile(mapping, []byte(`{"id":{"sourceField":"number"},"eventType":{"sourceField":"kind"},"subject":{"defaultValue":"kitchen"},"eventTime":{"sourceField":"at"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return dying{
		y.topic(t, name+"-orders", "eventgrid"), y.topic(t, name+"-clouds", "cloudevents"), y.topic(t, name+"-custom", "custom", "--mapping", mapping),
	}
}

func (d dying) publish(t *testing.T, y *yard, setting deadContainer) {
	t.Helper()
	gone := answering(t, http.StatusNotFound)
	for _, p := range []struct {
		topic             admin.Topic
		contentType, body string
	}{
		{d.grid, "application/json", gridEvents("1", "2")},
		{d.clouds, "application/cloudevents+json", cloudEvent("3")},
		{d.custom, "application/json", `[{"number":"4","kind":"reading","at":"2030-01-02T15:04:05Z","celsius":21.5}]`},
	} {
		y.subscribe(t, p.topic.Name, "billing", gone.URL, setting.flags()...)
		y.publish(t, p.topic, p.contentType, p.body)
	}
}

// check compares letters, by the topic's name in their blobs', with what was published.
func (d dying) check(t *testing.T, letters map[string][]object) {
	t.Helper()
	order := func() object {
		return object{
			"topic": d.grid.Resource, "subject": "/shops/1", "eventType": "order.placed", "eventTime": "2030-01-02T15:04:05Z",
			"dataVersion": "1", "metadataVersion": "1", "data": object{"total": 42.0},
		}
	}
	checkLetters(t, letters[strings.ToUpper(d.grid.Name)], map[string]object{"1": order(), "2": order()}, gridSpelling)
	checkLetters(t, letters[strings.ToUpper(d.clouds.Name)], map[string]object{"3": read[object](t, []byte(cloudEvent("3")))}, cloudSpelling)
	checkLetters(t, letters[strings.ToUpper(d.custom.Name)], map[string]object{
		"4": {
			"topic": d.custom.Resource, "subject": "kitchen", "eventType": "reading", "eventTime": "2030-01-02T15:04:05Z", "dataVersion": "", "metadataVersion": "1",
			"data": object{"number": "4", "kind": "reading", "at": "2030-01-02T15:04:05Z", "celsius": 21.5},
		},
	}, gridSpelling)
}

// lettersIn reads blobs, and judges their names.
func lettersIn(t *testing.T, found map[string]string, before time.Time) map[string][]object {
	t.Helper()
	letters := map[string][]object{}
	for blob, content := range found {
		match := blobName.FindStringSubmatch(blob)
		if match == nil || match[2] != "BILLING" {
			t.Fatalf("a blob is called %s", blob)
		}
		if at, err := time.Parse("2006/1/2/15", match[3]); err != nil || at.Before(before.Truncate(time.Hour)) || at.After(time.Now()) {
			t.Errorf("a blob is called %s: %v", blob, err)
		}
		letters[match[1]] = append(letters[match[1]], read[[]object](t, []byte(content))...)
	}
	return letters
}

// spelling is how a schema calls what is said of a death. An empty name means that it is left out.
type spelling struct{ reason, attempts, outcome, status, published, tried string }

var (
	gridSpelling  = spelling{"deadLetterReason", "deliveryAttempts", "lastDeliveryOutcome", "lastHttpStatusCode", "publishTime", "lastDeliveryAttemptTime"}
	cloudSpelling = spelling{"deadletterreason", "deliveryattempts", "lastdeliveryoutcome", "lasthttpstatuscode", "publishtime", ""}
)

// checkLetters compares the events as they were with the letters, member by member.
func checkLetters(t *testing.T, letters []object, want map[string]object, s spelling) {
	t.Helper()
	testkit.Equal(t, len(letters), len(want), "the letters are %v", letters)
	for _, letter := range letters {
		id := fmt.Sprint(letter["id"])
		said := object{s.reason: "UndeliverableDueToClientError", s.attempts: 1.0, s.outcome: "NotFound", s.status: 404.0}
		for name, value := range said {
			testkit.Equal(t, letter[name], value, "%s of %s", name, id)
			delete(letter, name)
		}
		for _, name := range []string{s.published, s.tried} {
			if name == "" {
				continue
			}
			if at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(letter[name])); err != nil || time.Since(at) > time.Hour || at.After(time.Now()) {
				t.Errorf("%s of %s is %v: %v", name, id, letter[name], err)
			}
			delete(letter, name)
		}
		event := want[id]
		if event != nil {
			event["id"] = id
		}
		if diff := cmp.Diff(event, letter); diff != "" {
			t.Errorf("event %s is not as it was:\n%s", id, diff)
		}
	}
}

// checkReported looks at the events that tell of writes, and finds what they tell of.
func checkReported(t *testing.T, got []delivered, setting deadContainer, found map[string]string) {
	t.Helper()
	base := setting.plainURL()
	named := map[string]bool{}
	for _, d := range got {
		e := read[[]struct {
			EventType, Subject, Topic string
			Data                      struct {
				API, ContentType, BlobType, URL string
				ContentLength                   int
			}
		}](t, d.body)[0]
		name := strings.TrimPrefix(e.Data.URL, base+"/")
		content := found[name]
		if e.EventType != "Microsoft.Storage.BlobCreated" || e.Subject != "/blobServices/default/containers/"+filepath.Base(base)+"/blobs/"+name ||
			e.Data.API != "PutBlob" || e.Data.ContentType != "application/json" || e.Data.BlobType != "BlockBlob" || content == "" || e.Data.ContentLength != len(content) {
			t.Errorf("told %s; there is %v", d.body, found)
		}
		named[name] = true
	}
	if len(named) != len(found) {
		t.Errorf("told of %d writes of %d", len(named), len(found))
	}
}

// containerComesLate has a place that is not there yet: the letters wait for it, and the
// subscription says so.
func containerComesLate(t *testing.T, y *yard, setting deadContainer) {
	topic := y.topic(t, "late-orders", "eventgrid")
	y.subscribe(t, topic.Name, "late", answering(t, http.StatusBadRequest).URL, setting.flags()...)
	y.publish(t, topic, "application/json", gridEvents("1"))
	shown := y.eventuallyShown(t, "late", func(s admin.Subscription) bool { return s.DeadLetters.Problem != "" })
	if shown.DeadLetters.Unwritten != 1 || !strings.Contains(shown.DeadLetters.Problem, "ContainerNotFound") || strings.Contains(shown.DeadLetters.Problem, "sig=") {
		t.Errorf("the dead letters are %+v", *shown.DeadLetters)
	}
	setting.create(t)
	y.eventuallyShown(t, "late", func(s admin.Subscription) bool { return s.DeadLetters.Unwritten == 0 && s.DeadLetters.Problem == "" })
	if len(setting.blobs(t)) != 1 || !strings.HasPrefix(y.dead(t, "late")[0].Written, setting.url+"/LATE-ORDERS/LATE/") {
		t.Errorf("the dead letters are %+v", y.dead(t, "late"))
	}
}

// TestGridDeadLettersInFolders writes dead letters where no storage service is needed. // G8
func TestGridDeadLettersInFolders(t *testing.T) {
	onOneMachine(t, "they share no folder")
	t.Parallel()
	y := startGrid(t)
	topic := y.topic(t, "orders", "eventgrid")
	gone := answering(t, http.StatusNotFound)
	y.subscribe(t, "orders", "to-folder", gone.URL, "--dead-letter", "folder:dead")
	for _, setting := range []string{"folder:../elsewhere", "folder:/tmp", "folder:log", "folder:tls"} {
		y.refuses(t, "subscription", "create", "wrong", "--topic", "orders", "--endpoint", gone.URL, "--dead-letter", setting)
	}
	y.publish(t, topic, "application/json", gridEvents("1"))
	var files []string
	eventually(t, func() string {
		files, _ = filepath.Glob(filepath.Join(y.data, "dead", "ORDERS", "TO-FOLDER", "*", "*", "*", "*", "*.json"))
		if len(files) == 1 {
			return ""
		}
		return "no file was written"
	})
	name, _ := filepath.Rel(filepath.Join(y.data, "dead"), files[0])
	content, err := os.ReadFile(files[0])
	if letters := read[[]object](t, content); err != nil || !blobName.MatchString(filepath.ToSlash(name)) || len(letters) != 1 || letters[0]["deadLetterReason"] != notWanted {
		t.Errorf("%s is %s: %v", name, content, err)
	}
}

// TestGridDeadLettersInHubs sends dead letters to a hub, where any reader finds them. // G8
func TestGridDeadLettersInHubs(t *testing.T) {
	t.Parallel()
	y := startGrid(t)
	topic := y.topic(t, "orders", "eventgrid")
	gone := answering(t, http.StatusNotFound)
	y.subscribe(t, "orders", "to-hub", gone.URL, "--dead-letter", "hub:arrivals")
	y.refuses(t, "subscription", "create", "wrong", "--topic", "orders", "--endpoint", gone.URL, "--dead-letter", "hub:none")
	y.publish(t, topic, "application/json", gridEvents("1"))
	y.eventuallyShown(t, "to-hub", func(s admin.Subscription) bool { return s.DeadLetters.Kept == 1 && s.DeadLetters.Unwritten == 0 })
	read := y.do(t, "read", "arrivals", "--from", "earliest", "-o", "json")
	if !strings.Contains(read, notWanted) {
		t.Errorf("the hub has %s", read)
	}
}
