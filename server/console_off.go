//go:build noconsole

package server

import (
	"context"

	"github.com/eventyard/eventyard/internal/api/frame"
)

// console is left out of this program.
func (d *listeners) console(*yard, context.Context) []frame.API { return nil }
