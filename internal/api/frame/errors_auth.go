package frame

import (
	"time"

	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/caller"
)

// What to do where a request is not let in.
const (
	enterNext = "show one of the topic's keys in the header aeg-sas-key, a token made with one in aeg-sas-token, " +
		"or a policy of the namespace or a bearer token in Authorization"
	formNext    = "write it as SharedAccessSignature sr=URI&sig=SIGNATURE&se=EXPIRY&skn=POLICY, as Bearer TOKEN, or as Basic with a policy's name and key"
	expiredNext = "make a new token; if this one should still be good, compare the clocks of both machines"
)

// authRows are for who is not let in. Whether a token is bad (401: show another) or good and not
// enough (403: nothing else will help but more rights) is told by status.
var authRows = []row{
	{match: is(ErrNoToken), status: 401, kind: "no-token", title: "Nobody is let in without a token",
		next: "send an Authorization header: SharedAccessSignature, Bearer, or Basic with a policy's name and key"},
	{match: is(caller.ErrNone), status: 401, kind: "no-token", title: "Nobody is let in without a token", next: enterNext,
		grid: wording{code: "Unauthorized", next: enterNext}},
	{match: is(auth.ErrMalformed), status: 401, kind: "malformed-token", title: "The Authorization header cannot be read",
		next: formNext,
		grid: wording{code: "Unauthorized", next: formNext}},
	{match: is(auth.ErrSignature), status: 401, kind: "invalid-signature", title: "The policy or its key is wrong",
		next: "check the policy's name and key; a key that was made anew ended the old one, and a policy of a hub is good for that hub only",
		grid: wording{code: "Unauthorized", next: "check the policy's name and key; a key that was made anew ended the old one"}},
	{match: as[*auth.ExpiredError], status: 401, kind: "expired-token", title: "The token has expired",
		next: expiredNext,
		grid: wording{code: "Unauthorized", next: expiredNext}},
	{match: is(auth.ErrExpired), status: 401, kind: "expired-token", title: "The token has expired",
		next: expiredNext,
		grid: wording{code: "Unauthorized", next: expiredNext}},
	{match: is(auth.ErrRevoked), status: 401, kind: "revoked-token", title: "The token is good no more",
		next: "use another policy or key: the one of this token was deleted or made anew, or its hub was",
		grid: wording{code: "Unauthorized", next: "use another policy or key"}},
	{match: is(auth.ErrUnsupported), status: 401, kind: "unsupported-token", title: "Tokens of this kind are not accepted",
		next: "use a SharedAccessSignature, or Basic with a policy's name and key; Bearer tokens need an issuer that the yard is told to trust",
		grid: wording{code: "Unauthorized", next: enterNext}},
	{match: is(auth.ErrUnavailable), status: 503, kind: "token-unchecked", title: "The token cannot be checked at present", retryAfter: 5 * time.Second,
		next: "the issuer of tokens does not answer; ask again in a moment",
		grid: wording{code: "Busy", next: "the issuer of tokens does not answer; ask again in a moment"}},
	{match: is(auth.ErrAudience), status: 403, kind: "wrong-audience", title: "The token is for something else",
		next: "use a token for what is asked for: a hub's own, or one for the whole namespace",
		grid: wording{code: "InsufficientRights", next: "use a policy or a token of the namespace: topics belong to no hub"}},
	{match: is(auth.ErrTooFewRights), status: 403, kind: "insufficient-rights", title: "The token gives too few rights",
		next: "use a policy that has the right; who has Manage sees all policies at GET /api/v1/policies",
		grid: wording{code: "InsufficientRights", next: "use a policy that has the right"}},
	{match: is(auth.ErrRights), status: 400, kind: "invalid-rights", title: "That is no right",
		next: `give at least one of them: {"rights":["Send","Listen","Manage"]}`,
		grid: wording{code: "InvalidRequest", next: "use Send, Listen or Manage"}},
	{match: is(auth.ErrConnectionString), status: 400, kind: "invalid-connection-string", title: "The connection string cannot be used",
		next: "GET /api/v1/connection-string gives one",
		grid: wording{code: "InvalidRequest", next: "GET /api/v1/connection-string gives one"}},
	{match: is(topickey.ErrMalformed),
		grid: wording{status: 401, code: "InvalidSas", next: "write it as r=RESOURCE&e=EXPIRY&s=SIGNATURE, each escaped as in URLs"}},
	{match: is(topickey.ErrSignature),
		grid: wording{status: 401, code: "Unauthorized"}},
	{match: is(topickey.ErrExpired),
		grid: wording{status: 401, code: "Unauthorized", next: "if it should still be good, compare the clocks of both machines"}},
}
