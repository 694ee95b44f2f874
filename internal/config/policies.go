package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

func (c Config) validatePolicies(found *complaints) {
	first := map[string]int{}
	for i, p := range c.Policies {
		key := fmt.Sprintf("policies[%d]", i)
		found.addError(key+".name", checkPolicyName(p))
		if p.Hub != "" {
			found.addError(key+".hub", checkHubName(p.Hub, nil))
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

func checkPolicyName(p admin.PolicyRequest) error {
	switch {
	case p.Name == "":
		return errors.New("the policy needs a name")
	case strings.EqualFold(p.Name, auth.RootPolicy) && p.Hub == "":
		return fmt.Errorf("%s is the yard's own: declare another policy with the right manage", auth.RootPolicy)
	}
	return auth.CheckPolicyName(p.Name)
}

// checkKey takes no key for one that is to be made.
func checkKey(key string) error {
	if key == "" {
		return nil
	}
	return auth.CheckKey(key)
}
