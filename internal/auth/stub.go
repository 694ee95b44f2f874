package auth

import "time"

// Has tells whether all of need is there.
func (r Rights) Has(need Rights) bool { panic("stub") }

// Names gives Send, Listen, Manage as they are written; Manage stands for all three.
func (r Rights) Names() []string { panic("stub") }

func (r Rights) String() string { panic("stub") }

// ParseRights reads names, in any case; at least one.
func ParseRights(names []string) (Rights, error) { panic("stub") }

// Allows tells whether the grant is good for a path, as Path makes it, at that time: the
// grant's path is the same or a prefix of it, segment by segment.
func (g Grant) Allows(path string, need Rights, now time.Time) bool { panic("stub") }

// Path is the part of a resource's URI that rights are judged by: without scheme, user,
// host and port, in lower case, unescaped, without slashes at its ends. A bare host name
// is the namespace: the empty path.
func Path(uri string) (string, error) { panic("stub") }

// Signature is a shared-access signature taken apart.
type Signature struct {
	// Resource is what it was made for, unescaped; Path what that comes to.
	Resource, Path string
	// Policy is the name of the policy whose key signed it, unescaped.
	Policy  string
	Expires time.Time
	// signed and mac are what was signed, as it stands in the token, and the signature.
	signed string
	mac    []byte
}

// ParseSignature reads "SharedAccessSignature sr=…&sig=…&se=…&skn=…"; ErrMalformed.
func ParseSignature(token string) (Signature, error) { panic("stub") }

// SignedBy compares in constant time.
func (s Signature) SignedBy(key string) bool { panic("stub") }

// Sign makes a token for a resource, such as sb://host/hub.
func Sign(resource, policy, key string, expires time.Time) string { panic("stub") }

// ConnectionString is what Event Hubs clients are configured with.
type ConnectionString struct {
	// Endpoint is sb://host[:port]/
	Endpoint string
	Policy   string
	Key      string
	// Signature is a ready-made token in place of policy and key.
	Signature string
	// Hub is the EntityPath; empty if there is none.
	Hub string
	// Emulator is UseDevelopmentEmulator: plain TCP.
	Emulator bool
}

// ParseConnectionString reads one, keys in any case and order.
func ParseConnectionString(text string) (ConnectionString, error) { panic("stub") }

// String writes it in the order that the portal uses.
func (c ConnectionString) String() string { panic("stub") }
