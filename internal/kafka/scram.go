package kafka

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"hash"
	"strings"
	"sync"
)

// scrams are the mechanisms of SCRAM (RFC 5802, RFC 7677), by the hash that each has.
var scrams = map[string]func() hash.Hash{"SCRAM-SHA-256": sha256.New, "SCRAM-SHA-512": sha512.New}

const (
	// scramIterations is what Kafka asks for at least. Passwords are keys of 256 bits, which nobody guesses
	// however fast it goes.
	scramIterations = 4096
	// maxPasswords is how many passwords of one user are tried. Each takes milliseconds the first time, which
	// a stranger has us spend by nothing but a name.
	maxPasswords = 64
	// maxSCRAMKeys is for how many passwords the keys are kept.
	maxSCRAMKeys = 1024
	maxUserBytes = 256
)

// scram is one exchange: the client names a user, is given a salt, and proves that it knows a password. A
// user may have several, of which any is good.
type scram struct {
	mechanism string
	user      string
	// bound is what the client has to repeat in its last message, and bare and challenged are what the proof
	// is over besides.
	bound, bare, challenged string
	nonce                   string
}

// beginSCRAM reads a client's first message: n,,n=USER,r=NONCE.
func beginSCRAM(mechanism, message string) (*scram, error) {
	head, rest, _ := strings.Cut(message, ",")
	whom, bare, ok := strings.Cut(rest, ",")
	if !ok || head != "n" && head != "y" || whom != "" && !strings.HasPrefix(whom, "a=") {
		return nil, errSCRAM
	}
	user, rest, _ := strings.Cut(bare, ",")
	user, named := strings.CutPrefix(user, "n=")
	nonce, _, _ := strings.Cut(rest, ",")
	nonce, once := strings.CutPrefix(nonce, "r=")
	if !named || !once || user == "" || len(user) > maxUserBytes || nonce == "" || len(nonce) > maxUserBytes {
		return nil, errSCRAM
	}
	return &scram{
		mechanism: mechanism,
		user:      strings.NewReplacer("=2C", ",", "=3D", "=").Replace(user),
		bound:     base64.StdEncoding.EncodeToString([]byte(head + "," + whom + ",")),
		bare:      bare,
		nonce:     nonce + rand.Text(),
	}, nil
}

// challenge is our first message.
func (s *scram) challenge(salt []byte) []byte {
	s.challenged = fmt.Sprintf("r=%s,s=%s,i=%d", s.nonce, base64.StdEncoding.EncodeToString(salt), scramIterations)
	return []byte(s.challenged)
}

// finish reads the client's last message, c=BOUND,r=NONCE,p=PROOF, and gives the password that it knows and
// our last message, which proves that we know it, too. Keys gives those of a password.
func (s *scram) finish(message string, passwords []string, keys func(password string) (scramKeys, error)) (password string, reply []byte, err error) {
	proved, proof, err := s.proof(message)
	if err != nil {
		return "", nil, err
	}
	if len(passwords) > maxPasswords {
		return "", nil, errPasswords
	}
	over := s.bare + "," + s.challenged + "," + proved
	hash := scrams[s.mechanism]
	for _, password := range passwords {
		k, err := keys(password)
		if err != nil {
			return "", nil, err
		}
		if password != "" && k.proved(hash, over, proof) {
			return password, []byte("v=" + base64.StdEncoding.EncodeToString(mac(hash, k.server, over))), nil
		}
	}
	return "", nil, errProof
}

// proof gives what of the client's last message is proved, and the proof.
func (s *scram) proof(message string) (proved string, proof []byte, err error) {
	at := strings.LastIndex(message, ",p=")
	if at < 0 {
		return "", nil, errSCRAM
	}
	proved = message[:at]
	if more, ok := strings.CutPrefix(proved, "c="+s.bound+",r="+s.nonce); !ok || more != "" && more[0] != ',' {
		return "", nil, errSCRAM
	}
	if proof, err = base64.StdEncoding.DecodeString(message[at+len(",p="):]); err != nil {
		return "", nil, errSCRAM
	}
	return proved, proof, nil
}

// scramKeys are what is made of a password.
type scramKeys struct{ stored, server []byte }

// proved: whoever made the proof knows the password.
func (k scramKeys) proved(hash func() hash.Hash, over string, proof []byte) bool {
	client := mac(hash, k.stored, over)
	if len(proof) != len(client) {
		return false
	}
	subtle.XORBytes(client, client, proof)
	h := hash()
	h.Write(client)
	return subtle.ConstantTimeCompare(h.Sum(nil), k.stored) == 1
}

func mac(hash func() hash.Hash, key []byte, message string) []byte {
	m := hmac.New(hash, key)
	m.Write([]byte(message))
	return m.Sum(nil)
}

// scramSecrets makes salts, and keys of passwords, which it keeps: they cost milliseconds, and a stranger
// may ask for them.
type scramSecrets struct {
	seed [32]byte

	mu   sync.Mutex
	kept map[[sha256.Size]byte]scramKeys // guarded by mu
}

// salt is that of a user, whether there is such a user or not, so that strangers do not hear which there
// are. It is another when the server starts anew, and the same for all spellings of a name: else each of
// them would have keys of its own made.
func (s *scramSecrets) salt(mechanism, user string) []byte {
	return mac(sha256.New, s.seed[:], mechanism+"\x00"+strings.ToLower(user))[:16]
}

// keys gives those of a password.
func (s *scramSecrets) keys(mechanism, user, password string) (scramKeys, error) {
	id := [sha256.Size]byte(mac(sha256.New, s.seed[:], mechanism+"\x00"+strings.ToLower(user)+"\x00"+password))
	s.mu.Lock()
	keys, ok := s.kept[id]
	s.mu.Unlock()
	if ok {
		return keys, nil
	}
	keys, err := makeSCRAMKeys(scrams[mechanism], password, s.salt(mechanism, user), scramIterations)
	if err != nil {
		return keys, fmt.Errorf("make keys for SCRAM: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[[sha256.Size]byte]scramKeys{}
	}
	for other := range s.kept { // any of them: to forget all would have all made again
		if len(s.kept) < maxSCRAMKeys {
			break
		}
		delete(s.kept, other)
	}
	s.kept[id] = keys
	return keys, nil
}

// makeSCRAMKeys makes the keys of a password (RFC 5802, §3).
func makeSCRAMKeys(hash func() hash.Hash, password string, salt []byte, iterations int) (scramKeys, error) {
	h := hash()
	salted, err := pbkdf2.Key(hash, password, salt, iterations, h.Size())
	if err != nil {
		return scramKeys{}, err
	}
	h.Write(mac(hash, salted, "Client Key"))
	return scramKeys{stored: h.Sum(nil), server: mac(hash, salted, "Server Key")}, nil
}
