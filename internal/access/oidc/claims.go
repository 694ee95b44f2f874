package oidc

import (
	"encoding/json"
	"strings"

	"github.com/eventyard/eventyard/internal/auth"
)

// claims are those that rights are read from. Each is a text or a list of texts: roles
// as directories give them, scope as OAuth has it, scp as Microsoft has it.
type claims struct {
	Roles words `json:"roles"`
	Scope words `json:"scope"`
	SCP   words `json:"scp"`
}

type words []string

// UnmarshalJSON passes over what is neither text nor list: it may mean something to
// somebody else.
func (w *words) UnmarshalJSON(value []byte) error {
	var one string
	if json.Unmarshal(value, &one) == nil {
		*w = words{one}
		return nil
	}
	var many []any
	if json.Unmarshal(value, &many) != nil {
		return nil
	}
	for _, item := range many {
		if text, ok := item.(string); ok {
			*w = append(*w, text)
		}
	}
	return nil
}

// azureRoles are the roles of Event Hubs in Azure, folded.
var azureRoles = map[string]auth.Rights{
	"azure event hubs data sender":   auth.Send,
	"azure event hubs data receiver": auth.Listen,
	"azure event hubs data owner":    auth.Manage,
}

// scopes are what the claims allow, one for each path, in the order in which they come.
func (c claims) scopes() []auth.Scope {
	var all []auth.Scope
	at := make(map[string]int)
	add := func(s auth.Scope) {
		i, ok := at[s.Path]
		if !ok {
			i = len(all)
			at[s.Path] = i
			all = append(all, auth.Scope{Path: s.Path})
		}
		all[i].Rights |= s.Rights
	}
	for _, list := range []words{c.Roles, c.Scope, c.SCP} {
		for _, text := range list {
			for _, s := range parseScopes(text) {
				add(s)
			}
		}
	}
	return all
}

// parseScopes takes a text for one scope or, if it is none, for several with blanks
// between them: Azure's names have blanks themselves. What is no scope is passed over.
func parseScopes(text string) []auth.Scope {
	if s, ok := parseScope(text); ok {
		return []auth.Scope{s}
	}
	var list []auth.Scope
	for word := range strings.FieldsSeq(text) {
		if s, ok := parseScope(word); ok {
			list = append(list, s)
		}
	}
	return list
}

// parseScope reads Send, Listen, Manage or a role of Azure's, for the namespace or, with
// a colon behind it, for a hub. A colon and no name is no scope, or a slip would open the
// whole namespace.
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
	path := auth.PathOf(strings.TrimSpace(hub))
	if narrowed && path == "" {
		return auth.Scope{}, false
	}
	return auth.Scope{Path: path, Rights: rights}, true
}
