package kafka

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
)

// K5: the example of RFC 7677.
func TestSCRAMOfTheStandard(t *testing.T) {
	salt := testkit.Value(base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ=="))(t)
	s := testkit.Value(beginSCRAM("SCRAM-SHA-256", "n,,n=user,r=rOprNGfwEbeRWgbNEkqO"))(t)
	testkit.Equal(t, s.user, "user")
	s.nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
	testkit.Equal(t, string(s.challenge(salt)), "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
	keys := func(password string) (scramKeys, error) { return makeSCRAMKeys(sha256.New, password, salt, 4096) }
	last := "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
	password, reply, err := s.finish(last, []string{"another", "pencil"}, keys)
	testkit.Must(t, err)
	testkit.Equal(t, password, "pencil")
	testkit.Equal(t, string(reply), "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")

	for name, bad := range map[string]string{
		"no proof":        "c=biws,r=" + s.nonce,
		"another nonce":   strings.Replace(last, "r=rO", "r=xO", 1),
		"a longer nonce":  strings.Replace(last, "k0,p", "k0x,p", 1),
		"another binding": strings.Replace(last, "biws", "eSws", 1),
		"no base64":       last + "!",
	} {
		_, _, err := s.finish(bad, []string{"pencil"}, keys)
		testkit.ErrorIs(t, err, errSCRAM, name)
	}
	_, _, err = s.finish("c=biws,r="+s.nonce+",p=AAAA", []string{"pencil"}, keys)
	testkit.ErrorIs(t, err, errProof)
	_, _, err = s.finish(last, nil, keys)
	testkit.ErrorIs(t, err, errProof)
}

func TestSCRAMThatMakesNoSense(t *testing.T) {
	for _, bad := range []string{"", "n", "n,,", "n,,n=,r=x", "n,,n=user", "n,,n=user,r=", "p=tls-unique,,n=user,r=x", "n,user,n=user,r=x", "n,,r=x,n=user",
		"n,,n=" + strings.Repeat("u", 300) + ",r=x", "n,,n=user,r=" + strings.Repeat("x", 300)} {
		_, err := beginSCRAM("SCRAM-SHA-256", bad)
		testkit.ErrorIs(t, err, errSCRAM, "%q", bad)
	}
	s := testkit.Value(beginSCRAM("SCRAM-SHA-512", "y,a=other,n=a=2Cb=3Dc,r=x,tokenauth=true"))(t)
	testkit.Equal(t, s.user, "a,b=c")
}

// proving shows by SCRAM that the client knows a password; it checks that the server does, too.
func (c *client) proving(mechanism, user, password string) *kmsg.SASLAuthenticateResponse {
	c.t.Helper()
	testkit.MustEqual(c.t, c.handshake(mechanism, 1).ErrorCode, 0)
	bare := "n=" + user + ",r=fyko+d2lbbFgONRv9qkxdawL"
	challenge := c.show("n,,"+bare, 2)
	testkit.MustEqual(c.t, challenge.ErrorCode, 0)
	parts := strings.Split(string(challenge.SASLAuthBytes), ",")
	salt := testkit.Value(base64.StdEncoding.DecodeString(strings.TrimPrefix(parts[1], "s=")))(c.t)
	iterations := testkit.Value(strconv.Atoi(strings.TrimPrefix(parts[2], "i=")))(c.t)
	last := "c=biws," + parts[0]
	over := bare + "," + string(challenge.SASLAuthBytes) + "," + last

	hash := scrams[mechanism]
	salted := testkit.Value(pbkdf2.Key(hash, password, salt, iterations, hash().Size()))(c.t)
	client := mac(hash, salted, "Client Key")
	h := hash()
	h.Write(client)
	signature := mac(hash, h.Sum(nil), over)
	for i := range client {
		client[i] ^= signature[i]
	}
	got := c.show(last+",p="+base64.StdEncoding.EncodeToString(client), 2)
	if got.ErrorCode == 0 {
		testkit.Equal(c.t, string(got.SASLAuthBytes), "v="+base64.StdEncoding.EncodeToString(mac(hash, mac(hash, salted, "Server Key"), over)))
	}
	return got
}

// K5: clients show by SCRAM that they know any of a user's passwords.
func TestSCRAM(t *testing.T) {
	var who any
	f := serve(t, &handler{connected: func(c *Conn) error { who = c.Identity(); return nil }}, asked)
	for mechanism := range scrams {
		for range 2 {
			c := f.client()
			testkit.Equal(t, c.proving(mechanism, "alice", "alice's password").ErrorCode, 0)
			c.works()
			testkit.Equal(t, who, any(account("alice")))
			testkit.Equal(t, c.proving(mechanism, "alice", "alice's password").ErrorCode, 0, "again")
			c.works()
		}
		for user, password := range map[string]string{"alice": "wrong", "nobody": "alice's password"} {
			c := f.client()
			testkit.Equal(t, c.proving(mechanism, user, password).ErrorCode, codeAuthenticationFailed)
			c.gone()
		}
	}
	testkit.Equal(t, len(f.server.secrets.kept), 4, "passwords whose keys are kept: two, by two mechanisms")
}

// K5: without a handshake in between a challenge is for one try, and old clients are challenged, too.
func TestSCRAMOutOfOrder(t *testing.T) {
	f := serve(t, &handler{}, asked)
	c := f.client()
	c.handshake("SCRAM-SHA-256", 1)
	testkit.Equal(t, c.show("n,,n=alice,r=x", 2).ErrorCode, 0)
	testkit.Equal(t, c.show("n,,n=alice,r=x", 2).ErrorCode, codeAuthenticationFailed)
	c.gone()

	c = f.client()
	c.handshake("SCRAM-SHA-256", 0)
	c.bare("n,,n=alice,r=x")
	testkit.That(t, strings.HasPrefix(string(c.frame()), "r=x"), "it was not challenged")
	c.bare("c=biws,r=x,p=AAAA")
	c.gone()

	c = f.client()
	c.handshake("SCRAM-SHA-256", 1)
	first := c.show("n,,n=later,r=x", 2)
	r := kmsg.NewPtrSASLAuthenticateRequest()
	nonce, _, _ := strings.Cut(string(first.SASLAuthBytes), ",")
	r.SASLAuthBytes = fmt.Appendf(nil, "c=biws,%s,p=AAAA", nonce)
	c.send(r)
	c.gone()
}

// K5: SCRAM is offered only where passwords are known.
func TestSCRAMThatIsNotOffered(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"nobody is asked":         func(*Config) {},
		"passwords are not known": func(c *Config) { c.Auth = struct{ Authenticator }{checker{}} },
	} {
		c := serve(t, &handler{}, change).client()
		got := c.handshake("SCRAM-SHA-256", 1)
		testkit.Equal(t, got.ErrorCode, codeUnsupportedMechanism, name)
		testkit.Slices(t, got.SupportedMechanisms, []string{"PLAIN", "OAUTHBEARER"})
	}
}

// R2: spellings of a name have no keys made of their own.
func TestSCRAMKeysOfSpellings(t *testing.T) {
	var s scramSecrets
	testkit.Must(t, testkit.Err(s.keys("SCRAM-SHA-256", "root", "secret")))
	testkit.Must(t, testkit.Err(s.keys("SCRAM-SHA-256", "ROOT", "secret")))
	testkit.Equal(t, len(s.kept), 1, "keys")
	testkit.Slices(t, s.salt("SCRAM-SHA-256", "Root"), s.salt("SCRAM-SHA-256", "root"), "salt")
}

// R2: a name that many policies have costs a stranger's try no more than one that few have.
func TestSCRAMOfAUserWithVeryManyPasswords(t *testing.T) {
	s := testkit.Value(beginSCRAM("SCRAM-SHA-256", "n,,n=user,r=x"))(t)
	s.challenge(nil)
	made := 0
	keys := func(password string) (scramKeys, error) { made++; return scramKeys{}, nil }
	last := "c=biws,r=" + s.nonce + ",p=AAAA"
	_, _, err := s.finish(last, make([]string, maxPasswords), keys)
	testkit.ErrorIs(t, err, errProof)
	testkit.Equal(t, made, maxPasswords, "keys made for as many as are tried")
	_, _, err = s.finish(last, make([]string, maxPasswords+1), keys)
	testkit.ErrorIs(t, err, errPasswords)
	testkit.Equal(t, made, maxPasswords, "keys made in all")
}

// R2: when there are more keys than are kept one is forgotten, and not all of them.
func TestSCRAMKeysThatAreForgotten(t *testing.T) {
	s := scramSecrets{kept: map[[sha256.Size]byte]scramKeys{}}
	for i := range maxSCRAMKeys {
		s.kept[sha256.Sum256([]byte(strconv.Itoa(i)))] = scramKeys{}
	}
	testkit.Must(t, testkit.Err(s.keys("SCRAM-SHA-256", "root", "secret")))
	testkit.Equal(t, len(s.kept), maxSCRAMKeys, "keys")
}
