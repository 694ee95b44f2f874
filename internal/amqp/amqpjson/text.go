package amqpjson

import (
	"encoding/base64"
	"encoding/hex"
	"unicode/utf8"
)

// AppendText writes a JSON string. What is not valid UTF-8 becomes U+FFFD.
func AppendText[T string | []byte](dst []byte, t T, style Style) []byte {
	dst = append(dst, '"')
	from := 0 // all before it is written
	for i := 0; i < len(t); {
		c := t[i]
		switch {
		case c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf:
			i++
		case c < utf8.RuneSelf:
			dst = append(dst, t[from:i]...)
			dst = appendEscape(dst, c, style)
			i++
			from = i
		default:
			r, size := utf8.DecodeRuneInString(string(t[i:min(i+utf8.UTFMax, len(t))]))
			if r == utf8.RuneError && size == 1 {
				dst = append(dst, t[from:i]...)
				dst = append(dst, "\ufffd"...)
				from = i + 1
			}
			i += size
		}
	}
	dst = append(dst, t[from:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte, style Style) []byte {
	switch {
	case c == '"', c == '\\':
		return append(dst, '\\', c)
	case style == Plain:
	case c == '\n':
		return append(dst, '\\', 'n')
	case c == '\r':
		return append(dst, '\\', 'r')
	case c == '\t':
		return append(dst, '\\', 't')
	}
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}

// AppendBase64 writes bytes.
func AppendBase64(dst, data []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), data), '"')
}

func appendHex(dst, data []byte) []byte {
	return append(hex.AppendEncode(append(dst, '"'), data), '"')
}

func appendUUID(dst []byte, id [16]byte) []byte {
	dst = hex.AppendEncode(append(dst, '"'), id[:4])
	dst = hex.AppendEncode(append(dst, '-'), id[4:6])
	dst = hex.AppendEncode(append(dst, '-'), id[6:8])
	dst = hex.AppendEncode(append(dst, '-'), id[8:10])
	dst = hex.AppendEncode(append(dst, '-'), id[10:])
	return append(dst, '"')
}
