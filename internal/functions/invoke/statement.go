package invoke

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// statement is what a body says in our language: results of single events (our own way, or AWS
// Lambda's), or a status for all of them. The zero statement says nothing.
type statement struct {
	Results    json.RawMessage `json:"results"`
	Failures   json.RawMessage `json:"batchItemFailures"`
	Status     json.RawMessage `json:"status"`
	Error      json.RawMessage `json:"error"`
	RetryAfter json.RawMessage `json:"retryAfter"`
	// What others call an error's text. ErrorMessage is AWS Lambda's, for a function that has
	// thrown.
	ErrorMessage json.RawMessage `json:"errorMessage"`
	Message      json.RawMessage `json:"message"`
	Detail       json.RawMessage `json:"detail"`
	Title        json.RawMessage `json:"title"`
}

// item is the result of one event.
type item struct {
	ID             json.RawMessage `json:"id"`
	Index          json.RawMessage `json:"index"`
	Sequence       json.RawMessage `json:"sequence"`
	SequenceNumber json.RawMessage `json:"sequenceNumber"` // as events in the other format have it
	Status         json.RawMessage `json:"status"`
	Error          json.RawMessage `json:"error"`
	RetryAfter     json.RawMessage `json:"retryAfter"`
	// Identifier is AWS Lambda's.
	Identifier json.RawMessage `json:"itemIdentifier"`
}

// parseStatement reads a body. An error means that it seems to say something about the events, and
// nobody can tell what. A body that is about something else, or nothing, is no error.
func parseStatement(body []byte) (statement, error) {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
	if len(body) == 0 {
		return statement{}, nil
	}
	var s statement
	var err error
	switch body[0] {
	case '{':
		err = json.Unmarshal(body, &s)
	case '[':
		err = checkArray(body)
	default: // what is not written in UTF-8 has zeros between its characters
		if text := bytes.ReplaceAll(body, []byte{0}, nil); len(text) < len(body) && seemsToJudge(text) {
			err = errors.New("it is not written in UTF-8")
		}
	}
	if _, syntax := errors.AsType[*json.SyntaxError](err); syntax {
		// What begins like an object, or a list of them, may be one that broke off, where the
		// length of the answer was not given.
		rest := bytes.TrimLeft(body, "[{ \t\r\n")
		if begun := len(rest) == 0 || rest[0] == '"'; !begun && !seemsToJudge(body) {
			return statement{}, nil
		}
		err = fmt.Errorf("it is not valid JSON: %w", err)
	}
	if err != nil {
		return statement{}, err
	}
	return s, nil
}

// checkArray finds results that somebody forgot to put into an object.
func checkArray(body []byte) error {
	var all []json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		return err
	}
	for _, raw := range all {
		var it item
		if json.Unmarshal(raw, &it) == nil && !(absent(it.Status) && absent(it.Identifier)) {
			return errors.New(`it is an array: put the results into an object, like {"results":[…]}`)
		}
	}
	return nil
}

// seemsToJudge tells whether what is no JSON was meant to be about events, such as a dictionary as
// Python prints it, or an object that was cut off.
func seemsToJudge(body []byte) bool {
	lower := string(bytes.ToLower(body))
	return slices.ContainsFunc([]string{"results", "batchitemfailures", "status"}, func(word string) bool { return strings.Contains(lower, word) })
}

// absent: a member that is not there, or null, which means the same.
func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// itemized tells whether there are results of single events, be it none.
func (s statement) itemized() bool { return !absent(s.Results) || !absent(s.Failures) }

// accuses tells whether there is an error where neither a status nor results say what it means.
func (s statement) accuses() bool {
	return absent(s.Status) && isNothing(s.Results) && isNothing(s.Failures) && !(isNothing(s.Error) && isNothing(s.ErrorMessage))
}

// isNothing takes what people write where there is nothing to tell.
func isNothing(raw json.RawMessage) bool {
	switch strings.Trim(string(raw), "[]{} \t\r\n") {
	case "", "null", `""`, "false", "0":
		return true
	}
	return false
}

// complaint is the text of what went wrong; empty: there is none.
func (s statement) complaint() string {
	for _, raw := range []json.RawMessage{s.Error, s.ErrorMessage, s.Message, s.Detail, s.Title} {
		if text := errorText(raw); text != "" {
			return text
		}
	}
	return ""
}

// errorText is what an error says: itself, or the message within.
func errorText(raw json.RawMessage) string {
	if absent(raw) {
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return shorten(text, maxErrorBytes)
	}
	var inner struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &inner) == nil && inner.Message != "" {
		return shorten(inner.Message, maxErrorBytes)
	}
	return headOf(raw)
}

// words are what a status may be.
var words = map[string]Verdict{
	"done": Done, "ok": Done, "success": Done,
	"failed": Failed, "error": Failed, "retry": Failed,
	"poison": Poison, "skip": Skip, "untouched": Untouched,
}

const wordsHelp = "use done, failed, retry, skip, poison or untouched"

func parseStatus(raw json.RawMessage) (Verdict, error) {
	var word string
	if absent(raw) {
		return 0, errors.New("a result has no status: " + wordsHelp)
	}
	if json.Unmarshal(raw, &word) != nil {
		return 0, fmt.Errorf("the status %.40s is no text: %s", raw, wordsHelp)
	}
	v, ok := words[strings.ToLower(strings.TrimSpace(word))]
	if !ok {
		return 0, fmt.Errorf("the status %.40q is not known: %s", word, wordsHelp)
	}
	return v, nil
}

// parseWait reads seconds, or text like "5s" or "5".
func parseWait(raw json.RawMessage) (time.Duration, error) {
	if absent(raw) {
		return 0, nil
	}
	text := string(raw)
	var quoted string
	if json.Unmarshal(raw, &quoted) == nil {
		text = strings.TrimSpace(quoted)
		if d, err := time.ParseDuration(text); err == nil && d >= 0 {
			return d, nil
		}
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 0) {
		return 0, fmt.Errorf("retryAfter %.40s is no wait: give seconds, or text like \"5s\"", raw)
	}
	const most = 365 * 24 * 60 * 60 // beyond it a duration would overflow
	return time.Duration(min(seconds, most) * float64(time.Second)), nil
}
