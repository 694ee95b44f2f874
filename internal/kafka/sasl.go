package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The mechanisms of SASL that we know. A client certificate needs none: it is shown by TLS.
const (
	mechanismPlain  = "PLAIN"
	mechanismBearer = "OAUTHBEARER"
)

// sasl is how a client shows who it is: by SaslHandshake, and then by SaslAuthenticate, or for old clients
// by a bare token. It may do so again, to go on when its token ends (KIP-368). The reading goroutine's
// alone.
type sasl struct {
	reader *reader
	// mechanism is what the client will show next; empty: nothing. raw: it comes as a bare token.
	mechanism string
	raw       bool
	// scram is an exchange that has begun; nil: none has.
	scram *scram
	// shown is what it has shown who it is by; empty: nothing, or a certificate.
	shown string
}

// verdict is what becomes of a token.
type verdict struct {
	who   credential
	reply []byte
	// more: the client has to answer the reply before it is let in.
	more bool
}

// mechanisms are those that are offered.
func (s *sasl) mechanisms() []string {
	all := []string{mechanismPlain, mechanismBearer}
	if _, ok := s.reader.conn.server.cfg.Auth.(Passwords); ok {
		all = append(all, slices.Sorted(maps.Keys(scrams))...)
	}
	return all
}

// begin lets clients in who need no SASL: everybody where nobody is asked, and who has a certificate.
func (s *sasl) begin() error {
	c := s.reader.conn
	auth := c.server.cfg.Auth
	switch {
	case auth == nil:
		return c.let(credential{})
	case c.tls == nil || len(c.tls.VerifiedChains) == 0:
		return nil
	}
	var who credential
	err := c.guarded("authenticating", func() (err error) {
		who.identity, err = auth.External(c.ctx, addressOf(c.nc), *c.tls)
		return err
	})
	switch {
	case errors.Is(err, errPanic):
		return err
	case err != nil:
		c.log.Debug("Kafka client's certificate names nobody", "error", err) // the authenticator says so, if it does
		return nil                                                           // it may have something else to show
	}
	who.account = accountOf(who.identity)
	return c.let(who)
}

// accountOf is whose right an identity is, if it says so.
func accountOf(identity any) string {
	if named, ok := identity.(interface{ Account() string }); ok {
		return named.Account()
	}
	return ""
}

// handshake takes the choice of a mechanism.
func (s *sasl) handshake(h header, b *cut) error {
	name := b.text(false)
	if b.err != nil {
		return b.err
	}
	resp := kmsg.NewPtrSASLHandshakeResponse()
	resp.SupportedMechanisms = s.mechanisms()
	if name == nil || !slices.Contains(resp.SupportedMechanisms, *name) || s.shown != "" && s.shown != *name {
		resp.ErrorCode = codeUnsupportedMechanism
		s.reader.answer(h, resp)
		return errMechanism
	}
	s.mechanism, s.raw, s.scram = *name, h.version == 0, nil
	s.reader.answer(h, resp)
	return nil
}

// authenticate takes a token by a request.
func (s *sasl) authenticate(h header, b *cut) error {
	n := b.length(h.version >= 2)
	if b.err == nil && (n < 0 || n > strangerRequestBytes) {
		b.fail(errMalformed)
	}
	token := make([]byte, max(n, 0))
	if b.full(token); b.err != nil {
		return b.err
	}
	resp := kmsg.NewPtrSASLAuthenticateResponse()
	v, err := s.show(token)
	resp.SASLAuthBytes = v.reply
	switch {
	case errors.Is(err, ErrUnchecked), errors.Is(err, errPanic), errors.Is(err, errFull):
		return err // without an answer, so that the client comes again
	case err != nil:
		resp.ErrorCode = codeAuthenticationFailed
		if errors.Is(err, errSASLState) {
			resp.ErrorCode = codeIllegalSASLState
		}
		resp.ErrorMessage = kmsg.StringPtr(advice(err))
	case !v.who.until.IsZero():
		resp.SessionLifetimeMillis = max(time.Until(v.who.until).Milliseconds(), 1)
	}
	s.reader.answer(h, resp)
	return err
}

// token takes a bare token, which is answered by another, and a wrong one by the end.
func (s *sasl) token(b *cut) error {
	if b.left > strangerRequestBytes {
		return errMalformed
	}
	token := make([]byte, b.left)
	if b.full(token); b.err != nil {
		return b.err
	}
	v, err := s.show(token)
	if err != nil {
		return err
	}
	s.reader.enqueue(&pending{
		header: header{key: keySASLAuthenticate},
		finish: func(_ context.Context, w *Writer) error { return w.bare(v.reply) },
	})
	return nil
}

