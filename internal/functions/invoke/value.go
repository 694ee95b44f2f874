package invoke

import "github.com/eventyard/eventyard/internal/amqp/amqpjson"

// Values and text look as they do when they are read at the yard's HTTP listener.

func appendValue(dst []byte, v any) []byte { return amqpjson.AppendValue(dst, v, amqpjson.Exact) }

func appendText[T string | []byte](dst []byte, t T) []byte {
	return amqpjson.AppendText(dst, t, amqpjson.Exact)
}
