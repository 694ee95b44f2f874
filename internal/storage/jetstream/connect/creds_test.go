package connect

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/eventyard/eventyard/internal/testkit"
)

// operated makes an operator with an account that may use JetStream, and gives the lines by which a server trusts them and
// two credentials files: of a user of the account, and of one whose JWT another account has signed.
func operated(t *testing.T, dir string) (lines, member, stranger string) {
	t.Helper()
	operator := testkit.Value(nkeys.CreateOperator())(t)
	account, system, other := testkit.Value(nkeys.CreateAccount())(t), testkit.Value(nkeys.CreateAccount())(t), testkit.Value(nkeys.CreateAccount())(t)
	claims := jwt.NewAccountClaims(testkit.Value(account.PublicKey())(t))
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
	its := jwt.NewAccountClaims(testkit.Value(system.PublicKey())(t)) // JetStream does not start without
	lines = fmt.Sprintf("operator: %q\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: { %s: %q, %s: %q }",
		testkit.Value(jwt.NewOperatorClaims(testkit.Value(operator.PublicKey())(t)).Encode(operator))(t), its.Subject,
		its.Subject, testkit.Value(its.Encode(operator))(t), claims.Subject, testkit.Value(claims.Encode(operator))(t))
	member, stranger = filepath.Join(dir, "member.creds"), filepath.Join(dir, "stranger.creds")
	for file, signer := range map[string]nkeys.KeyPair{member: account, stranger: other} {
		user := testkit.Value(nkeys.CreateUser())(t)
		signed := testkit.Value(jwt.NewUserClaims(testkit.Value(user.PublicKey())(t)).Encode(signer))(t)
		formatted := testkit.Value(jwt.FormatUserConfig(signed, testkit.Value(user.Seed())(t)))(t)
		testkit.Must(t, os.WriteFile(file, formatted, 0o600))
	}
	return lines, member, stranger
}
