package console

import (
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// may tells whether a grant is enough for what a link, a button or a form leads to: for the namespace or, where
// one is named, for a hub. What the API would refuse is not offered; what is asked for all the same, it judges.
func may(g auth.Grant, now time.Time, right string, hub ...string) bool {
	need, err := auth.ParseRights([]string{right})
	return err == nil && g.Allows(auth.At(strings.Join(hub, "")), need, now)
}

// may is that of whoever visits.
func (v *visit) may(right string, hub ...string) bool { return may(v.who.Grant, v.now, right, hub...) }

// May is that of whoever looks at the page, for its templates.
func (s *screen) May(right string, hub ...string) bool { return may(s.grant, s.Now, right, hub...) }

// Lacks says what a page does not offer for want of a right, and which right that takes; empty: nothing.
func (s *screen) Lacks(hub ...string) string {
	send, listen := s.May("Send", hub...), s.May("Listen", hub...)
	switch {
	case s.May("Manage", hub...):
		return ""
	case len(hub) == 0:
		return "You see the hubs that your policy is for. To create one takes Manage for the whole namespace."
	case send && listen:
		return "Your policy allows you to send and read. To change the hub takes Manage."
	case send:
		return "Your policy allows you to send. To read events takes Listen, and to change the hub Manage."
	case listen:
		return "Your policy allows you to read. To send takes Send, and to change the hub Manage."
	}
	return "Your policy has no right to this hub."
}
