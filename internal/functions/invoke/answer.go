package invoke

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// reading reads the answer to one call. What it cannot understand it never takes for done.
type reading struct {
	call    *Call
	maxWait time.Duration
	now     time.Time
	// asked is what the header Retry-After asks for; 0: nothing.
	asked time.Duration
	// ids and sequences give the indices of events; each is made when it is first asked for.
	ids       map[string]int
	sequences map[int64]int
}

// answer gives the verdict by the status, and by what the body says where it speaks our language.
func (r *reading) answer(status int, header http.Header, body []byte) Answer {
	r.asked = min(retryAfter(header, r.now), r.maxWait)
	s, err := parseStatement(body)
	if packed := header.Get("Content-Encoding"); len(body) > 0 && packed != "" && !strings.EqualFold(packed, "identity") {
		s, body, err = statement{}, nil, fmt.Errorf("it is packed as %.40q: answer without Content-Encoding", packed)
	}
	if status >= 200 && status < 300 {
		return r.good(status, s, err)
	}
	return r.bad(status, s, err, refusal(status, header, s, body))
}

// good: done, unless the body says otherwise.
func (r *reading) good(status int, s statement, err error) Answer {
	var whole Result
	if err == nil {
		whole, err = r.whole(s)
	}
	var a Answer
	if err == nil {
		a, err = r.verdict(s, whole)
	}
	if err != nil {
		return failed(status, "answered "+statusText(status)+", but what its body says cannot be understood, so nothing of the batch counts as done: "+err.Error())
	}
	a.Status = status
	return a
}

// bad: failed, unless the body says what else. text is what the answer looks like.
func (r *reading) bad(status int, s statement, err error, text string) Answer {
	said, unknown := r.whole(s)
	if unknown != nil {
		said = Result{} // no surprise: everybody's errors have a status
	}
	if err == nil && s.itemized() {
		var a Answer
		if a, err = r.verdict(s, said); err == nil && a.Each != nil {
			a.Status = status
			return a
		}
		if err == nil {
			err = errors.New("its results name no event that is not done")
		}
	}
	if err != nil {
		text += " (" + err.Error() + ")"
	}
	switch {
	case unavailable[status] && said.Verdict != Poison && said.Verdict != Skip:
		said = Result{Verdict: Unavailable, Wait: cmp.Or(said.Wait, r.asked)}
	case said.Verdict == Done:
		said = r.later(Result{Verdict: Failed}, r.asked)
	}
	said.Error = shorten(text, maxErrorBytes)
	return Answer{Result: said, Status: status}
}

// unavailable are statuses by which a program, or what stands before it, says that it cannot answer
// at all, whatever it was asked.
var unavailable = map[int]bool{http.StatusBadGateway: true, http.StatusServiceUnavailable: true, http.StatusGatewayTimeout: true}

// later turns a failure with a wait into Later. Without one the policy says how long, and so it
// does for "retry".
func (r *reading) later(result Result, wait time.Duration) Result {
	if result.Verdict == Failed && wait > 0 {
		result.Verdict, result.Wait = Later, min(wait, r.maxWait)
	}
	return result
}

// retryAfter reads Retry-After: seconds, or a date. Nonsense is none.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	const most = 365 * 24 * time.Hour
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(most/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, min(at.Sub(now), most))
	}
	return 0
}

// refusal says what came in place of success, and what to do about it where that is plain.
func refusal(status int, header http.Header, s statement, body []byte) string {
	text := "answered " + statusText(status)
	if status/100 == 3 {
		if u, err := url.Parse(header.Get("Location")); err == nil { // a user, and all behind the path, may be secret
			u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
			if to := u.String(); to != "" {
				text += " to " + shorten(to, maxHeadBytes)
			}
		}
		return text + ": redirects are not followed: give the function the right endpoint"
	}
	said := s.complaint()
	if said == "" {
		said = headOf(body)
	}
	if said != "" {
		text += ": " + said
	}
	if hint, ok := hints[status]; ok {
		text += " (" + hint + ")"
	}
	return text
}

var hints = map[int]string{
	http.StatusUnauthorized:          "does it want a header that the function is not given?",
	http.StatusForbidden:             "does it want a header that the function is not given?",
	http.StatusNotFound:              "is the path of the endpoint right?",
	http.StatusMethodNotAllowed:      "it has to take POST",
	http.StatusRequestEntityTooLarge: "give the function smaller batches",
	http.StatusUnsupportedMediaType:  "try the function's other format",
}

func statusText(status int) string {
	if text := http.StatusText(status); text != "" {
		return strconv.Itoa(status) + " " + text
	}
	return strconv.Itoa(status)
}
