package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// posted is what a webhook gets.
type posted struct {
	ID   string `json:"id"` // the same for each repeat
	Type string `json:"type"`
	// Text is a line that receivers of chats show.
	Text      string           `json:"text"`
	Function  string           `json:"function"`
	Hub       string           `json:"hub"`
	Group     string           `json:"group"`
	State     breaker.State    `json:"state"`
	Incident  string           `json:"incident,omitempty"`
	Since     time.Time        `json:"since,omitzero"`
	By        string           `json:"by,omitempty"`
	Reason    string           `json:"reason,omitempty"`
	Failures  int              `json:"failures"`
	Errors    []breaker.Sample `json:"errors"`
	Lag       *int64           `json:"lag,omitempty"`
	ResumeURL string           `json:"resumeUrl,omitempty"`
	Expires   time.Time        `json:"expires,omitzero"`
	Command   string           `json:"command,omitempty"` // that resumes
}

func postOf(n notice, target string) posted {
	p := posted{
		ID: n.id(target), Type: eventType(n.Record.State), Text: n.chatLine(), Function: n.Function, Hub: n.Group.Hub, Group: n.Group.Group,
		State: n.Record.State, Incident: n.Incident, Since: n.Record.Since.UTC(), By: n.Record.By, Reason: n.Record.Reason,
		Failures: n.Began.Failures, Errors: samplesOf(n.Began), Lag: known(n.Lag), ResumeURL: n.Link,
	}
	if n.Link != "" {
		p.Expires = n.Expires.UTC()
	}
	switch n.Kind {
	case kindTest:
		p.Type = "Eventyard.Test"
	case kindOpened, kindHeld:
		p.Command = n.command()
	}
	return p
}

// chatLine is the text for chats. Names are all it has of what others wrote, and of those nothing
// that a chat takes for a link or a mention.
func (n notice) chatLine() string {
	text := fmt.Sprintf("%s (hub %s, group %s).", n.headline(), oneLine(n.Group.Hub, maxNameBytes), oneLine(n.Group.Group, maxNameBytes))
	if n.Kind != kindEnded && n.Lag >= 0 {
		text += fmt.Sprintf(" %s waiting, nothing is lost.", events(n.Lag))
	}
	if n.Kind != kindEnded && n.Kind != kindTest && n.Link == "" {
		text += " To resume: " + n.command()
	}
	text = strings.NewReplacer("&", "+", "<", "(", ">", ")", "@", "(at)", "*", " ", "`", "'").Replace(text)
	if n.Link != "" {
		text += " Look and resume: " + n.Link
	}
	return text
}

// post sends a notice to a webhook.
func (s *sender) post(ctx context.Context, target string, n notice) error {
	body, err := json.Marshal(postOf(n, target))
	if err != nil {
		return fmt.Errorf("compose a webhook's notice: %w", err)
	}
	a := s.cfg.Client.Do(ctx, egress.Request{
		Endpoint: egress.Endpoint{URL: target}, Method: http.MethodPost, Body: body, Timeout: attemptTime,
		Header: http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {n.id(target)}},
	})
	switch {
	case a.Err != nil:
		return a.Err
	case a.Status/100 == 2:
		return nil
	}
	answered := fmt.Errorf("it answered %d", a.Status)
	if said := oneLine(string(a.Head), maxErrorBytes); said != "" {
		answered = fmt.Errorf("it answered %d: %s", a.Status, said)
	}
	passing := []int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}
	return &refusal{error: answered, final: a.Status < 500 && !slices.Contains(passing, a.Status), after: a.RetryAfter}
}
