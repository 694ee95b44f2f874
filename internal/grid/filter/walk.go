package filter

import (
	"bytes"

	"github.com/eventyard/eventyard/internal/grid/schema"
)

// take stores the value at an index as a node's, and what the node's members are in it. It gives
// the index behind the value, -1 where there is none.
func (s *scratch) take(l *layout, at int32, data []byte, from int) int {
	n := &l.nodes[at]
	if n.count > 0 && data[from] == '{' {
		if n.slot >= 0 {
			s.fill(n.slot).kind = object
		}
		return s.walk(l, at, data, from+1)
	}
	end := skipValue(data, from)
	if end > 0 && n.slot >= 0 {
		s.fill(n.slot).setJSON(data[from:end])
	}
	return end
}

// walk goes over the members of an object, from behind its brace, and gives the index
// behind it. It ends early once all are found that are asked for.
func (s *scratch) walk(l *layout, of int32, data []byte, at int) int {
	exact, mark := 0, len(s.loose)
	for at = skipSpace(data, at); at < len(data) && data[at] == '"'; {
		behind := skipString(data, at)
		if behind < 0 {
			return -1
		}
		name := data[at+1 : behind-1]
		if at = skipColon(data, behind); at < 0 {
			return -1
		}
		end, hits := s.meet(l, of, name, data, at)
		if end < 0 {
			return -1
		}
		if exact += hits; exact == l.nodes[of].count {
			s.loose = s.loose[:mark]
			if of == 0 {
				return len(data) // behind data nothing is wanted
			}
			return skipRest(data, end)
		}
		if at = skipSpace(data, end); at < len(data) && data[at] == ',' {
			at = skipSpace(data, at+1)
		}
	}
	// Of the members whose name fits in another case, those count of which none fits exactly.
	for i := mark; i < len(s.loose); i++ {
		if loose := s.loose[i]; !s.found[loose.node].exact {
			s.take(l, loose.node, data, loose.at)
		}
	}
	s.loose = s.loose[:mark]
	if at >= len(data) || data[at] != '}' {
		return -1
	}
	return at + 1
}

// skipColon gives the index of the value behind a member's name.
func skipColon(data []byte, at int) int {
	at = skipSpace(data, at)
	if at >= len(data) || data[at] != ':' {
		return -1
	}
	if at = skipSpace(data, at+1); at >= len(data) {
		return -1
	}
	return at
}

// meet sees to one member of an object: it takes its value where the name is exactly one
// that is asked for, and notes it where only the case differs. It gives the index behind
// the value and how many took it.
func (s *scratch) meet(l *layout, of int32, name, data []byte, at int) (end, hits int) {
	names, name := s.lookUp(&l.nodes[of], name)
	if names == nil {
		return skipValue(data, at), 0
	}
	taker := int32(-1)
	for _, member := range names.members {
		f := &s.found[member]
		met := f.event == s.event
		switch exact := l.nodes[member].name == string(name); {
		case exact && !(met && f.exact):
			*f = found{s.event, true}
			taker = member
		case !exact && !met:
			*f = found{s.event, false}
			s.loose = append(s.loose, looseMember{member, at})
		}
	}
	if taker < 0 {
		return skipValue(data, at), 0
	}
	// Only now, because it may need the room that name is in.
	return s.take(l, taker, data, at), 1
}

// lookUp finds who asks for a member, and gives its name without escapes.
func (s *scratch) lookUp(n *node, name []byte) (*nodeName, []byte) {
	if bytes.IndexByte(name, '\\') >= 0 {
		s.plain = schema.AppendUnescaped(s.plain[:0], name)
		name = s.plain
	}
	if !n.mayHave(name) {
		return nil, nil
	}
	s.name = appendFolded(s.name[:0], name)
	return n.find(s.name), name
}
