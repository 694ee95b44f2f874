package oidc

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// claims are those that rights are read from. Each is a text or a list of texts: roles
// as directories give them, scope as OAuth has it, scp as Microsoft has it.
type claims struct {
	Roles texts `json:"roles"`
	Scope texts `json:"scope"`
	SCP   texts `json:"scp"`
}

type texts []string

// UnmarshalJSON passes over what is neither text nor list: it may mean something to somebody else.
func (t *texts) UnmarshalJSON(value []byte) error {
	var one string
	if json.Unmarshal(value, &one) == nil {
		*t = texts{one}
		return nil
	}
	var many []any
	if json.Unmarshal(value, &many) != nil {
		return nil
	}
	for _, item := range many {
		if text, ok := item.(string); ok {
			*t = append(*t, text)
		}
	}
	return nil
}

// words are what stands between blanks.
func (t texts) words() (all []string) {
	for _, text := range t {
		all = append(all, strings.Fields(text)...)
	}
	return all
}

// azureRoles are the roles of Event Hubs in Azure, folded.
var azureRoles = map[string]auth.Rights{
	"azure event hubs data sender":   auth.Send,
	"azure event hubs data receiver": auth.Listen,
	"azure event hubs data owner":    auth.Manage,
}

// scopes are what the claims allow, one for each path, in the order in which they come.
// A role is taken as a whole, since the names of some have blanks, and one that is called
// "may not Send" must not give Send; the others are lists of words.
func (c claims) scopes() []auth.Scope {
	var all []auth.Scope
	at := make(map[string]int)
	for _, list := range [][]string{c.Roles, c.Scope.words(), c.SCP.words()} {
		for _, text := range list {
			s, ok := parseScope(text)
			if !ok {
				continue // it means something to somebody else
			}
			i, known := at[s.Path]
			if !known {
				i = len(all)
				at[s.Path] = i
				all = append(all, auth.Scope{Path: s.Path})
			}
			all[i].Rights |= s.Rights
		}
	}
	return all
}

// parseScope reads Send, Listen, Manage or a role of Azure's, for the namespace or, with
// a colon behind it, for a hub. A colon and no name is no scope, or a slip would open the
// whole namespace; nor is a name with blanks, which no hub has.
func parseScope(text string) (auth.Scope, bool) {
	name, hub, narrowed := strings.Cut(text, ":")
	rights, ok := azureRoles[auth.Fold(name)]
	if !ok {
		parsed, err := auth.ParseRights([]string{name})
		if err != nil {
			return auth.Scope{}, false
		}
		rights = parsed
	}
	path := auth.PathOf(hub)
	if narrowed && path == "" || strings.ContainsFunc(path, unicode.IsSpace) {
		return auth.Scope{}, false
	}
	return auth.Scope{Path: path, Rights: rights}, true
}
