package v1

import (
	"net/http"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// accessAnswers are the rows for what auth and access say. Whether a token is bad (401:
// show another) or good and not enough (403: nothing else will help but more rights) is
// told by status. The rows of 401 are completed with how to enter.
var accessAnswers = []answer{
	{
		name: "httpapi.errNoToken", match: is(errNoToken),
		status: http.StatusUnauthorized, kind: "no-token",
		title: "Nobody is let in without a token",
		next:  "send an Authorization header: SharedAccessSignature, Bearer, or Basic with a policy's name and key",
	},
	{
		name: "auth.ErrMalformed", match: is(auth.ErrMalformed),
		status: http.StatusUnauthorized, kind: "malformed-token",
		title: "The Authorization header cannot be read",
		next:  "write it as SharedAccessSignature sr=URI&sig=SIGNATURE&se=EXPIRY&skn=POLICY, as Bearer TOKEN, or as Basic with a policy's name and key",
	},
	{
		name: "auth.ErrSignature", match: is(auth.ErrSignature),
		status: http.StatusUnauthorized, kind: "invalid-signature",
		title: "The policy or its key is wrong",
		next:  "check the policy's name and key; a key that was made anew ended the old one, and a policy of a hub is good for that hub only",
	},
	{
		name: "auth.ExpiredError", match: as[*auth.ExpiredError],
		status: http.StatusUnauthorized, kind: "expired-token",
		title: "The token has expired",
		next:  expiredNext,
	},
	{
		name: "auth.ErrExpired", match: is(auth.ErrExpired),
		status: http.StatusUnauthorized, kind: "expired-token",
		title: "The token has expired",
		next:  expiredNext,
	},
	{
		name: "auth.ErrRevoked", match: is(auth.ErrRevoked),
		status: http.StatusUnauthorized, kind: "revoked-token",
		title: "The token is good no more",
		next:  "use another policy or key: the one of this token was deleted or made anew, or its hub was",
	},
	{
		name: "auth.ErrUnsupported", match: is(auth.ErrUnsupported),
		status: http.StatusUnauthorized, kind: "unsupported-token",
		title: "Tokens of this kind are not accepted",
		next:  "use a SharedAccessSignature, or Basic with a policy's name and key; Bearer tokens need an issuer that the yard is told to trust",
	},
	{
		name: "auth.ErrUnavailable", match: is(auth.ErrUnavailable),
		status: http.StatusServiceUnavailable, kind: "token-unchecked",
		title:      "The token cannot be checked at present",
		next:       "the issuer of tokens does not answer; ask again in a moment",
		retryAfter: 5 * time.Second,
	},
	{
		name: "auth.ErrAudience", match: is(auth.ErrAudience),
		status: http.StatusForbidden, kind: "wrong-audience",
		title: "The token is for something else",
		next:  "use a token for what is asked for: a hub's own, or one for the whole namespace",
	},
	{
		name: "httpapi.errRights", match: is(errRights),
		status: http.StatusForbidden, kind: "insufficient-rights",
		title: "The token gives too few rights",
		next:  "use a policy that has the right; who has Manage sees all policies at GET /api/v1/policies",
	},
	{
		name: "auth.ErrRights", match: is(auth.ErrRights),
		status: http.StatusBadRequest, kind: "invalid-rights",
		title: "That is no right",
		next:  `give at least one of them: {"rights":["Send","Listen","Manage"]}`,
	},
	{
		name: "auth.ErrConnectionString", match: is(auth.ErrConnectionString),
		status: http.StatusBadRequest, kind: "invalid-connection-string",
		title: "The connection string cannot be used",
		next:  "GET /api/v1/connection-string gives one",
	},
	{
		name: "access.ErrNotFound", match: is(access.ErrNotFound),
		status: http.StatusNotFound, kind: "policy-not-found",
		title: "There is no such policy",
		next:  "GET /api/v1/policies lists those of the namespace, GET /api/v1/hubs/{hub}/policies those of a hub",
	},
	{
		name: "access.ErrExists", match: is(access.ErrExists),
		status: http.StatusConflict, kind: "policy-exists",
		title: "A policy of that name exists",
		next:  "use it, make its keys anew, delete it first, or choose another name",
	},
	{
		name: "access.ErrInvalid", match: is(access.ErrInvalid),
		status: http.StatusBadRequest, kind: "invalid-policy",
		title: "Such a policy is not allowed",
		next:  "leave the keys out to have them made; all fields are described at /api/v1/openapi.json",
	},
	{
		name: "access.ErrRootPolicy", match: is(access.ErrRootPolicy),
		status: http.StatusConflict, kind: "root-policy",
		title: "The root policy stays",
		next:  "make its keys anew to lock out whoever has them: POST /api/v1/policies/" + auth.RootPolicy + "/regenerate",
	},
}

const expiredNext = "make a new token; if this one should still be good, compare the clocks of both machines"

// allAnswers is the whole table.
var allAnswers = slices.Concat(answers, accessAnswers, groupsAnswers, gridAnswers, functionAnswers)
