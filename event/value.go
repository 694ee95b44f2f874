package event

import "github.com/eventyard/eventyard/internal/amqp/wire"

// The types of AMQP for which Go has none. Most programs meet none of them.
type (
	// Symbol is a name from some constrained domain, in ASCII.
	Symbol = wire.Symbol
	// Char is one Unicode character.
	Char = wire.Char
	// Decimal32, Decimal64 and Decimal128 are the bytes of IEEE 754-2008 decimals.
	Decimal32  = wire.Decimal32
	Decimal64  = wire.Decimal64
	Decimal128 = wire.Decimal128
	// Map is a map with its entries in the sender's order.
	Map = wire.Map
	// Pair is an entry of a Map.
	Pair = wire.Pair
	// Array is a sequence of values of one type.
	Array = wire.Array
	// Described is a value with a descriptor that gives it its meaning.
	Described = wire.Described
)
