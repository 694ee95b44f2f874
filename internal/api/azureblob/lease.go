package azureblob

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/blob"
)

// leaseKinds are the actions by their names, with the status of success.
var leaseKinds = map[string]struct {
	kind   blob.LeaseKind
	status int
}{
	"acquire": {blob.AcquireLease, http.StatusCreated},
	"renew":   {blob.RenewLease, http.StatusOK},
	"change":  {blob.ChangeLease, http.StatusOK},
	"release": {blob.ReleaseLease, http.StatusOK},
	"break":   {blob.BreakLease, http.StatusAccepted},
}

func (c *call) leaseBlob() error {
	action, when, err := c.leaseAction()
	if err != nil {
		return err
	}
	b, err := c.handler.blobs.Lease(c.R.Context(), c.at, action, when)
	if err != nil {
		return err
	}
	return c.sendLeased(b.Lease, b.ETag, b.Modified)
}

func (c *call) leaseContainer() error {
	action, when, err := c.leaseAction()
	if err != nil {
		return err
	}
	container, err := c.handler.blobs.LeaseContainer(c.R.Context(), c.at, action, when)
	if err != nil {
		return err
	}
	return c.sendLeased(container.Lease, container.ETag, container.Modified)
}

// leaseAction reads what is to be done to a lease.
func (c *call) leaseAction() (action blob.LeaseAction, when blob.Conditions, err error) {
	h := c.R.Header
	name := strings.ToLower(h.Get("x-ms-lease-action"))
	known, ok := leaseKinds[name]
	if !ok {
		return action, when, invalidHeader("x-ms-lease-action", name)
	}
	action.Kind = known.kind
	if name != "break" && c.grant.mayOnlyCreate() {
		return action, when, refusal(http.StatusForbidden, "AuthorizationPermissionMismatch", "a lease takes the permission to write")
	}
	if when, err = c.conditions(); err != nil {
		return action, when, err
	}
	byID := name == "renew" || name == "change" || name == "release"
	if action.ID, err = leaseIDOf(h, "x-ms-lease-id", byID); err != nil {
		return action, when, err
	}
	if action.Proposed, err = leaseIDOf(h, "x-ms-proposed-lease-id", name == "change"); err != nil {
		return action, when, err
	}
	switch name {
	case "acquire":
		if action.Proposed == "" {
			action.Proposed = frame.NewID()
		}
		if h.Get("x-ms-lease-duration") == "" {
			return action, when, missingHeader("x-ms-lease-duration")
		}
		action.Duration, err = seconds(h, "x-ms-lease-duration", -1)
	case "break":
		if h.Get("x-ms-lease-break-period") != "" {
			action.Period = new(time.Duration)
			*action.Period, err = seconds(h, "x-ms-lease-break-period", 0)
		}
	}
	return action, when, err
}

func seconds(h http.Header, name string, least int) (time.Duration, error) {
	n, err := strconv.Atoi(h.Get(name))
	if err != nil || n < least || n > 1000 {
		return 0, invalidHeader(name, h.Get(name))
	}
	return time.Duration(n) * time.Second, nil
}

func (c *call) sendLeased(l blob.Lease, etag string, modified time.Time) error {
	name := strings.ToLower(c.R.Header.Get("x-ms-lease-action"))
	h := c.Header()
	c.sendVersion(etag, modified)
	switch name {
	case "acquire", "renew", "change":
		h.Set("x-ms-lease-id", l.ID)
	case "break":
		h.Set("x-ms-lease-time", strconv.Itoa(int(l.Left(time.Now())/time.Second)))
	}
	return c.reply(leaseKinds[name].status)
}
