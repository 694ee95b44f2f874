package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/sessions"
)

const (
	signInPath = base + "signin"
	livePath   = base + "live"
)

// entity is what rights to the console are judged by: any right at all will do.
var entity auth.Entity

// noSession is said to who is not signed in.
var noSession = &frame.Refusal{
	Status: http.StatusUnauthorized, Code: "no-session", Title: "You are not signed in",
	Detail: "there is no session, or it has ended", Next: "sign in, and do it again",
}

// tooManySessions is said to who knows a key that too many are signed in with, or any.
var tooManySessions = &frame.Refusal{
	Status: http.StatusTooManyRequests, Code: "too-many-sessions", Title: "Too many are signed in",
	Detail: "there are as many sessions as there may be, of this policy or in all",
	Next:   "sign out where you need none, or regenerate the policy's key, which ends its sessions",
}

// identity is who uses the console.
type identity struct {
	Grant auth.Grant
	// Ends is when the session does; zero: there is none, and the yard is in development mode.
	Ends time.Time
	// token is that of the session.
	token string
}

// identify finds out who sends a request: by the session's cookie or, in development mode, without.
func (c *Console) identify(r *http.Request) (identity, error) {
	for _, cookie := range c.sessionCookies(r) {
		s, err := c.cfg.Sessions.Find(r.Context(), cookie.Value)
		if err == nil {
			return identity{Grant: s.Grant, Ends: s.Ends, token: cookie.Value}, nil
		}
		if !errors.Is(err, sessions.ErrEnded) {
			return identity{}, err
		}
	}
	if !c.cfg.Access.Development() {
		return identity{}, noSession
	}
	g, err := c.cfg.Access.Key(r.Context(), auth.RootPolicy, auth.DevelopmentKey)
	return identity{Grant: g}, err
}

// maxCookies is how many of the session's name are looked at.
const maxCookies = 3

// sessionCookies are those that may be of a session, the secure ones first. Others on the same host, at
// another port, may have set one of the same name.
func (c *Console) sessionCookies(r *http.Request) []*http.Cookie {
	cookies := r.CookiesNamed(secureCookie)
	if !c.overTLS(r) {
		cookies = append(cookies, r.CookiesNamed(plainCookie)...)
	}
	return cookies[:min(len(cookies), maxCookies)]
}

// The session's cookie has the second name where a browser uses TLS: it takes the prefix for a promise
// that only this host has set it, and over TLS.
const plainCookie, secureCookie = "eventyard", "__Host-eventyard"

// overTLS tells whether the browser that sends a request is known to use TLS, be it to a proxy that ends it before
// the yard: it has come by the public address.
func (c *Console) overTLS(r *http.Request) bool {
	host, https := strings.CutPrefix(c.cfg.PublicURL, "https://")
	host, _, _ = strings.Cut(host, "/")
	return r.TLS != nil || https && strings.EqualFold(r.Host, strings.TrimSuffix(host, ":443"))
}

// newCookie is one that no script can read. It is not strict: a link in a mail arrives signed in. GET
// changes nothing, and the frame keeps other origins from the rest. An empty value takes it away. With a form browsers
// say which origin it is of, whatever the public address.
func (c *Console) newCookie(r *http.Request, more, value string, age time.Duration) *http.Cookie {
	cookie := &http.Cookie{Name: plainCookie + more, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(age.Seconds())}
	if c.overTLS(r) || strings.HasPrefix(r.Header.Get("Origin"), "https://") {
		cookie.Name, cookie.Secure = secureCookie+more, true
	}
	if value == "" {
		cookie.MaxAge = -1
	}
	return cookie
}

// setCookie gives a browser a session, or takes it away with an empty token. What it has under the other
// name goes: behind a proxy a browser may have both.
func setCookie(v *visit, token string) {
	set := v.console.newCookie(v.r, "", token, sessions.MaxAge)
	http.SetCookie(v.w, set)
	for _, name := range []string{plainCookie, secureCookie} {
		if name != set.Name && len(v.r.CookiesNamed(name)) > 0 {
			http.SetCookie(v.w, &http.Cookie{Name: name, Path: "/", HttpOnly: true, Secure: name == secureCookie, SameSite: http.SameSiteLaxMode, MaxAge: -1})
		}
	}
}

// signInView is the page where one signs in.
type signInView struct {
	To, Policy, Wrong string
	// Issuer signs in, too, and ByIssuer leads there; empty: there is none.
	Issuer, ByIssuer string
}

func (c *Console) showSignIn(v *visit) error {
	return v.show(http.StatusOK, "signin", c.signInScreen(signInView{To: localPath(v.r.FormValue("to"))}))
}

// signIn begins a session for who shows a key. A good one is taken whatever was shown before it: others
// may be behind the same address. Who shows wrong ones gets the answer later and later (Refused).
func (c *Console) signIn(v *visit) error {
	unread := v.r.ParseForm()
	to := localPath(v.r.FormValue("to"))
	view := signInView{To: to, Policy: v.r.PostFormValue("policy")}
	if unread != nil {
		view.Wrong = "This is too long for a key, or cannot be read."
		return c.refuseSignIn(v, http.StatusUnprocessableEntity, view)
	}
	key := strings.TrimSpace(v.r.PostFormValue("key"))
	if key == "" {
		view.Wrong = "There is no key. Give a policy's name and key, or a whole connection string."
		return c.refuseSignIn(v, http.StatusUnprocessableEntity, view)
	}
	g, err := c.shown(v.r.Context(), view.Policy, key)
	if err != nil {
		c.cfg.Access.Refused(v.r.Context(), v.r.RemoteAddr, err)
		view.Wrong = wrongKey(view.Policy, err)
		return c.refuseSignIn(v, http.StatusUnauthorized, view)
	}
	return c.begin(v, g, to)
}

// shown checks a policy's key, or a connection string in the place of it.
func (c *Console) shown(ctx context.Context, policy, key string) (auth.Grant, error) {
	if !strings.Contains(key, ";") {
		return c.cfg.Access.Key(ctx, policy, key)
	}
	given, err := auth.ParseConnectionString(key)
	switch {
	case err != nil:
		return auth.Grant{}, err
	case given.Signature != "":
		return c.cfg.Access.Token(ctx, given.Signature, "")
	}
	return c.cfg.Access.Key(ctx, given.Policy, given.Key)
}

// wrongKey says what was wrong, and never what was shown.
func wrongKey(policy string, err error) string {
	switch {
	case errors.Is(err, auth.ErrConnectionString):
		return "This is no connection string. It begins with Endpoint=sb:// and has a policy and its key."
	case policy == "":
		return "No policy has this key. Name the policy beside its key, or give a whole connection string."
	}
	return fmt.Sprintf("The policy %q does not have this key.", policy)
}

// signOut ends the session.
func (c *Console) signOut(v *visit) error {
	for _, cookie := range c.sessionCookies(v.r) {
		if err := c.cfg.Sessions.End(v.r.Context(), cookie.Value); err != nil {
			return err
		}
	}
	setCookie(v, "")
	http.Redirect(v.w, v.r, signInPath, http.StatusSeeOther)
	return nil
}

// maxPath is how long a path may be to which one is led after signing in.
const maxPath = 1 << 10

// localPath keeps who signs in at this console, whatever a link says.
func localPath(to string) string {
	if len(to) > maxPath || !strings.HasPrefix(to, base) || strings.HasPrefix(to, signInPath) || strings.ContainsAny(to, "\\\r\n") {
		return base
	}
	return to
}
