package auth

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

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

// The parts of a connection string, as they are written.
const (
	partEndpoint  = "Endpoint"
	partPolicy    = "SharedAccessKeyName"
	partKey       = "SharedAccessKey"
	partSignature = "SharedAccessSignature"
	partHub       = "EntityPath"
	partEmulator  = "UseDevelopmentEmulator"
)

// ParseConnectionString reads one, keys in any case and order. What other clients know
// besides is passed over. Errors wrap ErrConnectionString and show no key.
func ParseConnectionString(text string) (ConnectionString, error) {
	c, err := splitConnectionString(text)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return ConnectionString{}, fmt.Errorf("%w: %w", ErrConnectionString, err)
	}
	return c, nil
}

func splitConnectionString(text string) (ConnectionString, error) {
	var c ConnectionString
	seen := make(map[string]bool)
	for part := range strings.SplitSeq(text, ";") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return c, errors.New("a part has no '=', write Name=value with ';' between the parts")
		}
		name, value = Fold(strings.TrimSpace(name)), strings.TrimSpace(value)
		if seen[name] {
			return c, fmt.Errorf("it has %.64s twice", name)
		}
		seen[name] = true
		var err error
		switch name {
		case Fold(partEndpoint):
			c.Endpoint, err = parseEndpoint(value)
		case Fold(partPolicy):
			c.Policy = value
		case Fold(partKey):
			c.Key = value
		case Fold(partSignature):
			c.Signature = value
		case Fold(partHub):
			c.Hub = strings.Trim(value, "/")
		case Fold(partEmulator):
			if c.Emulator = Fold(value) == "true"; !c.Emulator && Fold(value) != "false" {
				err = fmt.Errorf("%s is %.32q, write true or false", partEmulator, value)
			}
		}
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// parseEndpoint takes what clients take: with or without a scheme and slash at the end.
func parseEndpoint(value string) (string, error) {
	if !strings.Contains(value, "://") {
		value = "sb://" + value
	}
	u, err := url.Parse(value)
	unfit := func(r rune) bool { // would have to be escaped, which no two clients do alike
		return r > '~' || !alphanumeric(byte(r)) && !strings.ContainsRune("-._:[]", r)
	}
	if err != nil || strings.ContainsFunc(u.Host, unfit) || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.User != nil {
		return "", fmt.Errorf("%s is %.128q, write sb://host/ or sb://host:port/", partEndpoint, value)
	}
	return "sb://" + u.Host + "/", nil
}

func (c ConnectionString) check() error {
	switch {
	case c.Endpoint == "":
		return lacks(partEndpoint)
	case c.Signature != "" && (c.Policy != "" || c.Key != ""):
		return fmt.Errorf("it has %s beside %s and %s: one of them is enough", partSignature, partPolicy, partKey)
	case c.Signature != "":
		return nil
	case c.Policy == "" && c.Key == "":
		return lacks(partPolicy + " and " + partKey + ", or " + partSignature)
	case c.Policy == "":
		return lacks(partPolicy)
	case c.Key == "":
		return lacks(partKey)
	}
	return nil
}

func lacks(parts string) error { return errors.New("it lacks " + parts) }

// Host is the endpoint's, with its port if it has one.
func (c ConnectionString) Host() string {
	return strings.TrimSuffix(strings.TrimPrefix(c.Endpoint, "sb://"), "/")
}

// String writes it in the order that the portal uses.
func (c ConnectionString) String() string {
	var b strings.Builder
	write := func(name, value string) {
		if value == "" {
			return
		}
		if b.Len() > 0 {
			b.WriteByte(';')
		}
		b.WriteString(name + "=" + value)
	}
	write(partEndpoint, c.Endpoint)
	write(partPolicy, c.Policy)
	write(partKey, c.Key)
	write(partSignature, c.Signature)
	write(partHub, c.Hub)
	if c.Emulator {
		write(partEmulator, "true")
	}
	return b.String()
}
