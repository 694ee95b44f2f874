package v1

import (
	_ "embed"
	"net/http"

	"github.com/eventyard/eventyard/internal/api/frame"
)

// openAPIDocument describes every route; openapi_test.go holds it to the truth.
//
//go:embed openapi.json
var openAPIDocument []byte

func (d *Handler) openAPI(w http.ResponseWriter, _ *http.Request) error {
	frame.Reply(w, http.StatusOK, "application/json", openAPIDocument)
	return nil
}
