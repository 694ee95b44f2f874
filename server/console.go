//go:build !noconsole

package server

import (
	"context"
	"net/http"

	"github.com/eventyard/eventyard/internal/api/console"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/access/oidc"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/sessions"
)

// console is the web console: a client of the API, which lets it in as whoever has signed in there.
// This is the one caller of frame.WithGrant.
func (d *listeners) console(y *yard, stopping context.Context) []frame.API {
	var issuer console.Issuer
	if c := y.cfg.OIDC; c.ClientID != "" {
		issuer = oidc.NewLogin(oidc.LoginConfig{Issuer: c.Issuer, ClientID: c.ClientID, Scope: c.Scope})
	}
	return []frame.API{console.New(console.Config{
		API: func(w http.ResponseWriter, r *http.Request, as auth.Grant) {
			d.api.ServeHTTP(w, r.WithContext(frame.WithGrant(r.Context(), as)))
		},
		Access:   y.access,
		Sessions: sessions.New(sessions.Config{Meta: y.storage.Meta, Access: y.access, Looks: y.newLooks(), Log: y.cfg.Log}),
		Issuer:   issuer, PublicURL: y.cfg.PublicURL, Stopping: stopping, Log: y.cfg.Log,
	}).API()}
}
