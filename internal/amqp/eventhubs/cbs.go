package eventhubs

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
)

// attachClaims accepts a link to $cbs. There may be one in each direction, and no more:
// a client that finds it taken knows that its connection is not as it thinks.
func (p *peer) attachClaims(l *amqp.Link) (amqp.Terminus, error) {
	p.claims.mu.Lock()
	there := len(p.claims.replies)
	if sends(l) {
		there = len(p.claims.requests)
	}
	p.claims.mu.Unlock()
	if there == 0 {
		return p.claims.attach(l), nil
	}
	return amqp.Terminus{}, &amqp.Error{
		Condition:   condNotAllowed,
		Description: fmt.Sprintf("A link to connection '%s' $cbs node has already been opened.", p.conn.ID()),
	}
}

// putToken handles a request to $cbs. The only one there is brings a token, whose rights
// the connection's links have from then on.
func (p *peer) putToken(ctx context.Context, q *request) reply {
	at := p.entity(parseAudience(q.name))
	g, err := p.checkToken(ctx, at, q)
	if err == nil {
		err = p.grant(g)
	}
	if err != nil {
		p.handler.metrics.tokens.WithLabelValues("refused").Inc()
		refused := p.failure(at, err)
		refused.condition = "" // one client that finds it here looks at neither code nor text
		return refused
	}
	p.handler.metrics.tokens.WithLabelValues("accepted").Inc()
	p.log.Debug("token accepted", "holder", g.Holder, "audience", shown(q.name), "expires", g.Expires)
	return reply{status: 202, description: "Accepted"}
}

func (p *peer) checkToken(ctx context.Context, at entity, q *request) (auth.Grant, error) {
	if q.operation != "put-token" {
		return auth.Grant{}, &amqp.Error{
			Condition:   condNotImplemented,
			Description: fmt.Sprintf("$cbs does not know the operation '%s', only put-token.", shown(q.operation)),
		}
	}
	if q.name == "" {
		return auth.Grant{}, &amqp.Error{Condition: condArgument, Description: "The request names no audience."}
	}
	g, err := p.handler.cfg.Access.Token(p.from(ctx), q.body, q.name)
	if err != nil {
		return auth.Grant{}, p.late(err)
	}
	if at.hub == "" {
		return g, nil
	}
	// Only a client with a good token learns that a hub does not exist.
	_, err = p.handler.cfg.Broker.LookUp(ctx, at.hub)
	if _, missing := errors.AsType[*broker.NotFoundError](err); missing {
		return auth.Grant{}, &broker.NotFoundError{Kind: broker.KindHub, Hub: at.hub, Name: at.path()}
	}
	if err == nil && !g.Stands() { // the hub is one that was not known when the token was checked
		g, err = p.handler.cfg.Access.Token(ctx, q.body, q.name)
	}
	return g, err
}
