//go:build !linux

package parts

import "errors"

func newNetwork() *Network { return &Network{} }

func (n *Network) make(int) error { return errors.ErrUnsupported }
func (n *Network) remove() error  { return nil }
