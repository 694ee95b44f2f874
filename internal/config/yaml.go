package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxDepth is far beyond what any setting needs and well within the stack.
const maxDepth = 32

// syntaxError is what is wrong with a file before any key is looked at.
type syntaxError struct {
	at     position
	reason string
}

func (e *syntaxError) Error() string { return e.reason }

// parseYAML reads one YAML document. Anchors, aliases and merges are refused: a
// configuration this small needs none, and they can blow up a short file.
func parseYAML(data []byte) (node, error) {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		var known yaml.Error
		if errors.As(err, &known) {
			return node{}, &syntaxError{yamlPosition(known.GetToken()), inPlainWords(known.GetMessage())}
		}
		return node{}, &syntaxError{reason: err.Error()}
	}
	var body ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil: // a mark with nothing behind it
		case body == nil:
			body = doc.Body
		default:
			return node{}, &syntaxError{yamlPosition(doc.Body.GetToken()), "a second document begins here; only one is read"}
		}
	}
	return yamlNode(body, 0)
}

// inPlainWords says what is wrong with a file that is no YAML, to who knows no parser.
func inPlainWords(message string) string {
	for found, words := range map[string]string{
		"found character '\t'":             "a tab begins this line: indent with blanks",
		"sequence end token ']' not found": "a list begins with [ here and does not end with ]",
		"could not find flow mapping end":  "a mapping begins with { here and does not end with }",
		"could not find map value":         "a key without a value, or a { that is not closed: write it as name: value",
	} {
		if strings.Contains(message, found) {
			return words
		}
	}
	return "this is no YAML: " + message
}

func yamlPosition(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{}
	}
	return position{t.Position.Line, t.Position.Column}
}

func yamlNode(from ast.Node, depth int) (node, error) {
	if from == nil {
		return node{}, nil
	}
	at := yamlPosition(from.GetToken())
	if depth > maxDepth {
		return node{}, &syntaxError{at, "nested too deeply"}
	}
	switch n := from.(type) {
	case *ast.NullNode, *ast.CommentGroupNode:
		return node{at: at}, nil
	case *ast.MappingNode:
		return yamlMapping(at, n.Values, depth)
	case *ast.MappingValueNode:
		return yamlMapping(at, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		all := node{at: at, kind: list}
		for _, entry := range n.Values {
			item, err := yamlNode(entry, depth+1)
			if err != nil {
				return node{}, err
			}
			all.items = append(all.items, item)
		}
		return all, nil
	case *ast.LiteralNode:
		return node{at: at, kind: scalar, text: n.Value.Value}, nil
	case *ast.StringNode:
		return node{at: at, kind: scalar, text: n.Value}, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return node{at: at, kind: scalar, text: n.GetToken().Value, bare: true}, nil
	default:
		return node{}, &syntaxError{at, fmt.Sprintf("YAML's %s is not supported here", from.Type().YAMLName())}
	}
}

func yamlMapping(at position, values []*ast.MappingValueNode, depth int) (node, error) {
	n := node{at: at, kind: mapping}
	for _, entry := range values {
		key, err := yamlNode(entry.Key, depth+1)
		if err != nil {
			return node{}, err
		}
		if key.kind != scalar {
			return node{}, &syntaxError{key.at, "a key is wanted here"}
		}
		value, err := yamlNode(entry.Value, depth+1)
		if err != nil {
			return node{}, err
		}
		n.fields = append(n.fields, field{key.at, key.text, value})
	}
	return n, nil
}
