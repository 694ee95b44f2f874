package invoke

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// readAs reads an answer to threeEvents.
func readAs(status int, header http.Header, body string) Answer {
	call := threeEvents()
	r := reading{call: &call, maxWait: time.Minute, now: enqueued}
	return r.answer(status, header, []byte(body))
}

// F2, F4: a success is done, unless it says what is not.
func TestWhatASuccessSays(t *testing.T) {
	fail := Result{Verdict: Failed, Error: "e"}
	silent := Result{Verdict: Failed, Error: `the function said "failed", and gave no error`}
	for _, c := range []struct {
		name, body string
		whole      Result
		each       map[int]Result
	}{
		{"nothing", "", Result{}, nil},
		{"space", " \n", Result{}, nil},
		{"text", "OK, status failed", Result{}, nil},
		{"a page", "<html>results</html>", Result{}, nil},
		{"what only looks like JSON", "{hello}", Result{}, nil},
		{"null", "null", Result{}, nil},
		{"a string", `"failed"`, Result{}, nil},
		{"an object about something else", `{"orders":3,"id":"x","error":null}`, Result{}, nil},
		{"the batch itself", `[{"id":"billing/orders/3/17"},{"n":1},3]`, Result{}, nil},
		{"a status in the words of others", `{"status":"OK"}`, Result{}, nil},
		{"a status that is a number", `{"status":204}`, Result{}, nil},
		{"a status that is true", `{"status":true}`, Result{}, nil},
		{"no status", `{"status":null}`, Result{}, nil},
		{"no results", `{"results":[]}`, Result{}, nil},
		{"null for results", `{"results":null}`, Result{}, nil},
		{"no failures", `{"batchItemFailures":[]}`, Result{}, nil},
		{"all done", `{"results":[{"index":0,"status":"done"},{"index":1,"status":"ok"},{"index":2,"status":"success"}]}`, Result{}, nil},

		{"that all failed", `{"status":"failed","error":"e"}`, fail, nil},
		{"that all failed, in other poison events", "\ufeff" + `{"Status":" FAILED ","Error":"e"}`, fail, nil},
		{"that all failed, and not why", `{"status":"failed"}`, silent, nil},
		{"that all failed, and why in an object", `{"status":"error","error":{"code":5,"message":"e"}}`, fail, nil},
		{"that all failed, and why in a strange object", `{"status":"failed","error":{"code":5}}`, Result{Verdict: Failed, Error: `{"code":5}`}, nil},
		{"that all failed, and why in the words of others", `{"status":"failed","message":"e"}`, fail, nil},
		{"that all are poison", `{"status":"poison","error":"e"}`, Result{Verdict: Poison, Error: "e"}, nil},
		{"that all are skipped", `{"status":"skip"}`, Result{Verdict: Skip, Error: `the function said "skip", and gave no error`}, nil},
		{"that all come later", `{"status":"retry","error":"e","retryAfter":5}`, Result{Later, 5 * time.Second, "e"}, nil},
		{"that all come later, in text", `{"status":"failed","error":"e","retryAfter":"1.5s"}`, Result{Later, 1500 * time.Millisecond, "e"}, nil},
		{"that all come later, in seconds as text", `{"status":"retry","error":"e","retryAfter":"7"}`, Result{Later, 7 * time.Second, "e"}, nil},
		{"that all come much later", `{"status":"retry","error":"e","retryAfter":1e300}`, Result{Later, time.Minute, "e"}, nil},
		{"that all come again when the policy says", `{"status":"retry","error":"e","retryAfter":0}`, fail, nil},

		{"that one failed, by id", `{"results":[{"id":"billing/orders/3/18","status":"failed","error":"e"}]}`, Result{}, map[int]Result{1: fail}},
		{"that one failed, by index", `{"results":[{"index":1,"status":"failed","error":"e"}]}`, Result{}, map[int]Result{1: fail}},
		{"that one failed, by sequence", `{"results":[{"sequence":18,"status":"failed","error":"e"}]}`, Result{}, map[int]Result{1: fail}},
		{"that one failed, by sequence as it was sent", `{"results":[{"sequence":"18","status":"failed","error":"e"}]}`, Result{}, map[int]Result{1: fail}},
		{"that one failed, by the other format's name", `{"results":[{"sequenceNumber":18,"status":"failed","error":"e"}]}`, Result{}, map[int]Result{1: fail}},
		{"that one failed, in every way", `{"results":[{"id":"billing/orders/3/18","index":1,"sequence":18,"status":"failed","error":"e"}]}`, Result{}, map[int]Result{1: fail}},
		{"that one failed, twice", `{"results":[{"index":1,"status":"failed","error":"e"},{"sequence":18,"status":"failed","error":"f"}]}`, Result{}, map[int]Result{1: fail}},
		{"something else of each", `{"results":[{"index":0,"status":"poison","error":"e"},{"index":1,"status":"retry","error":"e","retryAfter":"2s"},{"index":2,"status":"untouched"}]}`,
			Result{}, map[int]Result{0: {Verdict: Poison, Error: "e"}, 1: {Later, 2 * time.Second, "e"}, 2: {Verdict: Untouched}}},
		{"that one is skipped", `{"results":[{"index":2,"status":"skip","error":"e"}]}`, Result{}, map[int]Result{2: {Verdict: Skip, Error: "e"}}},
		{"that one is done and the rest failed", `{"status":"failed","error":"e","results":[{"index":2,"status":"done"}]}`, Result{}, map[int]Result{0: fail, 1: fail}},
		{"that some failed, as in AWS Lambda", `{"batchItemFailures":[{"itemIdentifier":"billing/orders/3/17"},{"itemIdentifier":"18"},{"itemIdentifier":19}]}`,
			Result{}, map[int]Result{0: silent, 1: silent, 2: silent}},
		{"both", `{"results":[{"index":0,"status":"failed","error":"e"}],"batchItemFailures":[{"itemIdentifier":"18"}]}`, Result{}, map[int]Result{0: fail, 1: silent}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := readAs(http.StatusOK, nil, c.body)
			if a.Result != c.whole || !maps.Equal(a.Each, c.each) || (a.Each == nil) != (c.each == nil) || a.Status != 200 {
				t.Errorf("read %+v, want %+v %+v", a, c.whole, c.each)
			}
		})
	}
}

