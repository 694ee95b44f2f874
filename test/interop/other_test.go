//go:build !linux

package interop

import "testing"

func TestInterop(t *testing.T) {
	t.Skip("the foreign clients run in namespaces of their own, which only Linux has")
}
