package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/internal/auth"
)

func (c Config) validatePolicies(found *complaints) {
	first := map[string]int{}
	for i, p := range c.Policies {
		key := fmt.Sprintf("policies[%d]", i)
		found.addError(key+".name", p.checkName())
		if p.Hub != "" && !IsName(p.Hub) {
			found.add(key+".hub", "%q is no name: %s", p.Hub, nameRule)
		}
		id := strings.ToLower(p.Hub) + "\x00" + strings.ToLower(p.Name)
		if j, twice := first[id]; twice && p.Name != "" {
			found.add(key+".name", "policy %q is already policies[%d]", p.Name, j)
		} else {
			first[id] = i
		}
		_, err := auth.ParseRights(p.Rights)
		found.addError(key+".rights", err)
		found.addError(key+".primaryKey", checkKey(p.PrimaryKey))
		found.addError(key+".secondaryKey", checkKey(p.SecondaryKey))
	}
}

func (p Policy) checkName() error {
	switch {
	case p.Name == "":
		return errors.New("the policy needs a name")
	case strings.EqualFold(p.Name, auth.RootPolicy) && p.Hub == "":
		return fmt.Errorf("%s is the yard's own: declare another policy with the right manage", auth.RootPolicy)
	case !IsName(p.Name) || len(p.Name) > 64 || strings.Contains(p.Name, "/"):
		return fmt.Errorf("%q is no name: use 1 to 64 letters, digits, '-', '_' and '.', with a letter or digit at both ends", p.Name)
	}
	return nil
}

// checkKey refuses what everybody knows, what can be guessed, and what no connection
// string could hold.
func checkKey(key string) error {
	unfit := func(r rune) bool { return r <= ' ' || r > '~' || r == ';' }
	switch {
	case key == "":
		return nil
	case key == auth.DevelopmentKey:
		return errors.New("this key is known to everybody; in development mode it is good for " + auth.RootPolicy)
	case len(key) < 16 || len(key) > 256 || strings.ContainsFunc(key, unfit):
		return errors.New("a key has 16 to 256 characters of ASCII, no blanks and no semicolon; leave it out to have one made")
	}
	return nil
}