// show checks a token, and lets its bearer in.
func (s *sasl) show(token []byte) (verdict, error) {
	c := s.reader.conn
	if s.mechanism == "" {
		return verdict{}, errSASLState
	}
	v, err := s.check(token)
	if err == nil && v.more {
		return v, nil
	}
	if err == nil {
		err = s.goesOn(v.who)
	}
	if err != nil {
		// Operators hear of it by a counter, and by the authenticator, which has a measure for it: a stranger
		// may come back as often as it likes.
		c.log.Debug("Kafka client refused", "mechanism", s.mechanism, "error", err)
		if judge(err) == "" {
			err = fmt.Errorf("%w: %w", errAuth, err)
		}
		return verdict{}, err
	}
	if err := c.let(v.who); err != nil {
		return verdict{}, err
	}
	s.shown, s.mechanism, s.raw, s.scram = s.mechanism, "", false, nil
	return v, nil
}

// goesOn: a client may show anew who it is, but not be another from then on.
func (s *sasl) goesOn(who credential) error {
	switch {
	case s.reader.peer != nil && who.account != s.reader.conn.account():
		return errAccount
	case !who.until.IsZero() && !time.Now().Before(who.until):
		return errExpired
	}
	return nil
}

// check gives what the authenticator makes of a token. Where nobody is asked everything is good.
func (s *sasl) check(token []byte) (v verdict, err error) {
	c := s.reader.conn
	defer c.recoverAs("authenticating", &err)
	auth, from := c.server.cfg.Auth, addressOf(c.nc)
	switch {
	case auth == nil:
		return v, nil
	case s.mechanism == mechanismPlain:
		user, password, err := parsePlain(token)
		if err != nil {
			return v, err
		}
		v.who.identity, err = auth.Plain(c.ctx, from, user, password)
		v.who.account = accountOf(v.who.identity)
		return v, err
	case s.mechanism == mechanismBearer:
		bearer, err := parseBearer(token)
		if err != nil {
			return v, err
		}
		v.who.identity, v.who.until, err = auth.Bearer(c.ctx, from, bearer)
		v.who.account = accountOf(v.who.identity)
		return v, err
	}
	return s.checkSCRAM(token)
}

// checkSCRAM takes one of the two messages that a client sends.
func (s *sasl) checkSCRAM(token []byte) (v verdict, err error) {
	c := s.reader.conn
	auth, from := c.server.cfg.Auth, addressOf(c.nc)
	if s.scram == nil {
		if s.scram, err = beginSCRAM(s.mechanism, string(token)); err != nil {
			return v, err
		}
		v.reply, v.more = s.scram.challenge(c.server.secrets.salt(s.mechanism, s.scram.user)), true
		return v, nil
	}
	passwords, err := auth.(Passwords).Passwords(c.ctx, from, s.scram.user)
	if err != nil {
		return v, err
	}
	password, reply, err := s.scram.finish(string(token), passwords, func(password string) (scramKeys, error) {
		return c.server.secrets.keys(s.mechanism, s.scram.user, password)
	})
	if errors.Is(err, errProof) || errors.Is(err, errPasswords) {
		auth.Plain(c.ctx, from, s.scram.user, "") // so that it counts as a wrong password does
	}
	if err != nil {
		return v, err
	}
	v.reply = reply
	v.who.identity, err = auth.Plain(c.ctx, from, s.scram.user, password)
	v.who.account = accountOf(v.who.identity)
	return v, err
}

// parsePlain reads PLAIN (RFC 4616): whom to act for, user, password, with zero bytes between them. Whom to
// act for is ignored: there is nobody else to be.
func parsePlain(token []byte) (user, password string, err error) {
	parts := bytes.SplitN(token, []byte{0}, 4)
	if len(parts) != 3 || len(parts[1]) == 0 {
		return "", "", errPlain
	}
	return string(parts[1]), string(parts[2]), nil
}

// parseBearer reads OAUTHBEARER (RFC 7628, §3.1): a head, and pairs of which one is auth=Bearer and the
// token, with 0x01 between them.
func parseBearer(token []byte) (string, error) {
	head, rest, _ := strings.Cut(string(token), "\x01")
	if !strings.HasPrefix(head, "n,") {
		return "", errBearer
	}
	for pair := range strings.SplitSeq(rest, "\x01") {
		if value, ok := strings.CutPrefix(pair, "auth="); ok {
			scheme, bearer, _ := strings.Cut(value, " ")
			if bearer = strings.TrimSpace(bearer); strings.EqualFold(scheme, "Bearer") && bearer != "" {
				return bearer, nil
			}
		}
	}
	return "", errBearer
}

// advice is what a client that was refused hears. What exactly was wrong is in our log alone.
func advice(err error) string {
	switch {
	case errors.Is(err, errSASLState):
		return "SaslAuthenticate without SaslHandshake before it."
	case errors.Is(err, errAccount):
		return "Authentication failed: " + errAccount.Error() + "."
	case errors.Is(err, errExpired):
		return "Authentication failed: the token has ended. Get a new one."
	}
	return "Authentication failed. For PLAIN give the user $ConnectionString and a whole connection string as the password, " +
		"or a policy's name and its key, as for SCRAM; for OAUTHBEARER a token of an issuer that this yard knows."
}
