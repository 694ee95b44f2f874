package eventgrid

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/hubs/caller"
)

// maxTokens bounds one request to settle; that many events are received at once at most.
const maxTokens = 1000

func (c *call) acknowledge() error { return c.settle(delivery.Acknowledge, 0) }
func (c *call) reject() error      { return c.settle(delivery.Reject, 0) }
func (c *call) renewLock() error   { return c.settle(delivery.Renew, 0) }

// release takes any delay up to the longest of the book (0, 10, 60, 600 and 3600 s there).
func (c *call) release() error {
	seconds, err := c.number("releaseDelayInSeconds", 0, 3600, 0)
	if err != nil {
		return err
	}
	return c.settle(delivery.Release, time.Duration(seconds)*time.Second)
}

// settled is the answer: 200, even where some tokens, or all, could not be settled.
type settled struct {
	Succeeded []string      `json:"succeededLockTokens"`
	Failed    []failedToken `json:"failedLockTokens"`
}

type failedToken struct {
	Token string      `json:"lockToken"`
	Error errorDetail `json:"error"`
}

func (c *call) settle(how delivery.Settlement, delay time.Duration) error {
	text, err := c.body()
	if err != nil {
		return err
	}
	tokens, err := parseLockTokens(text)
	if err != nil {
		return err
	}
	s, err := c.subscription()
	if err != nil {
		return err
	}
	outcomes, err := c.handler.cfg.Pull.Settle(caller.With(c.R.Context(), c.caller), s.ID, how, delay, tokens)
	if err != nil {
		return err
	}
	answer := settled{Succeeded: []string{}, Failed: []failedToken{}}
	for _, o := range outcomes {
		if o.Err == nil {
			answer.Succeeded = append(answer.Succeeded, o.Token)
			continue
		}
		answer.Failed = append(answer.Failed, failedToken{o.Token, c.tokenError(o.Err)})
	}
	return c.replyJSON(http.StatusOK, answer)
}

// tokenError is why one token could not be settled. That of a lost lock is Event Grid's own
// text, which its clients' tests look for.
func (c *call) tokenError(err error) errorDetail {
	if errors.Is(err, delivery.ErrLockLost) {
		return errorDetail{"TokenLost", "Token has expired."}
	}
	said := c.Judge(err)
	if said.Status == http.StatusInternalServerError {
		c.handler.cfg.Log.Error("a lock token could not be settled", "topic", c.topic.Name, "subscription", c.names.subscription, "error", err)
	}
	return errorDetail{said.Code, wholeText(said)}
}

// parseLockTokens reads {"lockTokens":["…"]}.
func parseLockTokens(text []byte) ([]string, error) {
	wrong := func(what string) error {
		return &frame.Refusal{
			Status: http.StatusBadRequest, Code: "InputJsonInvalid",
			Detail: "the body is no list of lock tokens: " + what, Next: `send {"lockTokens":["…"]} with the tokens that receive gave`,
		}
	}
	var request struct {
		LockTokens []string `json:"lockTokens"`
	}
	if err := json.Unmarshal(text, &request); err != nil {
		return nil, wrong(err.Error())
	}
	switch n := len(request.LockTokens); {
	case n == 0:
		return nil, wrong("it has none")
	case n > maxTokens:
		return nil, wrong(fmt.Sprintf("it has %d, at most %d are allowed", n, maxTokens))
	}
	return request.LockTokens, nil
}
