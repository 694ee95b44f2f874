package groupwire

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/testkit"
)

var (
	someTime = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	lease    = Lease{Partition: "3", Owner: "a", Epoch: 7, Acquired: someTime, Renewed: someTime.Add(time.Second), Version: "12"}
	point    = Checkpoint{Partition: "3", Sequence: -1, Offset: "x", Epoch: 7, HubID: "h", Updated: someTime, Version: "13"}
	entry    = Entry{Key: "presence/a", Value: []byte{0, 1, 255}, Version: "14"}
	about    = About{Group: "$Default"}
)

// codec is a body's way there and back.
type codec struct {
	value  any
	decode func([]byte) (any, error)
	// wire is the body as it has to stay: yards and processors are not of one version.
	wire string
}

func request[T Request](value T, wire string) codec {
	return codec{value, func(b []byte) (any, error) { v, err := DecodeRequest[T](b); return v, err }, wire}
}

func reply[T any](value T, wire string) codec {
	return codec{value, func(b []byte) (any, error) { v, err := DecodeReply[T](b); return v, err }, wire}
}

const (
	leaseWire = `{"partition":"3","owner":"a","epoch":7,"acquired":"2026-03-01T12:00:00.123456789Z","renewed":"2026-03-01T12:00:01.123456789Z","version":"12"}`
	pointWire = `{"partition":"3","sequence":-1,"offset":"x","epoch":7,"hubId":"h","updated":"2026-03-01T12:00:00.123456789Z","version":"13"}`
	entryWire = `{"key":"presence/a","value":"AAH/","version":"14"}`
)

var codecs = []codec{
	request(LeasesRequest{about}, `{"group":"$Default"}`),
	request(ClaimRequest{about, []Lease{{Partition: "0"}, {Partition: "1", Presence: "L"}, lease}},
		`{"group":"$Default","leases":[{"partition":"0"},{"partition":"1","presence":"L"},`+leaseWire+`]}`),
	request(CheckpointsRequest{about}, `{"group":"$Default"}`),
	request(BeginRequest{about, lease}, `{"group":"$Default","lease":`+leaseWire+`}`),
	request(SaveRequest{about, lease, point}, `{"group":"$Default","lease":`+leaseWire+`,"checkpoint":`+pointWire+`}`),
	request(EntriesRequest{about, "presence/", "presence/a"}, `{"group":"$Default","prefix":"presence/","after":"presence/a"}`),
	request(PutRequest{about, entry}, `{"group":"$Default","fact":`+entryWire+`}`),
	request(RemoveRequest{about, entry}, `{"group":"$Default","fact":`+entryWire+`}`),
	request(WatchRequest{about, "t-1"}, `{"group":"$Default","since":"t-1"}`),
	reply(LeasesReply{[]Lease{lease}, true}, `{"leases":[`+leaseWire+`],"keepsPresence":true}`),
	reply(ClaimReply{[]Lease{lease}, "in doubt"}, `{"leases":[`+leaseWire+`],"failed":"in doubt"}`),
	reply(CheckpointsReply{[]Checkpoint{point}}, `{"checkpoints":[`+pointWire+`]}`),
	reply(CheckpointReply{point}, `{"checkpoint":`+pointWire+`}`),
	reply(EntriesReply{[]Entry{entry}, true}, `{"facts":[`+entryWire+`],"more":true}`),
	reply(EntryReply{entry}, `{"fact":`+entryWire+`}`),
	reply(RemoveReply{}, `{}`),
	reply(WatchReply{true, "t-2"}, `{"changed":true,"token":"t-2"}`),
}

func TestBodiesStayAsTheyAre(t *testing.T) {
	for _, c := range codecs {
		t.Run(fmt.Sprintf("%T", c.value), func(t *testing.T) {
			var body []byte
			var err error
			if r, ok := c.value.(Request); ok {
				testkit.Equal(t, r.Of(), "$Default", "its group")
				body, err = EncodeRequest(r)
			} else {
				body, err = EncodeReply(c.value)
			}
			if err != nil || string(body) != c.wire {
				t.Errorf("written as\n%s, %v, want\n%s", body, err, c.wire)
			}
			got, err := c.decode([]byte(c.wire))
			testkit.Must(t, err)
			testkit.Diff(t, c.value, got)
		})
	}
}

// There is a request for each operation.
func TestEveryOperationHasARequest(t *testing.T) {
	requests := 0
	for _, c := range codecs {
		if _, ok := c.value.(Request); ok {
			requests++
		}
	}
	names := slices.Compact(slices.Sorted(slices.Values(Operations())))
	testkit.Equal(t, len(names), requests, "operations %q", names)
}

