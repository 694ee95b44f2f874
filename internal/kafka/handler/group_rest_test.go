package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K5 R1: rights to groups that are at rest, or not of consumers, are judged by the hubs of their offsets, and by the namespace.
func TestRightsToGroupsWithoutSubscriptions(t *testing.T) {
	y := newClosedYard(t)
	orders := y.hub("orders", 1)
	bills := y.hub("bills", 1)
	y.policy("orders", "one", auth.Listen)
	y.policy("", "all", auth.Listen)
	for policy, code := range map[string]int16{"one": codeGroupRights, "all": codeMemberIDRequired} {
		r := joinRequest("connect", "", "orders")
		r.ProtocolType = "connect"
		testkit.Equal(t, ask[*kmsg.JoinGroupResponse](y.login(policy), 9, r).ErrorCode, code, policy)
	}
	testkit.MustEqual(t, y.login("all").commit(9, bills, "g", 0, 1), codeNone)
	one := y.login("one")
	testkit.Equal(t, one.commit(9, orders, "g", 0, 1), codeGroupRights, "commit")
	testkit.Equal(t, ask[*kmsg.JoinGroupResponse](one, 9, joinRequest("g", "", "orders")).ErrorCode, codeGroupRights, "join")
	c := joining("a", "orders")
	testkit.Equal(t, one.consume(c).ErrorCode, codeGroupRights, "848")
}
