package handler

import (
	"math"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/quota"
)

// rights are those of a connection, at the time of one request: what it was granted ends when its
// policy, its key or the hub do, and may be shown anew.
type rights struct {
	open  bool
	grant auth.Grant
}

// rights gives those that the connection has now.
func (p *peer) rights() rights {
	if p.lent != nil {
		return *p.lent
	}
	grant, known := p.conn.Identity().(auth.Grant)
	return rights{open: p.handler.cfg.Open && !known, grant: grant}
}

// anyRight is a need that every right meets.
const anyRight auth.Rights = 0

// allow reports whether there is a right to a hub; of that name, whether there is one or not.
func (r rights) allow(hub string, need auth.Rights) bool {
	return r.open || r.grant.Allows(auth.At(hub), need, time.Now())
}

// everywhere reports whether there is a right to the namespace.
func (r rights) everywhere(need auth.Rights) bool {
	return r.open || r.grant.Allows(auth.Entity{}, need, time.Now())
}

// anywhere reports whether there is a right to any hub. One to a part of a hub, such as a token for one publisher, is none:
// nothing that is asked for here is about parts.
func (r rights) anywhere(need auth.Rights) bool {
	if r.open {
		return true
	}
	left, _ := r.grant.Trimmed()
	return !r.grant.Expired(time.Now()) && slices.ContainsFunc(left.Scopes, func(s auth.Scope) bool {
		return s.Rights.Has(need) && auth.EntityOf(s.Path).Part == ""
	})
}

// Kafka's operations on what there are rights to, by their numbers in sets of bits.
const (
	opRead            = 3
	opWrite           = 4
	opCreate          = 5
	opDelete          = 6
	opAlter           = 7
	opDescribe        = 8
	opDescribeConfigs = 10
	opAlterConfigs    = 11
	opIdempotentWrite = 12
)

// notAsked stands where a client did not want to know what it may do.
const notAsked = math.MinInt32

// operations gives the set of what may be done to a hub.
func (r rights) operations(hub string) int32 {
	set := int32(1<<opDescribe | 1<<opDescribeConfigs)
	for _, op := range []struct {
		need auth.Rights
		bits int32
	}{
		{auth.Listen, 1 << opRead},
		{auth.Send, 1 << opWrite},
		{auth.Manage, 1<<opDelete | 1<<opAlter | 1<<opAlterConfigs},
	} {
		if r.allow(hub, op.need) {
			set |= op.bits
		}
	}
	return set
}

// clusterOperations gives the set of what may be done to the namespace.
func (r rights) clusterOperations() int32 {
	set := int32(1<<opDescribe | 1<<opDescribeConfigs)
	if r.anywhere(auth.Send) {
		set |= 1 << opIdempotentWrite
	}
	if r.everywhere(auth.Manage) {
		set |= 1 << opCreate
	}
	return set
}

// accountOf is who has these rights, for shares of what there is; empty: nobody in particular.
func accountOf(r rights) string {
	if r.open {
		return ""
	}
	return r.grant.Account()
}

// quota is what counts for who publishes by these rights; nil: nothing does.
func (p *peer) quota(r rights) *quota.Meter {
	if r.open {
		return nil
	}
	return p.handler.cfg.Access.Quota(r.grant.Account())
}
