package eventgrid

import (
	"net/http"
	"time"

	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// What to do where a request is not let in.
const (
	enterNext = "show one of the topic's keys in the header aeg-sas-key, a token made with one in aeg-sas-token, " +
		"or a policy of the namespace or a bearer token in Authorization"
	policyNext  = "check the policy's name and key; a key that was made anew ended the old one"
	expiredNext = "make a new token; if this one should still be good, compare the clocks of both machines"
)

// codeUnauthorized is the finer code of most that is not let in; the outer one is the same.
const codeUnauthorized = "Unauthorized"

// accessVerdicts are the rows for what auth and topickey say. Whether something is bad (401:
// show another) or good and not enough (403) is told by status.
var accessVerdicts = []verdict{
	{"gridapi.errNoCredential", is(errNoCredential), http.StatusUnauthorized, codeUnauthorized, enterNext, 0},
	{"gridapi.errKey", is(errKey), http.StatusUnauthorized, codeUnauthorized,
		"use key1 or key2 of this topic: eventyard topic show NAME, or POST /topics/NAME/listKeys, shows them to who may manage; a key that was made anew ended the old one", 0},
	{"gridapi.errKeysDisabled", is(errKeysDisabled), http.StatusUnauthorized, codeUnauthorized,
		"use a policy of the namespace or a bearer token, or set disableLocalAuth of the topic to false", 0},
	{"gridapi.errResource", is(errResource), http.StatusUnauthorized, codeUnauthorized, "make one for the URL that you publish to", 0},
	{"gridapi.errRights", is(errRights), http.StatusForbidden, "InsufficientRights", "use a policy that has the right", 0},

	{"topickey.ErrMalformed", is(topickey.ErrMalformed), http.StatusUnauthorized, "InvalidSas", "write it as r=RESOURCE&e=EXPIRY&s=SIGNATURE, each escaped as in URLs", 0},
	{"topickey.ErrSignature", is(topickey.ErrSignature), http.StatusUnauthorized, codeUnauthorized, "", 0},
	{"topickey.ErrExpired", is(topickey.ErrExpired), http.StatusUnauthorized, codeUnauthorized, "if it should still be good, compare the clocks of both machines", 0},

	{"auth.ErrMalformed", is(auth.ErrMalformed), http.StatusUnauthorized, codeUnauthorized,
		"write it as SharedAccessSignature sr=URI&sig=SIGNATURE&se=EXPIRY&skn=POLICY, as Bearer TOKEN, or as Basic with a policy's name and key", 0},
	{"auth.ErrSignature", is(auth.ErrSignature), http.StatusUnauthorized, codeUnauthorized, policyNext, 0},
	{"auth.ExpiredError", as[*auth.ExpiredError], http.StatusUnauthorized, codeUnauthorized, expiredNext, 0},
	{"auth.ErrExpired", is(auth.ErrExpired), http.StatusUnauthorized, codeUnauthorized, expiredNext, 0},
	{"auth.ErrRevoked", is(auth.ErrRevoked), http.StatusUnauthorized, codeUnauthorized, "use another policy or key", 0},
	{"auth.ErrUnsupported", is(auth.ErrUnsupported), http.StatusUnauthorized, codeUnauthorized, enterNext, 0},
	{"auth.ErrUnavailable", is(auth.ErrUnavailable), http.StatusServiceUnavailable, codeBusy, "the issuer of tokens does not answer; ask again in a moment", 5 * time.Second},
	{"auth.ErrAudience", is(auth.ErrAudience), http.StatusForbidden, "InsufficientRights", "use a policy or a token of the namespace: topics belong to no hub", 0},
	{"auth.ErrRights", is(auth.ErrRights), http.StatusBadRequest, codeInvalid, "use Send, Listen or Manage", 0},
	{"auth.ErrConnectionString", is(auth.ErrConnectionString), http.StatusBadRequest, codeInvalid, "GET /api/v1/connection-string gives one", 0},
}
