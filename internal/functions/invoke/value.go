package invoke

import "github.com/eventyard/eventyard/internal/amqp/amqpjson"

// Values, text and fields look as they do when they are read at the yard's HTTP listener.

func appendValue(dst []byte, v any) []byte { return amqpjson.AppendValue(dst, v, amqpjson.Exact) }

func appendText[T string | []byte](dst []byte, t T) []byte {
	return amqpjson.AppendText(dst, t, amqpjson.Exact)
}

func appendBase64(dst, data []byte) []byte { return amqpjson.AppendBase64(dst, data) }

func appendName(dst []byte, name string) []byte { return amqpjson.AppendName(dst, name) }

func appendTextField[T string | []byte](dst []byte, name string, t T) []byte {
	return amqpjson.AppendTextField(dst, name, t)
}
