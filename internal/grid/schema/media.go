package schema

import "strings"

const (
	mediaJSON       = "application/json"
	mediaCloudEvent = "application/cloudevents+json"
	mediaBatch      = "application/cloudevents-batch+json"
	// mediaCloudEvents begins all of CloudEvents' own, also those that are not JSON.
	mediaCloudEvents = "application/cloudevents"
)

// mediaType is a content type without its parameters, in lower case. A charset is not looked
// at: JSON is UTF-8, and read as that.
func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// isJSON tells whether data of a media type is JSON (reference §3).
func isJSON(media string) bool {
	return strings.HasSuffix(media, "/json") || strings.Contains(media, "/") && strings.HasSuffix(media, "+json")
}

// isHeaderText tells whether text can stand in a header as it is.
func isHeaderText[T string | []byte](t T) bool {
	for i := range len(t) {
		if (t[i] < ' ' && t[i] != '\t') || t[i] > '~' {
			return false
		}
	}
	return true
}
