package console

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/sessions"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

const (
	issuerPath   = signInPath + "/issuer"
	callbackPath = signInPath + "/callback"
	// awayTime is how long somebody may take at the issuer.
	awayTime = 10 * time.Minute
)

// Issuer signs people in elsewhere. All methods may be called by many goroutines at once, and may ask the
// network.
type Issuer interface {
	// Name is what people know it by.
	Name() string
	// Begin gives where somebody signs in, and what their browser keeps until it is back at an address.
	Begin(ctx context.Context, back string) (address, keep string, err error)
	// Finish takes what the browser kept and brought, and gives the tokens of who signed in: the first
	// of them that says what they may do counts.
	Finish(ctx context.Context, back, kept, state, code string) (tokens []string, err error)
}

// toIssuer sends a browser to where one signs in.
func (c *Console) toIssuer(v *visit) error {
	to := localPath(v.r.FormValue("to"))
	if c.cfg.Issuer == nil {
		return notHere(v.r)
	}
	giveBack, err := c.turnAtIssuer(v)
	if err != nil {
		return err
	}
	defer giveBack()
	address, keep, err := c.cfg.Issuer.Begin(v.r.Context(), v.address()+callbackPath)
	if err != nil {
		c.cfg.Log.Warn("nobody can sign in by the issuer", "error", err)
		return c.refuseSignIn(v, http.StatusBadGateway, signInView{To: to, Wrong: c.cfg.Issuer.Name() + " does not answer as an issuer. Sign in with a key, or try again later."})
	}
	setAwayCookie(v, keep+"~"+base64.RawURLEncoding.EncodeToString([]byte(to)))
	http.Redirect(v.w, v.r, address, http.StatusSeeOther)
	return nil
}

// turnAtIssuer bounds what strangers have the yard ask the issuer at once, by address and in all.
func (c *Console) turnAtIssuer(v *visit) (giveBack func(), err error) {
	address, _ := admission.Address(v.r.RemoteAddr)
	return c.issuing.Take(address.String(), 1)
}

// fromIssuer begins a session for who comes back.
func (c *Console) fromIssuer(v *visit) error {
	if c.cfg.Issuer == nil {
		return notHere(v.r)
	}
	kept, to := c.awayCookie(v.r)
	setAwayCookie(v, "")
	q := v.r.URL.Query()
	if q.Get("error") != "" {
		return c.refuseSignIn(v, http.StatusUnauthorized, signInView{To: to, Wrong: fmt.Sprintf("%s says: %.300s", c.cfg.Issuer.Name(), strings.TrimSpace(q.Get("error")+" "+q.Get("error_description")))})
	}
	giveBack, err := c.turnAtIssuer(v)
	if err != nil {
		return err
	}
	defer giveBack()
	tokens, err := c.cfg.Issuer.Finish(v.r.Context(), v.address()+callbackPath, kept, q.Get("state"), q.Get("code"))
	if err != nil {
		return c.notSignedIn(v, to, err, "What came back from "+c.cfg.Issuer.Name()+" is not good, or not for this browser. Try again.")
	}
	g, err := c.grantOf(v.r.Context(), tokens)
	if err != nil {
		return c.notSignedIn(v, to, err, "You are known to "+c.cfg.Issuer.Name()+", but what it says gives you no right here: ask for a role such as Manage, or Listen:HUB.")
	}
	return c.begin(v, g, to)
}

func (c *Console) notSignedIn(v *visit, to string, err error, says string) error {
	c.cfg.Access.Refused(v.r.Context(), v.r.RemoteAddr, err)
	return c.refuseSignIn(v, http.StatusUnauthorized, signInView{To: to, Wrong: says})
}

// grantOf is what the first token allows that allows something, as the API judges it.
func (c *Console) grantOf(ctx context.Context, tokens []string) (auth.Grant, error) {
	err := error(auth.ErrMalformed)
	for _, token := range tokens {
		g, wrong := c.cfg.Access.Token(ctx, token, "")
		if wrong == nil && len(g.Scopes) > 0 {
			return g, nil
		}
		if err = wrong; err == nil {
			err = fmt.Errorf("%w: the token names none", auth.ErrRights)
		}
	}
	return auth.Grant{}, err
}

// begin begins a session and leads to a page.
func (c *Console) begin(v *visit, g auth.Grant, to string) error {
	if g.Stands() && !g.Opens() {
		return c.refuseSignIn(v, http.StatusForbidden, signInView{To: to, Wrong: "This opens the metrics alone, of which the console has no page."})
	}
	token, err := c.cfg.Sessions.Begin(v.r.Context(), g)
	if errors.Is(err, sessions.ErrFull) {
		return tooManySessions
	}
	if err != nil {
		return err
	}
	setCookie(v, token)
	http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	return nil
}

// refuseSignIn shows the page where one signs in again.
func (c *Console) refuseSignIn(v *visit, status int, view signInView) error {
	return v.show(status, "signin", c.signInScreen(view))
}

func (c *Console) signInScreen(view signInView) *screen {
	if c.cfg.Issuer != nil {
		view.Issuer = c.cfg.Issuer.Name()
		view.ByIssuer = issuerPath + "?" + url.Values{"to": {view.To}}.Encode()
	}
	return &screen{Title: "Sign in", View: view}
}

// away is what the name of the cookie ends in that keeps what belongs to a way to the issuer and back.
const away = "-away"

// setAwayCookie keeps it; empty: it is over.
func setAwayCookie(v *visit, value string) {
	http.SetCookie(v.w, v.console.newCookie(v.r, away, value, awayTime))
}

func (c *Console) awayCookie(r *http.Request) (kept, to string) {
	name := plainCookie
	if c.overTLS(r) {
		name = secureCookie
	}
	cookie, err := r.Cookie(name + away)
	if err != nil {
		return "", base
	}
	kept, encoded, _ := strings.Cut(cookie.Value, "~")
	decoded, _ := base64.RawURLEncoding.DecodeString(encoded) // what cannot be read leads to the overview
	return kept, localPath(string(decoded))
}
