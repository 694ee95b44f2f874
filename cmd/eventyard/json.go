package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// jsonFault says what is wrong with a text that should be JSON, to who knows no parser; any other error in its own words.
func jsonFault(err error) string {
	var (
		syntax *json.SyntaxError
		kind   *json.UnmarshalTypeError
	)
	switch {
	case errors.As(err, &syntax) && syntax.Offset == 0:
		return "it is empty"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &syntax) && strings.HasPrefix(syntax.Error(), "unexpected end"):
		return "it ends in the middle of its JSON"
	case errors.As(err, &syntax):
		return fmt.Sprintf("it is no JSON: it goes wrong at character %d", max(1, syntax.Offset))
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Sprintf("its field %q cannot be a JSON %s", kind.Field, kind.Value)
	case errors.As(err, &kind):
		return fmt.Sprintf("it is a JSON %s, and an object like {…} is wanted", kind.Value)
	}
	return err.Error()
}
