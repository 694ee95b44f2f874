package console

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"html/template"
	"strings"
)

// showBody makes a body readable. All of it is text of strangers: it is escaped here, and what is made
// of it is text and spans of ours.
func showBody(body []byte, as string, cut bool) template.HTML {
	switch as {
	case "hex":
		return template.HTML(template.HTMLEscapeString(hex.Dump(body)))
	case "json", cloudForm:
		var indented bytes.Buffer
		if !cut && isReadable(body) && json.Indent(&indented, body, "", "  ") == nil {
			if indented.Len() > maxColoured {
				return template.HTML(template.HTMLEscapeString(pictures(indented.String())))
			}
			return colourJSON(indented.String())
		}
	}
	return template.HTML(template.HTMLEscapeString(pictures(strings.ToValidUTF8(string(body), "\ufffd"))))
}

// Bounds of what a body may become: a list in a list in a list, indented, is as long as its square, and
// colours take twenty bytes for each number.
const (
	maxDepth    = 64
	maxGrowth   = 4
	maxColoured = 256 << 10
)

// isReadable tells whether JSON is worth indenting: not too deep, and not much longer then.
func isReadable(text []byte) bool {
	depth, size, quoted := 0, len(text), false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			size += 1 + 2*depth
		case c == '}' || c == ']':
			depth--
			size += 1 + 2*max(depth, 0)
		case c == ',':
			size += 1 + 2*depth
		}
		if depth > maxDepth || size > maxGrowth*len(text)+bodyBytes {
			return false
		}
	}
	return true
}

// colourJSON puts names, texts and numbers of indented JSON into spans.
func colourJSON(text string) template.HTML {
	var out strings.Builder
	span := func(class, part string) {
		out.WriteString(`<span class="` + class + `">` + template.HTMLEscapeString(pictures(part)) + `</span>`)
	}
	for i := 0; i < len(text); {
		end := i + 1
		switch c := text[i]; {
		case c == '"':
			end = i + stringEnd(text[i:])
			if strings.HasPrefix(text[end:], ":") {
				span("k", text[i:end])
			} else {
				span("s", text[i:end])
			}
		case c == '-' || c >= '0' && c <= '9':
			for end < len(text) && strings.IndexByte("0123456789+-.eE", text[end]) >= 0 {
				end++
			}
			span("n", text[i:end])
		default:
			for end < len(text) && text[end] != '"' && text[end] != '-' && (text[end] < '0' || text[end] > '9') {
				end++
			}
			out.WriteString(template.HTMLEscapeString(text[i:end]))
		}
		i = end
	}
	return template.HTML(out.String())
}

// stringEnd is how long the JSON string is that a text begins with.
func stringEnd(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}
