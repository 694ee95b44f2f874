package config

import (
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

func (c Config) validatePolicies(found *complaints) {
	first := map[string]int{}
	for i, p := range c.Policies {
		key := fmt.Sprintf("policies[%d]", i)
		switch {
		case p.Name == "":
			found.add(key+".name", "the policy needs a name")
		case strings.EqualFold(p.Name, auth.RootPolicy) && p.Hub == "":
			found.add(key+".name", "%s is the yard's own: declare another policy with the right manage", auth.RootPolicy)
		default:
			found.addError(key+".name", auth.CheckPolicyName(p.Name))
		}
		if p.Hub != "" {
			found.addError(key+".hub", checkHubName(p.Hub, nil))
		}
		id := strings.ToLower(p.Hub) + "\x00" + strings.ToLower(p.Name)
		if j, twice := first[id]; twice && p.Name != "" {
			found.add(key+".name", "policy %q is already policies[%d]", p.Name, j)
		} else {
			first[id] = i
		}
		rights, err := auth.ParseRights(p.Rights)
		found.addError(key+".rights", err)
		if p.Hub != "" && rights.Has(auth.Metrics) {
			found.add(key+".rights", "metrics are those of the whole yard: leave the hub out")
		}
		if p.PrimaryKey != "" { // else it is made
			found.addError(key+".primaryKey", auth.CheckKey(p.PrimaryKey))
		}
		if p.SecondaryKey != "" {
			found.addError(key+".secondaryKey", auth.CheckKey(p.SecondaryKey))
		}
	}
}
