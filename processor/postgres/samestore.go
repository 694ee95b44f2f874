package postgres

import (
	"errors"

	"github.com/eventyard/eventyard/processor"
)

// errOtherStore: the processor keeps its checkpoints elsewhere, and nothing here could move them.
var errOtherStore = errors.New("transaction: the processor keeps its checkpoints in another store: set Config.Store to the store whose InTx is used")

// in finds ourselves in the processor's store: a user's store may have one of this package in it,
// embedded or told by a method Unwrap.
func in(other processor.Store) *Store {
	for {
		switch s := other.(type) {
		case interface{ self() *Store }:
			return s.self()
		case interface{ Unwrap() processor.Store }:
			other = s.Unwrap()
		default:
			return nil
		}
	}
}

func (s *Store) self() *Store { return s }

// keeps tells whether the processor's store has its records where we have ours, as far as that can
// be told without asking the database: two pools may lead to the same one.
func (s *Store) keeps(other processor.Store) bool {
	o := in(other)
	return o != nil && o.cfg.Schema == s.cfg.Schema && o.cfg.Prefix == s.cfg.Prefix
}
