package eventhubs

import (
	"errors"
	"strings"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// bodyOf gives the bytes of a stored message's only data section.
func bodyOf(t testing.TB, stored []byte) string {
	t.Helper()
	m := testkit.Value(wire.Sections(stored))(t)
	r := wire.NewReader(m.Body)
	body := testkit.Value(r.ReadData())(t)
	return string(body)
}

func newSender(t testing.TB, s *goamqp.Session, address string, opts *goamqp.SenderOptions) *goamqp.Sender {
	t.Helper()
	return testkit.Value(s.NewSender(t.Context(), address, opts))(t)
}

// listening says what a receiver asks for; zero fields ask for nothing.
type listening struct {
	from         string
	epoch        any
	name         string
	credit       int32
	capabilities []string
}

func (l listening) options() *goamqp.ReceiverOptions {
	opts := &goamqp.ReceiverOptions{
		Credit:              l.credit,
		SettlementMode:      goamqp.ReceiverSettleModeFirst.Ptr(),
		Properties:          map[string]any{},
		DesiredCapabilities: l.capabilities,
	}
	if opts.Credit == 0 {
		opts.Credit = 300
	}
	if l.from != "" {
		opts.Filters = []goamqp.LinkFilter{goamqp.NewLinkFilter(selectorFilter, 0x0000468C00000004, l.from)}
	}
	if l.epoch != nil {
		opts.Properties[string(propertyEpoch)] = l.epoch
	}
	if l.name != "" {
		opts.Properties[string(propertyReceiverName)] = l.name
	}
	return opts
}

func newReceiver(t testing.TB, s *goamqp.Session, address string, l listening) *goamqp.Receiver {
	t.Helper()
	return testkit.Value(s.NewReceiver(t.Context(), address, l.options()))(t)
}

// receive takes the next so many messages.
func receive(t testing.TB, r *goamqp.Receiver, n int) []*goamqp.Message {
	t.Helper()
	all := make([]*goamqp.Message, n)
	for i := range all {
		m := testkit.Value(r.Receive(t.Context(), nil))(t)
		all[i] = m
	}
	return all
}

func texts(messages []*goamqp.Message) string {
	list := make([]string, len(messages))
	for i, m := range messages {
		list[i] = string(m.GetData())
	}
	return strings.Join(list, " ")
}

// remoteError is what the server said, however go-amqp has wrapped it.
func remoteError(t testing.TB, err error) *goamqp.Error {
	t.Helper()
	if link, ok := errors.AsType[*goamqp.LinkError](err); ok && link.RemoteErr != nil {
		return link.RemoteErr
	}
	if remote, ok := errors.AsType[*goamqp.Error](err); ok {
		return remote
	}
	t.Fatalf("the server said nothing: %v", err)
	return nil
}

// wantError holds what the server said against a condition and the beginning of a text,
// which has to end as the service ends its texts.
func wantError(t testing.TB, err error, condition wire.Symbol, text string) {
	t.Helper()
	remote := remoteError(t, err)
	if wire.Symbol(remote.Condition) != condition || !strings.HasPrefix(remote.Description, text) {
		t.Errorf("the error is %s:\n%s\nwant %s:\n%s", remote.Condition, remote.Description, condition, text)
	}
	if !trackingEnd.MatchString(remote.Description) {
		t.Errorf("the text does not end as it should: %s", remote.Description)
	}
}

// annotation gives one of a message's annotations.
func annotation[T any](t testing.TB, m *goamqp.Message, name string) T {
	t.Helper()
	v, ok := m.Annotations[name].(T)
	testkit.MustEqual(t, ok, true, "annotation %s is %T %v", name, m.Annotations[name], m.Annotations[name])
	return v
}

var yearOne = time.Time{}.UTC()
