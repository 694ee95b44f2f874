package console

import (
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

func (y *stocked) policyDeeds() []deed {
	policy := func(v *visitor) admin.Policy {
		return testkit.Value(y.client.Policy(v.t.Context(), "", "gateway"))(v.t)
	}
	var before string
	return []deed{
		{name: "check the data", at: "storage", do: []step{press(`main form[action$="/storage/check"] button`, done("checking"))}, check: func(v *visitor) {
			testkit.Eventually(v.t, "a check that has found nothing", func() bool {
				c := testkit.Value(y.client.Storage(v.t.Context()))(v.t).Nodes[0].Check
				return c != nil && c.Ended != nil && c.Failed == "" && len(c.Problems) == 0
			})
		}},
		{name: "make a policy", at: "access", do: []step{
			press(`main a[href="/console/new/policy"]`, shows(act)), write("name", "gateway"), choose("rights", "Send"), press(act, done("created")),
		}, check: func(v *visitor) { testkit.Slices(v.t, policy(v).Rights, []string{"Send"}) }},
		{name: "limit a policy", at: "access?policy=gateway", do: []step{
			press(`main a[href$="/gateway/settings"]`, shows(act)), write("events", "100"), press(act, done("changed")),
		}, check: func(v *visitor) {
			testkit.Equal(v.t, policy(v).Quota.Events, 100)
			v.await("the limit", contains("It may publish 100 events a second."))
		}},
		{name: "copy a connection string", at: "access?policy=gateway", live: true, do: []step{
			func(v *visitor) {
				v.run("take what is copied", evaluate(`navigator.clipboard.writeText = async text => { window.copied = text; }; 0`))
				v.push(v.page, `[data-copy-from]`)
				v.await("that it was copied", `document.getElementById("said").textContent === "Copied"`)
			},
		}, check: func(v *visitor) {
			p := policy(v)
			v.await("the string that was copied", `window.copied === `+quoted(p.ConnectionStrings.Primary))
			testkit.That(v.t, !strings.Contains(v.text(), p.PrimaryKey), "the page shows the key")
		}},
		{name: "show keys", at: "access", do: []step{press(`main form[action$="/gateway/reveal"] button`, shows(secret))}, check: func(v *visitor) {
			before = policy(v).PrimaryKey
			v.await("the key", contains(before))
		}},
		{name: "make a key anew", at: "access", do: []step{
			press(`main a[href$="/gateway/regenerate"]`, shows(act)), choose("key", "primary"), press(act, shows(secret)),
		}, check: func(v *visitor) {
			after := policy(v).PrimaryKey
			testkit.That(v.t, after != before, "the key is the same")
			v.await("the key", contains(after))
		}},
		{name: "delete a policy", at: "access", do: []step{
			press(`main a[href$="/gateway/delete"]`, shows(act)), write("name", "gateway"), press(act, done("deleted")),
		}, check: func(v *visitor) {
			testkit.That(v.t, testkit.Err(y.client.Policy(v.t.Context(), "", "gateway")) != nil, "the policy is there")
		}},
	}
}
