package eventgrid

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/caller"
)

// maxManageBytes bounds bodies that are not publications.
const maxManageBytes = 1 << 20

// call is one request to the API.
type call struct {
	*frame.Call
	handler *Handler

	route *route // nil before it is found
	names names
	// topic is the one that is published to or pulled from, once the call is let in.
	topic topics.Topic
	// caller is what it was let in with.
	caller caller.Caller
	events int // of a publication, once they are counted
}

func (d *Handler) newCall(c *frame.Call) *call {
	c.ID = frame.NewID()
	c.Header().Set("X-Ms-Request-Id", c.ID)
	return &call{Call: c, handler: d}
}

func (c *call) Serve() error {
	if !c.hasItsKind() {
		err := fmt.Errorf("%w: %.64q is a domain under topics, or a topic under domains: use the other path", topics.ErrTopicNotFound, c.names.topic)
		if c.R.Method == http.MethodDelete {
			return c.replyDeleted(err, topics.ErrTopicNotFound)
		}
		return err
	}
	return c.route.serve(c)
}

// hasItsKind: management tells topics from domains by the path. To make one whose name the other
// has is refused later, and better.
func (c *call) hasItsKind() bool {
	makes := c.Route.Name == "PutTopic"
	if c.Route.Need.Reach != frame.Namespace || c.Route.Need.TopicKey || c.names.topic == "" || makes {
		return true
	}
	t, err := c.handler.cfg.Topics.Topic(c.names.topic)
	return err != nil || c.isListed(t)
}

// isListed tells whether a topic is of the kind that the path is about.
func (c *call) isListed(t topics.Topic) bool { return c.route.domain == (t.Domain != nil) }

// parameter gives a value of the query, whose names clients write in any case.
func (c *call) parameter(name string) (string, bool) {
	for given, values := range c.R.URL.Query() {
		if strings.EqualFold(given, name) && len(values) > 0 {
			return values[0], true
		}
	}
	return "", false
}

// number gives a number of the query within its bounds.
func (c *call) number(name string, least, most, otherwise int) (int, error) {
	text, ok := c.parameter(name)
	if !ok {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, &frame.Refusal{
			Status: http.StatusBadRequest, Code: "InvalidQueryParameterValue",
			Detail: fmt.Sprintf("%s is %.32q", name, text),
			Next:   fmt.Sprintf("give a number from %d to %d", least, most),
		}
	}
	return n, nil
}

// body reads all of a request's body, at most as many bytes as the route allows.
func (c *call) body() ([]byte, error) {
	most := c.Route.MaxBody
	if coding := c.R.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, &frame.Refusal{
			Status: http.StatusUnsupportedMediaType, Code: "InvalidContentEncoding",
			Detail: fmt.Sprintf("the body is encoded as %.32q", coding), Next: "send it as it is, without Content-Encoding",
		}
	}
	if c.R.ContentLength > most {
		return nil, c.tooLarge()
	}
	text, err := frame.ReadBody(http.MaxBytesReader(c.ResponseWriter, c.R.Body, most), c.R.ContentLength)
	if err != nil {
		if _, beyond := errors.AsType[*http.MaxBytesError](err); beyond {
			return nil, c.tooLarge()
		}
		status := http.StatusBadRequest
		if errors.Is(err, os.ErrDeadlineExceeded) {
			status = http.StatusRequestTimeout // which clients try again by themselves
		}
		return nil, &frame.Refusal{
			Status: status, Code: "RequestBodyIncomplete",
			Detail: "the body did not come whole: " + err.Error(), Next: "send the request again; nothing was stored",
		}
	}
	return text, nil
}

// tooLarge says how much a body may have, of a publication in the words that Event Grid's clients
// know.
func (c *call) tooLarge() error {
	said := &frame.Refusal{
		Status: http.StatusRequestEntityTooLarge, Code: codeTooLarge,
		Detail: fmt.Sprintf("the body is too large, it may have at most %d bytes", c.Route.MaxBody), Next: "make it smaller",
	}
	if c.publishes() {
		said.Detail = fmt.Sprintf("The maximum size (%d) has been exceeded", c.Route.MaxBody)
		said.Next = "split it into several smaller requests; an event that is too large alone has to become smaller"
	}
	return said
}

// publishes tells whether events come by this call.
func (c *call) publishes() bool { return c.Route.Need.TopicKey && c.Route.Need.OneOf[0] == auth.Send }

// takeUntil lets the answer take longer than the server allows by itself.
func (c *call) takeUntil(at time.Time) {
	connection := http.NewResponseController(c.Call)
	_ = connection.SetReadDeadline(at) // a connection that is not read ends the request, too
	_ = connection.SetWriteDeadline(at)
}

// reply ends a call with a whole answer; body may be nil.
func (c *call) reply(status int, contentType string, body []byte) error {
	frame.Reply(c, status, contentType, body)
	return nil
}

// replyJSON ends a call with a document.
func (c *call) replyJSON(status int, document any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // URLs are read by people, too
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return c.reply(status, "application/json", text.Bytes())
}

// show ends a call with a document, or with the error that there is instead.
func (c *call) show(document any, err error) error {
	if err != nil {
		return err
	}
	return c.replyJSON(http.StatusOK, document)
}

// showChanged is show for what was changed.
func (c *call) showChanged(document any, err error) error {
	if err == nil && c.route.created {
		return c.replyJSON(http.StatusCreated, document)
	}
	return c.show(document, err)
}

// shorten keeps what a client wrote from filling an answer.
func shorten(text string) string { return fmt.Sprintf("%.128q", text) }