// F2: what is not understood is not done.
func TestASuccessThatCannotBeUnderstoodIsNone(t *testing.T) {
	for _, c := range []struct{ name, body, text string }{
		{"an unknown id", `{"results":[{"id":"billing/orders/3/20","status":"failed"}]}`, `no event of the batch has the id "billing/orders/3/20"`},
		{"an id that is a number", `{"results":[{"id":17,"status":"failed"}]}`, `no event of the batch has the id 17`},
		{"an unknown sequence", `{"results":[{"sequence":1,"status":"failed"}]}`, `no event of the batch has the sequence number 1`},
		{"an index that is too high", `{"results":[{"index":3,"status":"failed"}]}`, `the index 3 is of no event of the batch: it goes from 0 to 2`},
		{"an index below nothing", `{"results":[{"index":-1,"status":"failed"}]}`, `index -1`},
		{"an index that is none", `{"results":[{"index":1.5,"status":"failed"}]}`, `index 1.5`},
		{"no event", `{"results":[{"status":"failed"}]}`, `names no event`},
		{"null for an event", `{"results":[null]}`, `names no event`},
		{"two events", `{"results":[{"index":1,"sequence":17,"status":"failed"}]}`, `not of the same event`},
		{"no status", `{"results":[{"index":1}]}`, `has no status`},
		{"an unknown status", `{"results":[{"index":1,"status":"exploded"}]}`, `result 0: the status "exploded" is not known: use done,`},
		{"a status that is no text", `{"results":[{"index":1,"status":500}]}`, `the status 500 is no text`},
		{"a contradiction", `{"results":[{"index":1,"status":"done"},{"sequence":18,"status":"failed"}]}`, `with another status`},
		{"a contradiction in two languages", `{"results":[{"index":1,"status":"done"}],"batchItemFailures":[{"itemIdentifier":"18"}]}`, `with another status`},
		{"a wait that is none", `{"results":[{"index":1,"status":"retry","retryAfter":"soon"}]}`, `retryAfter "soon" is no wait`},
		{"a wait below nothing", `{"results":[{"index":1,"status":"retry","retryAfter":-1}]}`, `retryAfter -1 is no wait`},
		{"a wait for what is done", `{"results":[{"index":1,"status":"done","retryAfter":{}}]}`, `is no wait`},
		{"everything untouched", `{"results":[{"index":0,"status":"untouched"},{"index":1,"status":"untouched"},{"index":2,"status":"untouched"}]}`, `use retry`},
		{"results that are a number", `{"results":3}`, `"results" has to be an array of objects`},
		{"results that are texts", `{"results":["failed"]}`, `"results" has to be an array of objects`},
		{"failures that are an object", `{"batchItemFailures":{}}`, `"batchItemFailures" has to be an array`},
		{"a failure without an identifier", `{"batchItemFailures":[{}]}`, `it has no itemIdentifier`},
		{"a failure with an empty identifier", `{"batchItemFailures":[{"itemIdentifier":""}]}`, `failure 0: the itemIdentifier "" is of no event`},
		{"a failure by index", `{"batchItemFailures":[{"itemIdentifier":"0"}]}`, `the itemIdentifier "0" is of no event`},
		{"an unknown status of all", `{"status":"shipped"}`, `the status "shipped" is not known`},
		{"a bad number as status of all", `{"status":500}`, `the status 500 is no text`},
		{"all untouched", `{"status":"untouched"}`, `use retry`},
		{"results that were cut off", `{"results":[{"index":1,"status":"failed"}`, `it is not valid JSON: unexpected end of JSON input`},
		{"results as Python prints them", `{'results': []}`, `it is not valid JSON`},
		{"results with something behind", `{"results":[]} x`, `it is not valid JSON`},
		{"results without an object", `[{"index":1,"status":"failed"}]`, `put the results into an object`},
		{"failures without an object", `[1,{"itemIdentifier":"x"}]`, `put the results into an object`},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantFailed(t, readAs(http.StatusOK, nil, c.body), 200, "answered 200 OK, but what its body says cannot be understood", c.text)
		})
	}
}

