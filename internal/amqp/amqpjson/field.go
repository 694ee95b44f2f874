package amqpjson

import "strconv"

// The fields here are those of the objects in which a hub's events are shown: they are Exact,
// and what an event does not have is left out.

// AppendName begins a further field of an object. Names of ours need no escapes.
func AppendName(dst []byte, name string) []byte {
	dst = append(dst, ',', '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

// AppendTextField writes a field unless it is empty.
func AppendTextField[T string | []byte](dst []byte, name string, t T) []byte {
	if len(t) == 0 {
		return dst
	}
	return AppendText(AppendName(dst, name), t, Exact)
}

// AppendIDField writes a message or correlation id, which is text here whatever its type.
func AppendIDField(dst []byte, name string, id any) []byte {
	if id == nil {
		return dst
	}
	dst = AppendName(dst, name)
	if n, ok := id.(uint64); ok {
		return append(strconv.AppendUint(append(dst, '"'), n, 10), '"')
	}
	return AppendValue(dst, id, Exact)
}

// AppendMapField writes properties, in the order of their names.
func AppendMapField(dst []byte, name string, m map[string]any) []byte {
	if len(m) == 0 {
		return dst
	}
	return appendMap(AppendName(dst, name), m, Exact)
}
