package eventgrid

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// validate is the link by which the owner of an endpoint agrees to be sent events (reference
// §10). Whoever has it may: its token cannot be guessed. GET has to do it, because Event Grid's
// does, and POST, because CloudEvents' does.
func (c *call) validate() error {
	rate, err := allowedRate(c.R.Header.Get("WebHook-Allowed-Rate"))
	if err != nil {
		return err
	}
	id, _ := c.parameter("id")
	token, _ := c.parameter("token")
	if id == "" || token == "" {
		return &frame.Refusal{
			Status: http.StatusBadRequest, Code: "InvalidValidationLink",
			Detail: "the link has lost its id or its token", Next: "open it whole, as the endpoint was sent it",
		}
	}
	s, err := c.handler.cfg.Topics.Confirm(c.R.Context(), id, token, rate)
	if err != nil {
		return err
	}
	message := fmt.Sprintf("The endpoint of subscription %s is confirmed: %s.", s.Name, then(s))
	if wantsPage(c.R) {
		c.page(http.StatusOK, "The endpoint is confirmed", message)
		return nil
	}
	return c.replyJSON(http.StatusOK, map[string]any{"status": "Succeeded", "subscription": s.Name, "message": message})
}

// then is what becomes of the events of a subscription that has just been confirmed.
func then(s topics.Subscription) string {
	source := "topic " + s.Source.Topic
	if s.Source.Hub != "" {
		source = "hub " + s.Source.Hub
	} else if s.Source.DomainTopic != "" {
		source = "topic " + s.Source.DomainTopic + " of domain " + s.Source.Topic
	}
	switch s.State {
	case topics.Active:
		return "events of " + source + " are delivered to it from now on"
	case topics.Paused:
		return "the subscription is paused, so that events of " + source + " wait until it is resumed"
	}
	return "the subscription is " + string(s.State) + ", " + s.Why
}

// allowedRate reads how many requests a minute an endpoint allows; 0: it does not say, or any.
func allowedRate(text string) (int, error) {
	if text == "" || text == "*" {
		return 0, nil
	}
	rate, err := strconv.Atoi(text)
	if err != nil || rate < 1 {
		return 0, &frame.Refusal{
			Status: http.StatusBadRequest, Code: "InvalidHeaderValue",
			Detail: fmt.Sprintf("WebHook-Allowed-Rate is %.32q", text), Next: "send a number of requests a minute, or *",
		}
	}
	return rate, nil
}

// wantsPage tells a person's browser from a program.
func wantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

var pageTemplate = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.Title}}</title>
<style>body{font:1.1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:4rem auto;padding:0 1rem}</style></head>
<body><h1>{{.Title}}</h1><p>{{.Text}}</p></body></html>
`))

// page answers a person. Nothing of the link goes on from there.
func (c *call) page(status int, title, text string) {
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, struct{ Title, Text string }{title, text}); err != nil {
		panic(err) // a buffer takes everything
	}
	h := c.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	_ = c.reply(status, "text/html; charset=utf-8", page.Bytes())
}
