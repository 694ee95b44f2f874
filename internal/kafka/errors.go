package kafka

import (
	"errors"
	"os"
)

// The codes of errors that the server itself answers with; the handler has a table of its own.
const (
	codeUnsupportedMechanism = 33
	codeIllegalSASLState     = 34
	codeUnsupportedVersion   = 35
	codeAuthenticationFailed = 58
)

// ErrUnchecked is for an Authenticator that cannot tell just now: another try may succeed.
var ErrUnchecked = errors.New("it cannot be checked at present")

// What a client does that the protocol forbids, or that goes beyond our limits.
var (
	errTLS           = errors.New("the TLS handshake failed")
	errTooLarge      = errors.New("the request is larger than is allowed")
	errMalformed     = errors.New("the request makes no sense")
	errKey           = errors.New("the request is not offered")
	errVersion       = errors.New("the request is not offered in that version")
	errStranger      = errors.New("the client has not shown who it is: it has to begin with SASL")
	errStrangerBytes = errors.New("too much was sent before the client has shown who it is")
	errStrangersFull = errors.New("the server holds too much for strangers for now")
	errFull          = errors.New("there is no permit for one more client")
	errMechanism     = errors.New("the SASL mechanism is not offered")
	errSASLState     = errors.New("a token without a handshake before it")
	errPlain         = errors.New("PLAIN without user and password")
	errBearer        = errors.New("OAUTHBEARER without a token")
	errSCRAM         = errors.New("the SCRAM message makes no sense")
	errProof         = errors.New("SCRAM by another password, or for a user that there is not")
	errPasswords     = errors.New("SCRAM for a user with more passwords than are tried: use PLAIN")
	errAccount       = errors.New("a connection cannot go over to another right: open a new one")
	errAuth          = errors.New("the client could not show who it is")
	errAuthTimeout   = errors.New("the client has not shown who it is in time")
	errExpired       = errors.New("the client's token has ended")
	errIdle          = errors.New("nothing came for long")
	errUntaken       = errors.New("the client does not take what it is sent")
	errPanic         = errors.New("the server made a mistake; its log has more")
)

// What a handler does wrong.
var (
	errRefused       = errors.New("the handler refused the connection")
	errNoFinish      = errors.New("the handler did not say how the request is finished")
	errFinish        = errors.New("the handler could not finish the request")
	errUnanswered    = errors.New("the request was finished without its whole answer")
	errAnsweredTwice = errors.New("the request has its answer already")
	errNotOpen       = errors.New("bytes of an answer that was not opened")
	errAnswerSize    = errors.New("the answer is longer than announced")
)

// Why a connection ends that is nobody's fault.
var (
	errEnded    = errors.New("the connection has ended")
	errEvicted  = errors.New("the connection makes room for another, because it has not shown who it is")
	errDraining = errors.New("the server is shutting down")
)

// fault is how an error counts that ends a connection.
type fault struct {
	// name is the error as a Go programmer writes it; the test of totality reads it.
	name   string
	err    error
	reason string
}

// faults is read from the top; the first match counts.
var faults = []fault{
	{"errPanic", errPanic, reasonPanic},
	{"errTLS", errTLS, reasonTLS},
	{"errTooLarge", errTooLarge, reasonSize},
	{"errMalformed", errMalformed, reasonMalformed},
	{"errKey", errKey, reasonProtocol},
	{"errVersion", errVersion, reasonProtocol},
	{"errSASLState", errSASLState, reasonProtocol},
	{"errStranger", errStranger, reasonStranger},
	{"errStrangerBytes", errStrangerBytes, reasonStranger},
	{"errStrangersFull", errStrangersFull, reasonStranger},
	{"errFull", errFull, reasonConnections},
	{"errMechanism", errMechanism, reasonAuth},
	{"errPlain", errPlain, reasonAuth},
	{"errBearer", errBearer, reasonAuth},
	{"errSCRAM", errSCRAM, reasonAuth},
	{"errProof", errProof, reasonAuth},
	{"errPasswords", errPasswords, reasonAuth},
	{"errAccount", errAccount, reasonAuth},
	{"errAuth", errAuth, reasonAuth},
	{"ErrUnchecked", ErrUnchecked, reasonAuth},
	{"errAuthTimeout", errAuthTimeout, reasonAuthTimeout},
	{"errExpired", errExpired, reasonExpired},
	{"errIdle", errIdle, reasonIdle},
	{"errUntaken", errUntaken, reasonWrite},
	{"errRefused", errRefused, reasonHandler},
	{"errNoFinish", errNoFinish, reasonHandler},
	{"errUnanswered", errUnanswered, reasonHandler},
	{"errFinish", errFinish, reasonHandler},
	{"errAnsweredTwice", errAnsweredTwice, reasonHandler},
	{"errNotOpen", errNotOpen, reasonHandler},
	{"errAnswerSize", errAnswerSize, reasonHandler},
	{"os.ErrDeadlineExceeded", os.ErrDeadlineExceeded, reasonRead},
}

// judge tells how an error counts; empty: it is nobody's fault, such as a connection that is gone.
func judge(err error) (reason string) {
	for _, f := range faults {
		if errors.Is(err, f.err) {
			return f.reason
		}
	}
	return ""
}
