package console

import (
	"net/url"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/server"
	"github.com/eventyard/eventyard/servertest"
	"github.com/eventyard/eventyard/test/parts"
)

// newGuardedYard is one that others can reach, so that its console wants to know who is there. Policy ops
// may do everything.
func newGuardedYard(t *testing.T) (y *yard, key string) {
	t.Helper()
	y = &yard{Yard: servertest.Start(t, func(c *server.Config) { c.HTTP, c.AllowPlaintext = "0.0.0.0:0", true })}
	address := testkit.Value(url.Parse(y.Addresses()["http"]))(t)
	y.base = "http://127.0.0.1:" + address.Port()
	y.client = testkit.Value(admin.New(admin.Config{Server: y.base, ConnectionString: y.ConnectionString()}))(t)
	t.Cleanup(y.client.Close)
	y.Hub(t, "orders", 4, "billing")
	ops := testkit.Value(y.client.CreatePolicy(t.Context(), "", admin.PolicyRequest{Name: "ops", Rights: []string{"Manage"}}))(t)
	return y, ops.PrimaryKey
}

// anew makes the key of policy ops anew, which ends its sessions.
func (y *yard) anew(t *testing.T) (key string) {
	t.Helper()
	return testkit.Value(y.client.RegeneratePolicy(t.Context(), "", "ops", "primary"))(t).PrimaryKey
}

// What leads in, and out.
const in, out = `main a[href^="/console/signin"]`, `.side form[action="/console/signout"] button`

// signIn signs in at the page where one does, and waits for what that leads to.
func (v *visitor) signIn(key, leadsTo string) {
	v.t.Helper()
	v.write("policy", "ops")
	v.write("key", key)
	v.press(`main form button`, leadsTo)
}

// V3: who is not signed in is led to where one does, and back to where they wanted to be; who signs out
// is out. By mouse and by keyboard alone.
func TestSigningInAndOut(t *testing.T) {
	for _, with := range []hands{keyboard{}, mouse{}}[:turns()] {
		y, key := newGuardedYard(t)
		v := newVisitor(t, y.base, with)
		v.visit("hubs?page=0")
		v.stands("signin")
		v.signIn("wrong", shows(refusal))
		v.signIn(key, shows(out))
		v.stands("hubs")
		v.press(out, shows(named("key")))
		v.visit("hubs")
		v.stands("signin")
	}
}

// V3, V4: where one signs in is whole for everybody, at a desk by day and on a phone by night, also where it refuses.
func TestThePageToSignIn(t *testing.T) {
	y, _ := newGuardedYard(t)
	axe := parts.Axe(t)
	for _, s := range screens() {
		p := newPage(t, y.base, s.width, s.scheme)
		p.open("/console/signin")
		p.check(axe, "signin-"+s.String())
		p.fill(map[string]string{"policy": "ops", "key": "wrong"})
		mouse{}.push(p, `main form button`)
		p.await("a refusal", shows(refusal))
		p.forgive() // of the status, which the browser tells of
		p.check(axe, "signin-refused-"+s.String())
	}
}

// turns is how many pairs of hands do what takes long.
func turns() int {
	if *all {
		return 2
	}
	return 1
}

// V3, V4: a page that is kept live ends where one signs in when its session does, also one that stood
// still meanwhile; and leads back.
func TestAPageWhoseSessionEnds(t *testing.T) {
	y, key := newGuardedYard(t)
	v := newVisitor(t, y.base, mouse{})
	v.visit("hubs/orders")
	v.signIn(key, shows("#fig-events"))
	v.stands("hubs/orders")
	key = y.anew(t)
	v.stands("signin")
	v.signIn(key, shows("#fig-events"))
	v.stands("hubs/orders")
	v.push(v.page, "button.live")
	v.await("a page that stands still", shows("button.live.paused"))
	key = y.anew(t)
	v.push(v.page, "button.live")
	v.stands("signin")
	v.signIn(key, shows("#fig-events"))
	v.stands("hubs/orders")
}

// V3, V4: a form that is sent when the session has ended does nothing, and leads over signing in back to
// the form.
func TestAFormWhoseSessionHasEnded(t *testing.T) {
	y, key := newGuardedYard(t)
	v := newVisitor(t, y.base, keyboard{})
	v.visit("new/hub")
	v.signIn(key, shows(act))
	key = y.anew(t)
	v.write("name", "made")
	v.press(act, shows(in))
	testkit.That(t, testkit.Err(y.client.Hub(t.Context(), "made")) != nil, "a hub was made")
	v.press(in, shows(named("key")))
	v.signIn(key, shows(act))
	v.stands("new/hub")
	v.write("name", "made")
	v.press(act, done("created"))
	testkit.Must(t, testkit.Err(y.client.Hub(t.Context(), "made")))
}