// F2, F3: what is no success has failed, or says what else it is.
func TestWhatIsNoSuccess(t *testing.T) {
	failure := func(text string) Answer { return Answer{Result: Result{Verdict: Failed, Error: text}} }
	later := func(wait time.Duration, text string) Answer { return Answer{Result: Result{Later, wait, text}} }
	down := func(wait time.Duration, text string) Answer { return Answer{Result: Result{Unavailable, wait, text}} }
	for _, c := range []struct {
		name   string
		status int
		header http.Header
		body   string
		want   Answer
	}{
		{"nothing more", 500, nil, "", failure("answered 500 Internal Server Error")},
		{"a page", 502, nil, "<html>\n <b>bad</b>\x00", down(0, "answered 502 Bad Gateway: <html> <b>bad</b>")},
		{"a gateway that waited in vain", 504, nil, "", down(0, "answered 504 Gateway Timeout")},
		{"a framework's page", 503, nil, `{"status":503,"error":"Service Unavailable"}`, down(0, "answered 503 Service Unavailable: Service Unavailable")},
		{"a gateway's words", 503, nil, `{"status":"error","message":"no upstream"}`, down(0, "answered 503 Service Unavailable: no upstream")},
		{"down, and a wish in the body", 503, nil, `{"error":"busy","retryAfter":5}`, down(5*time.Second, "answered 503 Service Unavailable: busy")},
		{"poison all the same", 503, nil, `{"status":"poison","error":"e"}`, Answer{Result: Result{Verdict: Poison, Error: "answered 503 Service Unavailable: e"}}},
		{"an unknown status", 599, nil, "", failure("answered 599")},
		{"an error in JSON", 500, nil, `{"error":"no money"}`, failure("answered 500 Internal Server Error: no money")},
		{"an error object", 500, nil, `{"error":{"code":"X","message":"no money"}}`, failure("answered 500 Internal Server Error: no money")},
		{"a problem as RFC 9457 has it", 400, nil, `{"type":"about:blank","title":"No","detail":"no money","status":400}`, failure("answered 400 Bad Request: no money")},
		{"what to do, where it is plain", 404, nil, "not here", failure("answered 404 Not Found: not here (is the path of the endpoint right?)")},
		{"done is not done", 500, nil, `{"status":"done"}`, failure(`answered 500 Internal Server Error: {"status":"done"}`)},
		{"a redirect", 302, http.Header{"Location": {"http://x/y?secret"}}, "moved", failure("answered 302 Found to http://x/y: redirects are not followed: give the function the right endpoint")},
		{"not modified", 304, nil, "", failure("answered 304 Not Modified: redirects are not followed: give the function the right endpoint")},
		{"poison", 422, nil, `{"status":"poison","error":"e"}`, Answer{Result: Result{Verdict: Poison, Error: "answered 422 Unprocessable Entity: e"}}},
		{"skip", 409, nil, `{"status":"skip","error":"e"}`, Answer{Result: Result{Verdict: Skip, Error: "answered 409 Conflict: e"}}},
		{"a wish in the body", 500, http.Header{"Retry-After": {"9"}}, `{"status":"retry","error":"e","retryAfter":5}`, later(5*time.Second, "answered 500 Internal Server Error: e")},
		{"a wish in seconds", 503, http.Header{"Retry-After": {"9"}}, "busy", down(9*time.Second, "answered 503 Service Unavailable: busy")},
		{"a wish in seconds beside a word", 429, http.Header{"Retry-After": {"9"}}, `{"status":"failed","error":"e"}`, later(9*time.Second, "answered 429 Too Many Requests: e")},
		{"a wish of too many seconds", 429, http.Header{"Retry-After": {"18446744073709551615"}}, "", later(time.Minute, "answered 429 Too Many Requests")},
		{"a wish for a date", 429, http.Header{"Retry-After": {enqueued.Add(20 * time.Second).Format(http.TimeFormat)}}, "", later(20*time.Second-123*time.Millisecond, "answered 429 Too Many Requests")},
		{"a wish for a date gone by", 429, http.Header{"Retry-After": {enqueued.Add(-time.Second).Format(http.TimeFormat)}}, "", failure("answered 429 Too Many Requests")},
		{"a wish that makes no sense", 429, http.Header{"Retry-After": {"soon"}}, "", failure("answered 429 Too Many Requests")},
		{"results", 500, nil, `{"results":[{"index":1,"status":"poison","error":"e"}]}`, Answer{Each: map[int]Result{1: {Verdict: Poison, Error: "e"}}}},
		{"results and a wish", 503, http.Header{"Retry-After": {"9"}}, `{"results":[{"index":1,"status":"failed","error":"e"}]}`, Answer{Each: map[int]Result{1: {Later, 9 * time.Second, "e"}}}},
		{"results, and what the rest is", 500, nil, `{"status":"failed","error":"e","results":[{"index":1,"status":"done"}]}`,
			Answer{Each: map[int]Result{0: {Verdict: Failed, Error: "e"}, 2: {Verdict: Failed, Error: "e"}}}},
		{"results that name nothing", 500, nil, `{"results":[]}`, failure(`answered 500 Internal Server Error: {"results":[]} (its results name no event that is not done)`)},
		{"results that are not understood", 500, nil, `{"results":[{"index":7,"status":"failed"}]}`,
			failure(`answered 500 Internal Server Error: {"results":[{"index":7,"status":"failed"}]} (result 0: the index 7 is of no event of the batch: it goes from 0 to 2)`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := readAs(c.status, c.header, c.body)
			if a.Status != c.status || a.Result != c.want.Result || !maps.Equal(a.Each, c.want.Each) || (a.Each == nil) != (c.want.Each == nil) {
				t.Errorf("read %+v\nwant %+v", a, c.want)
			}
		})
	}
}

