package amqp

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// The mechanisms of SASL that we know. MSSBCBS is anonymous under another name: the .NET
// client takes nothing else, and shows who it is by a token on the $cbs link.
const (
	mechanismCBS       wire.Symbol = "MSSBCBS"
	mechanismAnonymous wire.Symbol = "ANONYMOUS"
	mechanismPlain     wire.Symbol = "PLAIN"
	mechanismExternal  wire.Symbol = "EXTERNAL"
)

var (
	errMechanism     = errors.New("the mechanism is not offered")
	errPlainResponse = errors.New("PLAIN without user and password")
)

// mechanisms are those offered on this connection.
func (c *Conn) mechanisms() []wire.Symbol {
	offered := []wire.Symbol{mechanismCBS, mechanismAnonymous}
	if c.server.cfg.Auth == nil {
		return offered
	}
	offered = append(offered, mechanismPlain)
	if c.certified() {
		offered = append(offered, mechanismExternal)
	}
	return offered
}

// certified: the peer has shown a certificate, and it was found good.
func (c *Conn) certified() bool { return c.tls != nil && len(c.tls.VerifiedChains) > 0 }

// check gives what the authenticator makes of the client's word; nil for anonymous ones.
// On a connection that will be refused anyway nobody is asked.
func (c *Conn) check(init wire.SASLInit) (value any, err error) {
	defer c.rescue("authenticating", &err)
	auth := c.server.cfg.Auth
	switch init.Mechanism {
	case mechanismCBS, mechanismAnonymous:
		return nil, nil
	case mechanismPlain:
		if auth == nil || c.refusal != nil {
			return nil, c.unlessRefused(errMechanism)
		}
		user, password, err := plain(init.InitialResponse)
		if err != nil {
			return nil, err
		}
		return auth.Plain(c.ctx, user, password)
	case mechanismExternal:
		if auth == nil || !c.certified() || c.refusal != nil {
			return nil, c.unlessRefused(errMechanism)
		}
		return auth.External(c.ctx, *c.tls)
	default:
		return nil, fmt.Errorf("%w: %q", errMechanism, init.Mechanism)
	}
}

// unlessRefused lets a connection that is beyond a limit pass, so that it gets as far as
// being told why it is refused.
func (c *Conn) unlessRefused(err error) error {
	if c.refusal != nil {
		return nil
	}
	return err
}

// plain takes PLAIN's message apart (RFC 4616): whom to act for, user, password, each
// before a zero byte. Whom to act for is not looked at: there is nobody else to be.
func plain(response []byte) (user, password string, err error) {
	parts := bytes.Split(response, []byte{0})
	if len(parts) != 3 || len(parts[1]) == 0 {
		return "", "", errPlainResponse
	}
	return string(parts[1]), string(parts[2]), nil
}
