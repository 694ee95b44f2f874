package amqp

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// The conditions of the standard (§2.8.15 to §2.8.18) that we or our handlers send.
const (
	ConditionInternalError         wire.Symbol = "amqp:internal-error"
	ConditionNotFound              wire.Symbol = "amqp:not-found"
	ConditionUnauthorizedAccess    wire.Symbol = "amqp:unauthorized-access"
	ConditionDecodeError           wire.Symbol = "amqp:decode-error"
	ConditionResourceLimitExceeded wire.Symbol = "amqp:resource-limit-exceeded"
	ConditionNotAllowed            wire.Symbol = "amqp:not-allowed"
	ConditionInvalidField          wire.Symbol = "amqp:invalid-field"
	ConditionNotImplemented        wire.Symbol = "amqp:not-implemented"
	ConditionPreconditionFailed    wire.Symbol = "amqp:precondition-failed"
	ConditionResourceDeleted       wire.Symbol = "amqp:resource-deleted"
	ConditionIllegalState          wire.Symbol = "amqp:illegal-state"
	ConditionFrameSizeTooSmall     wire.Symbol = "amqp:frame-size-too-small"

	ConditionConnectionForced    wire.Symbol = "amqp:connection:forced"
	ConditionFramingError        wire.Symbol = "amqp:connection:framing-error"
	ConditionHandleInUse         wire.Symbol = "amqp:session:handle-in-use"
	ConditionUnattachedHandle    wire.Symbol = "amqp:session:unattached-handle"
	ConditionDetachForced        wire.Symbol = "amqp:link:detach-forced"
	ConditionMessageSizeExceeded wire.Symbol = "amqp:link:message-size-exceeded"
	ConditionStolen              wire.Symbol = "amqp:link:stolen"
)

// ConditionServerBusy is the live service's, for what is to be tried again after a pause: the clients do
// so by themselves, where they take the standard's resource-limit-exceeded for final.
const ConditionServerBusy wire.Symbol = "com.microsoft:server-busy"

// ErrUnchecked is for an Authenticator that cannot tell just now: another try may succeed.
var ErrUnchecked = errors.New("it cannot be checked at present")

// ErrLinkEnded is what Send and WaitCredit return once the link has ended.
var ErrLinkEnded = errors.New("the link has ended")

// errNotSource is a handler's mistake: to send before Run, or on a sink's link.
var errNotSource = errors.New("the link has no source that runs")

// What a peer does that the standard forbids, or that goes beyond our limits.
var (
	errFrameHeader    = errors.New("the frame's header makes no sense")
	errFrameTooLarge  = errors.New("the frame is larger than max-frame-size")
	errFrameType      = errors.New("the frame is of another type than is due")
	errPerformative   = errors.New("unknown performative")
	errNotOpen        = errors.New("the connection is not open yet")
	errOpenTwice      = errors.New("the connection is open already")
	errPeerFrameSize  = errors.New("max-frame-size is below 512")
	errChannelMax     = errors.New("the channel is beyond channel-max")
	errChannelInUse   = errors.New("the channel has a session already")
	errChannelUnknown = errors.New("the channel has no session")
	errHandleMax      = errors.New("the handle is beyond handle-max")
	errHandleInUse    = errors.New("the handle has a link already")
	errHandleUnknown  = errors.New("the handle has no link")
	errDirection      = errors.New("transfer on a link by which the peer receives")
	errDeliveryID     = errors.New("the delivery-id is missing, or is not that of the delivery's first transfer")
	errNameInUse      = errors.New("the session has a link of that name already")
	errCoordinator    = errors.New("transactions are not supported")
	errAnswerSize     = errors.New("the answer does not fit the peer's max-frame-size")
	errNameSize       = errors.New("the link's name does not fit the peer's max-frame-size")
	errAttachSize     = errors.New("the attach is too large")
	errSessions       = errors.New("too many sessions on the connection")
	errLinks          = errors.New("too many links on the connection")
	errOutputFull     = errors.New("too many answers wait for the peer to take them")
	errPartsFull      = errors.New("too much of unfinished messages on the connection")
	errAllPartsFull   = errors.New("the server holds too much of unfinished messages for now, of this policy or in all")
	errPartLate       = errors.New("a message was begun and not finished in time")
	errStrangerBytes  = errors.New("too much was sent before a right was shown: put a token to $cbs first")
	errPanic          = errors.New("the server made a mistake; its log has more")
)

// Why a connection ends that need not be reported.
var (
	errPeerClosed = errors.New("closed by the peer")
	errSaid       = errors.New("the peer has been told already")
	errEnded      = errors.New("the connection has ended")
	errVanished   = errors.New("the peer's machine has vanished")
)

// scope is what an error ends.
type scope uint8

const (
	scopeConnection scope = iota
	scopeSession
	scopeLink
)

// fault is how an error is reported to the peer whose doing it is.
type fault struct {
	// name is the error as a Go programmer writes it; the test of totality reads it. err
	// is nil for what the codec says.
	name      string
	err       error
	condition wire.Symbol
	scope     scope
	reason    string
}