func TestTextsOfStrangersAreShort(t *testing.T) {
	long := strings.Repeat("ä", 4000)
	for _, a := range []Answer{
		readAs(500, nil, long), readAs(500, nil, `{"error":"`+long+`"}`), readAs(200, nil, `{"status":"failed","error":"`+long+`"}`),
		readAs(200, nil, `{"status":"`+long+`"}`), readAs(302, http.Header{"Location": {long}}, ""),
		readAs(200, nil, `{"results":[{"id":"`+long+`","status":"failed"}]}`),
	} {
		if n := len(a.Error); n == 0 || n > maxErrorBytes || !strings.Contains(a.Error, "…") && !strings.Contains(a.Error, `ä"`) {
			t.Errorf("a text of %d bytes: %s", n, a.Error)
		}
	}
	if got := shorten(" a\r\nb\x00\xffc\rd ", 100); got != "a\nbc\nd" {
		t.Errorf("it became %q", got)
	}
}

// FuzzAnswer: nothing makes it panic, verdicts are of events that are there, and nothing that names
// an event that is not there is done.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{
		"", "OK", "{", "[", `{"status":"retry","retryAfter":"5s"}`, `{"results":[{"index":1,"status":"failed","error":"e","retryAfter":2}]}`,
		`{"results":[{"id":"billing/orders/3/18","status":"poison"}],"status":"failed"}`, `{"batchItemFailures":[{"itemIdentifier":"17"}]}`,
		`{"results":[{"sequence":"18","status":"untouched"},null]}`, `[{"index":1,"status":"failed"}]`, `{"status":500,"error":{"message":"m"}}`, `{'results': 1}`,
	} {
		for _, status := range []int{200, 302, 503} {
			f.Add(status, "7", body)
		}
	}
	f.Fuzz(func(t *testing.T, status int, after, body string) {
		a := readAs(status, http.Header{"Retry-After": {after}}, body)
		checkResult(t, a.Result)
		for position, result := range a.Each {
			checkResult(t, result)
			if position < 0 || position > 2 || result.Verdict == Done {
				t.Errorf("event %d has %+v", position, result)
			}
		}
		good := status >= 200 && status < 300
		switch {
		case a.Status != status, a.Each != nil && (a.Verdict != Done || len(a.Each) == 0), a.Verdict == Untouched:
			t.Errorf("read %+v", a)
		case !good && a.Each == nil && a.Verdict == Done:
			t.Errorf("status %d is done", status)
		case good && a.Each == nil && a.Verdict == Done && namesStranger(body):
			t.Errorf("an event that is not there is done: %s", body)
		}
	})
}

func checkResult(t *testing.T, r Result) {
	t.Helper()
	if r.Wait < 0 || r.Wait > time.Minute || r.Verdict != Unavailable && (r.Verdict == Later) != (r.Wait > 0) || len(r.Error) > maxErrorBytes ||
		!slices.Contains([]Verdict{Done, Failed, Later, Poison, Skip, Untouched, Unavailable}, r.Verdict) || (r.Error == "") != (r.Verdict == Done || r.Verdict == Untouched) {
		t.Errorf("a result is %+v", r)
	}
}

// namesStranger finds results by a way of its own.
func namesStranger(body string) bool {
	s, err := parseStatement([]byte(body))
	if err != nil {
		return true
	}
	items, err := parseItems("results", s.Results)
	for _, it := range items {
		if string(it.Index) == "3" || string(it.Sequence) == "20" || string(it.ID) == `""` {
			return true
		}
	}
	return err != nil
}