// A yard must not pass over what it does not know; a processor may.
func TestWhatIsNotKnown(t *testing.T) {
	for _, c := range codecs {
		more := strings.Replace(c.wire, "{", `{"unless":true,`, 1)
		more = strings.Replace(more, ",}", "}", 1)
		_, err := c.decode([]byte(more))
		if _, isRequest := c.value.(Request); isRequest != errors.Is(err, ErrMalformed) {
			t.Errorf("%T: %v", c.value, err)
		}
	}
}

func TestBodiesThatAreNone(t *testing.T) {
	for _, body := range []string{
		``, `null`, `{}`, `[]`, `"x"`, `{"group":""}`, `{"group":1}`, `{"group":"g"}{}`, `{"group":"g"} x`, `{"group":"g"`,
	} {
		testkit.ErrorIs(t, testkit.Err(DecodeRequest[LeasesRequest]([]byte(body))), ErrMalformed, "%s", body)
	}
	testkit.ErrorIs(t, testkit.Err(EncodeRequest(BeginRequest{about, Lease{Partition: "0", Owner: "\xff"}})), ErrMalformed, "a text that is none")
	testkit.ErrorIs(t, testkit.Err(EncodeReply(CheckpointReply{Checkpoint{Updated: time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)}})), ErrMalformed, "a time that is none")
}

// Whatever is too large is so on both sides.
func TestBounds(t *testing.T) {
	long := strings.Repeat("x", MaxTextBytes+1)
	for _, r := range []Request{
		LeasesRequest{About{long}},
		ClaimRequest{about, make([]Lease, MaxLeases+1)},
		ClaimRequest{about, []Lease{{Owner: long}}},
		BeginRequest{about, Lease{Version: long}},
		SaveRequest{about, lease, Checkpoint{HubID: long}},
		EntriesRequest{about, long, ""},
		PutRequest{about, Entry{Key: "k", Value: make([]byte, MaxValueBytes+1)}},
		RemoveRequest{about, Entry{Key: long}},
		WatchRequest{about, long},
	} {
		testkit.ErrorIs(t, testkit.Err(EncodeRequest(r)), ErrTooLarge, "%T is written", r)
		body, err := json.Marshal(r)
		testkit.Must(t, err)
		at := slices.IndexFunc(codecs, func(c codec) bool { return reflect.TypeOf(c.value) == reflect.TypeOf(r) })
		testkit.ErrorIs(t, testkit.Err(codecs[at].decode(body)), ErrTooLarge, "%T is read", r)
	}
	many := ClaimRequest{About: about}
	for range MaxLeases {
		many.Leases = append(many.Leases, Lease{Partition: "1", Owner: long[:MaxTextBytes]})
	}
	testkit.ErrorIs(t, testkit.Err(EncodeRequest(many)), ErrTooLarge, "all together")
	testkit.ErrorIs(t, testkit.Err(DecodeReply[WatchReply](make([]byte, MaxReplyBytes+1))), ErrTooLarge, "a reply")
}

// P1: a processor of all partitions that there may be renews its leases by one request, and a
// yard tells of them all in one reply.
func TestAllPartitionsFit(t *testing.T) {
	claim := ClaimRequest{About: about}
	var owned LeasesReply
	for i := range 1024 {
		l := Lease{Partition: fmt.Sprint(i), Owner: strings.Repeat("o", 100), Epoch: 1 << 40, Version: "12345678901234567890"}
		claim.Leases = append(claim.Leases, l)
		l.Acquired, l.Renewed = someTime, someTime
		owned.Leases = append(owned.Leases, l)
	}
	if body, err := EncodeRequest(claim); err != nil {
		t.Errorf("%d bytes: %v", len(body), err)
	}
	if body, err := EncodeReply(owned); err != nil {
		t.Errorf("%d bytes: %v", len(body), err)
	}
}

// Whatever a stranger sends is refused, or read as what it says when it is written again.
func FuzzDecodeRequest(f *testing.F) {
	for i, c := range codecs {
		f.Add(uint8(i), []byte(c.wire))
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		c := codecs[int(which)%len(codecs)]
		got, err := c.decode(body)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrTooLarge) {
				t.Errorf("error is %v", err)
			}
			return
		}
		r, ok := got.(Request)
		if !ok {
			return
		}
		again, err := EncodeRequest(r)
		if errors.Is(err, ErrTooLarge) {
			return // what is escaped now was not
		}
		testkit.Must(t, err, "%+v cannot be written", r)
		back, err := c.decode(again)
		if err != nil || !cmp.Equal(got, back, sameMoments) {
			t.Errorf("%s came back as %+v, %v, not %+v", again, back, err, got)
		}
	})
}

var sameMoments = cmp.Options{
	cmp.Comparer(func(x, y time.Time) bool { return x.Equal(y) }),
	cmp.Comparer(func(x, y []byte) bool { return string(x) == string(y) }),
}
