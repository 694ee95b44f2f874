package eventhubs

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/quota"
)

// The texts of errors are a part of the protocol: some clients distinguish one error from
// another by its words, and so do their tests. They are kept as Event Hubs writes them.

// entity is what an error is about, for its text.
type entity struct {
	// host is what the client calls the yard, namespace what the yard calls itself.
	host, namespace string
	address
}

// resource is the entity as a URI.
func (p entity) resource() string { return p.resourceOf(p.path()) }

func (p entity) resourceOf(path string) string {
	return "sb://" + shown(cmp.Or(p.host, p.namespace)) + "/" + shown(path)
}

// describe ends a text as all texts of the service end, so that searches for such an end find it.
// The yard logs the same id. The tracker has the form ns:eventhub:hub~partition|group.
func (p entity) describe(text string, id string, now time.Time) string {
	tracker := p.namespace + ":eventhub"
	for _, part := range [][2]string{{":", p.hub}, {"~", p.partition}, {"|", p.group}} {
		if part[1] != "" {
			tracker += part[0] + shown(part[1])
		}
	}
	return fmt.Sprintf("%s TrackingId:%s, SystemTracker:%s, Timestamp:%s",
		text, id, tracker, now.UTC().Format("2006-01-02T15:04:05"))
}

// newTrackingID makes an id that nobody else has.
func newTrackingID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x_G0", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// maxShown is how many bytes of a client's text are repeated to it.
const maxShown = 256

// shown makes a client's text fit to be repeated: short, and valid UTF-8.
func shown(text string) string {
	if len(text) > maxShown {
		cut := maxShown
		for cut > maxShown-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// textNotFound is recognised by its words: without them some clients try again for minutes.
func (p entity) textNotFound(e *broker.NotFoundError) string {
	switch e.Kind {
	case broker.KindPartition:
		return fmt.Sprintf("The specified partition is invalid for an EventHub partition sender or receiver. "+
			"It should be between 0 and %d.", e.Partitions-1)
	case broker.KindGroup:
		text := fmt.Sprintf("The messaging entity '%s:eventhub:%s~%s|%s' could not be found.",
			p.namespace, shown(e.Hub), shown(p.partition), shown(e.Name))
		if e.Similar != "" {
			text += fmt.Sprintf(" There is a consumer group '%s', and case matters here.", shown(e.Similar))
		}
		return text
	default:
		return p.textMissing(e.Name)
	}
}

func (p entity) textMissing(path string) string {
	return fmt.Sprintf("The messaging entity '%s' could not be found.", p.resourceOf(path))
}

// unauthorized refuses what takes rights that the connection does not have.
func (p entity) unauthorized(need auth.Rights) *amqp.Error {
	return &amqp.Error{Condition: condUnauthorized, Description: p.textUnauthorized(need)}
}

func (p entity) textUnauthorized(need auth.Rights) string {
	return fmt.Sprintf("Unauthorized access. '%s' claim(s) are required to perform this operation. Resource: '%s'.",
		need, p.resource())
}

// The texts of the epoch rules (H5 to H7), A to D as the reference calls them.

// textEvicted is A.
func textEvicted(e *broker.EvictedError) string {
	old := ""
	if e.Epoch != nil {
		old = fmt.Sprint(*e.Epoch)
	}
	return fmt.Sprintf("New receiver '%s' with higher epoch of '%d' is created hence current receiver '%s' "+
		"with epoch '%s' is getting disconnected. If you are recreating the receiver, make sure a higher epoch is used.",
		receiverName(e.NewName), e.NewEpoch, receiverName(e.Name), old)
}

// textEpoch is B, or C for a newcomer without epoch.
func textEpoch(e *broker.EpochError) string {
	if e.Epoch == nil {
		return fmt.Sprintf("At least one receiver for the endpoint is created with epoch of '%d', and so non-epoch receiver "+
			"is not allowed. Either reconnect with a higher epoch, or make sure all epoch receivers are closed or disconnected.",
			e.OldEpoch)
	}
	return fmt.Sprintf("Receiver '%s' with a higher epoch '%d' already exists. "+
		"Receiver '%s' with epoch %d cannot be created. Make sure you are creating receiver with increasing epoch value "+
		"to ensure connectivity, or ensure all old epoch receivers are closed or disconnected.",
		receiverName(e.OldName), e.OldEpoch, receiverName(e.Name), *e.Epoch)
}

// textQuota is D.
func textQuota(e *broker.ReceiverQuotaError) string {
	return fmt.Sprintf("Exceeded the maximum number of allowed receivers per partition in a consumer group which is %d. "+
		"List of connected receivers - %s.", e.Limit, strings.Join(each(e.Names, receiverName), ", "))
}

// textThrottled begins as D.
func textThrottled(e *quota.Error) string {
	return fmt.Sprintf("The request was terminated because the entity is being throttled. Error code : 50002. "+
		"Please wait %d seconds and try again: %s.", int(e.Seconds().Seconds()), e.Error())
}

// textProducerState is for an idempotent producer's link.
const textProducerState = "Invalid range for idempotent producer state. " +
	"Producer Id, Epoch, and Sequence Number must be zero or positive."

// receiverName is what a receiver is called in errors.
func receiverName(name string) string { return shown(cmp.Or(name, "nil")) }

// The texts of $cbs.
const (
	textSignature   = "InvalidSignature: The token has an invalid signature."
	textAudience    = "InvalidAudience: The authorization header contains a token with a wrong audience."
	textExpiredOnce = "ExpiredToken: The token is expired."
	textRevoked     = "RevokedToken: The policy, key or hub that the token was made with was deleted or made anew."
	textUnavailable = "The token cannot be checked at present. Please wait and try again."
)

// textNoToken is for connections that nobody has put a token on.
func textNoToken(patience time.Duration) string {
	return fmt.Sprintf("The connection was closed because it has had no rights for %s: "+
		"put a token at %s, or log in by a policy's name and key.", patience, wordClaims)
}

// The texts of what storage says, in our own words.
const (
	textUncertain       = "The outcome is unknown: what was sent may or may not have been stored."
	textUncertainChange = "The outcome is unknown: the change may or may not have been made."
	textDeadline        = "The operation did not end within its time; it may or may not have been done."
	textCanceled        = "The operation was cancelled; it may or may not have been done."
	textFenced          = "The partition's writer was replaced: nothing was stored. Please send again."
	textOutOfReach      = "Storage is out of reach at present: nothing was stored. Please wait and try again."
	textStopping        = "The yard is stopping. Please try again when it is back."
	textNoSpace         = "The request was terminated because storage is full: nothing was stored. " +
		"Free space, or shorten a hub's retention; writing resumes by itself."
	textNoSpaceChange    = "The request was terminated because storage is full: nothing was changed."
	textOutOfReachChange = "The request was terminated because storage is out of reach: nothing was changed. Please wait and try again."
)
