package server

import (
	"context"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/quota"
)

// Routes are all that a yard of this configuration serves over HTTP. Its folder is made and left.
func Routes(ctx context.Context, cfg Config) ([]frame.Route, error) {
	s, err := New(cfg)
	if err != nil {
		return nil, err
	}
	y, err := openYard(ctx, s.cfg, nil)
	if err != nil {
		return nil, err
	}
	all, err := s.newListeners(newInside(y, "sb://localhost/"))
	if err != nil {
		return nil, err
	}
	return all.api.Routes(), y.close()
}

// AnyFailures lets wrong keys be shown without a wait, for tests that show many.
func AnyFailures(cfg *Config) { cfg.failurePace = quota.Rate{PerSecond: 1e6, Burst: 1e6} }