// faults is read from the top; the first match counts.
var faults = []fault{
	{"errFrameHeader", errFrameHeader, ConditionFramingError, scopeConnection, reasonFrame},
	{"errFrameTooLarge", errFrameTooLarge, ConditionFramingError, scopeConnection, reasonFrame},
	{"errFrameType", errFrameType, ConditionFramingError, scopeConnection, reasonFrame},
	{"errChannelMax", errChannelMax, ConditionFramingError, scopeConnection, reasonFrame},
	{"errHandleMax", errHandleMax, ConditionFramingError, scopeConnection, reasonFrame},

	{"wire.DecodeError", nil, ConditionDecodeError, scopeConnection, reasonMalformed},

	{"errPerformative", errPerformative, ConditionNotImplemented, scopeConnection, reasonProtocol},
	{"errNotOpen", errNotOpen, ConditionIllegalState, scopeConnection, reasonProtocol},
	{"errOpenTwice", errOpenTwice, ConditionIllegalState, scopeConnection, reasonProtocol},
	{"errPeerFrameSize", errPeerFrameSize, ConditionInvalidField, scopeConnection, reasonProtocol},
	{"errChannelInUse", errChannelInUse, ConditionIllegalState, scopeConnection, reasonProtocol},
	{"errChannelUnknown", errChannelUnknown, ConditionIllegalState, scopeConnection, reasonProtocol},
	{"errHandleInUse", errHandleInUse, ConditionHandleInUse, scopeSession, reasonProtocol},
	{"errHandleUnknown", errHandleUnknown, ConditionUnattachedHandle, scopeSession, reasonProtocol},
	{"errDirection", errDirection, ConditionNotAllowed, scopeSession, reasonProtocol},
	{"errDeliveryID", errDeliveryID, ConditionInvalidField, scopeLink, reasonProtocol},
	{"errNameInUse", errNameInUse, ConditionNotAllowed, scopeLink, reasonProtocol},
	{"errCoordinator", errCoordinator, ConditionNotImplemented, scopeLink, reasonProtocol},
	{"errAnswerSize", errAnswerSize, ConditionFrameSizeTooSmall, scopeLink, reasonProtocol},
	{"errNameSize", errNameSize, ConditionFrameSizeTooSmall, scopeSession, reasonProtocol},
	{"errAttachSize", errAttachSize, ConditionResourceLimitExceeded, scopeLink, reasonAttach},

	{"errSessions", errSessions, ConditionResourceLimitExceeded, scopeSession, reasonSessions},
	{"errLinks", errLinks, ConditionResourceLimitExceeded, scopeLink, reasonLinks},
	{"errOutputFull", errOutputFull, ConditionResourceLimitExceeded, scopeConnection, reasonOutput},
	{"errPartsFull", errPartsFull, ConditionServerBusy, scopeConnection, reasonParts},
	{"errAllPartsFull", errAllPartsFull, ConditionServerBusy, scopeLink, reasonParts},
	{"errPartLate", errPartLate, ConditionConnectionForced, scopeConnection, reasonParts},
	{"errStrangerBytes", errStrangerBytes, ConditionResourceLimitExceeded, scopeConnection, reasonStranger},
	{"errPanic", errPanic, ConditionInternalError, scopeConnection, reasonPanic},
}

// judge finds the row of an error; ok is false where it has none, which is so for what
// handlers return and for what befalls the connection.
func judge(err error) (fault, bool) {
	_, malformed := errors.AsType[*wire.DecodeError](err)
	for _, f := range faults {
		if f.err == nil && malformed || f.err != nil && errors.Is(err, f.err) {
			return f, true
		}
	}
	return fault{}, false
}

// asError is how an error, a handler's or our own, is put to the peer; nil for none.
func asError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if f, ok := judge(err); ok {
		return &Error{Condition: f.condition, Description: err.Error()}
	}
	return &Error{Condition: ConditionInternalError, Description: err.Error()}
}

// levelOf is how loud an error is said in the log: what the peer gets as an internal
// error is nothing that the handler foresaw.
func levelOf(err error) slog.Level {
	if asError(err).Condition == ConditionInternalError {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// The words of the live service for what clients know by its words.

func errorTooLarge(id uint32, size, limit uint64) *Error {
	return &Error{Condition: ConditionMessageSizeExceeded, Description: fmt.Sprintf(
		"The received message (delivery-id:%d, size:%d bytes) exceeds the limit (%d bytes) currently allowed on the link.", id, size, limit)}
}

func errorIdle(milliseconds int64, container string) *Error {
	return &Error{Condition: ConditionConnectionForced, Description: fmt.Sprintf(
		"The connection was inactive for more than the allowed %d milliseconds and is closed by container '%s'.", milliseconds, container)}
}

// errorFull is for connections that there is no permit for. A stranger's is free again soon, so
// that clients are to come again.
func errorFull(err error) *Error {
	condition := ConditionConnectionForced
	if full, ok := errors.AsType[*admission.FullError](err); ok && full.Kind != admission.Strangers {
		condition = ConditionResourceLimitExceeded
	}
	return &Error{Condition: condition, Description: "The connection is refused: " + err.Error() + ". Please wait and try again."}
}

// errorEvicted is for a stranger that makes room for another.
func errorEvicted() *Error {
	return &Error{Condition: ConditionConnectionForced, Description: "The connection makes room for another, because it has shown no token yet. " +
		"Please try again."}
}

func errorStopping() *Error {
	return &Error{Condition: ConditionConnectionForced, Description: "The server is shutting down."}
}
