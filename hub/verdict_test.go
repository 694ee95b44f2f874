package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestWhatAnErrorComesTo(t *testing.T) {
	said := func(condition amqp.ErrCond, words string) *amqp.Error {
		return &amqp.Error{Condition: condition, Description: words}
	}
	ended := func(e *amqp.Error) error { return &amqp.LinkError{RemoteErr: e} }
	for name, test := range map[string]struct {
		err     error
		while   task
		is      error
		passing bool
	}{
		"no such hub":                          {said("amqp:not-found", "x"), sending, ErrNotFound, false},
		"no such partition":                    {said(condRange, "x"), reading, ErrNotFound, false},
		"a hub that was deleted":               {ended(said("amqp:not-found", "x")), reading, ErrNotFound, false},
		"no right to attach":                   {said("amqp:unauthorized-access", "x"), reading, ErrUnauthorized, false},
		"a token that ran out under a link":    {ended(said("amqp:unauthorized-access", "x")), reading, nil, true},
		"robbed":                               {ended(said("amqp:link:stolen", "New receiver 'a' … is getting disconnected.")), reading, ErrEvicted, false},
		"refused by a higher epoch":            {ended(said("amqp:link:stolen", "Receiver 'b' with epoch 1 cannot be created.")), reading, ErrRefused, false},
		"refused for lack of one":              {ended(said("amqp:link:stolen", "non-epoch receiver is not allowed.")), reading, ErrRefused, false},
		"refused at once":                      {said("amqp:link:stolen", "whatever"), reading, ErrRefused, false},
		"the sixth":                            {said("amqp:resource-limit-exceeded", "x"), reading, ErrRefused, false},
		"a full hub is no refusal":             {said("amqp:resource-limit-exceeded", "x"), sending, nil, false},
		"beyond the end":                       {said(condArgument, "x"), reading, ErrOutOfRange, false},
		"an argument of a send":                {said(condArgument, "x"), sending, nil, false},
		"an offset of another kind":            {said(condOffset, "x"), reading, ErrOutOfRange, false},
		"too large":                            {said("amqp:link:message-size-exceeded", "x"), sending, ErrTooLarge, false},
		"a number that does not follow":        {said(condOrder, "x"), sending, ErrOutOfOrder, false},
		"a producer's epoch that is over":      {said(condFenced, "x"), sending, ErrProducerFenced, false},
		"a hub that ignores producers":         {fmt.Errorf("attach: %w", errNoProducers), sending, errNoProducers, false},
		"busy":                                 {said(condBusy, "x"), sending, nil, true},
		"a yard that stops":                    {ended(said("amqp:connection:forced", "x")), reading, nil, true},
		"something new":                        {said("com.example:new", "x"), sending, nil, true},
		"a broken network":                     {fmt.Errorf("read: %w", io.ErrUnexpectedEOF), reading, nil, true},
		"an attempt's time":                    {context.DeadlineExceeded, sending, nil, true},
		"a certificate":                        {&tls.CertificateVerificationError{Err: errors.New("x")}, asking, nil, false},
		"an answer that something is not":      {&CallError{Code: 404}, asking, ErrNotFound, false},
		"an answer that it is not allowed":     {&CallError{Code: 403}, asking, ErrUnauthorized, false},
		"an answer that there is none of it":   {&CallError{Code: 400, condition: condRange}, asking, ErrNotFound, false},
		"an answer that it cannot be done":     {&CallError{Code: 409}, asking, nil, false},
		"an answer that it is too much":        {&CallError{Code: 503}, asking, nil, true},
		"closed":                               {ErrClosed, reading, ErrClosed, false},
		"no yard":                              {notYard(said("amqp:not-found", "x")), asking, ErrNotYard, false},
		"no yard, in Azure's words":            {notYard(said("amqp:unauthorized-access", "x")), asking, ErrNotYard, false},
		"a yard that is away when it is asked": {notYard(io.EOF), asking, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			v := judge(test.err, test.while)
			testkit.Equal(t, v.passing, test.passing, "%s: passing", name)
			for _, sentinel := range []error{ErrNotFound, ErrUnauthorized, ErrTooLarge, ErrEvicted, ErrRefused, ErrOutOfRange, ErrNotYard, ErrClosed} {
				testkit.Equal(t, errors.Is(v.err, sentinel), (sentinel == test.is),
					"%s: that it is %q", name, sentinel)
			}
			if strings.Contains(v.err.Error(), "*Error{") {
				t.Errorf("%s: reads %v", name, v.err)
			}
		})
	}
}

func TestDelaysDoubleUpToTheirMost(t *testing.T) {
	b := backoff{retry: Retry{First: time.Second, Max: 5 * time.Second}}
	for _, due := range []time.Duration{1, 2, 4, 5, 5} {
		if d := b.delay(false); d < due*time.Second/2 || d > due*time.Second {
			t.Errorf("waits %s of %d s", d, due)
		}
	}
	b.reset()
	if d := b.delay(true); d < busyPause/2 || d > busyPause {
		t.Errorf("waits %s for a busy hub", d)
	}
}

// H2: a hub that does not know producers would store again what is sent again, and is sent nothing.
func TestAHubHasToTakeNumbers(t *testing.T) {
	const id, epoch, number = "com.microsoft:producer-id", "com.microsoft:producer-epoch", "com.microsoft:producer-sequence-number"
	p := (&Hub{client: &Client{}, name: "h"}).Producer(ProducerConfig{Partition: "0", ID: 7, Epoch: 2})
	for name, test := range map[string]struct {
		reported map[string]any
		ok       bool
	}{
		"it says nothing":     {nil, false},
		"it knows the number": {map[string]any{id: int64(7), epoch: int16(2), number: int32(5)}, true},
		"it has no number":    {map[string]any{id: int64(7), epoch: int16(2), number: nil}, false},
		"it means another":    {map[string]any{id: int64(8), epoch: int16(2), number: int32(5)}, false},
		"in another epoch":    {map[string]any{id: int64(7), epoch: int16(3), number: int32(5)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := p.to.check(test.reported); (err == nil) != test.ok {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
