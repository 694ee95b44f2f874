package azureblob

import (
	"net/http"

	"github.com/eventyard/eventyard/internal/hubs/blob"
)

// putBlob writes a blob as a whole.
func (c *call) putBlob() error {
	switch kind := c.R.Header.Get("x-ms-blob-type"); kind {
	case "BlockBlob":
	case "":
		return missingHeader("x-ms-blob-type")
	case "AppendBlob", "PageBlob":
		return notOffered("a blob of type " + kind)
	default:
		return invalidHeader("x-ms-blob-type", kind)
	}
	content, when, err := c.writing(true)
	if err != nil {
		return err
	}
	body, done, err := c.newUpload()
	if err != nil {
		return err
	}
	defer done()
	if len(content.Properties.ContentMD5) == 0 {
		content.Properties.ContentMD5 = body.wantMD5
	}
	b, err := c.handler.blobs.Put(c.R.Context(), c.at, body, content, when)
	if err != nil {
		return err
	}
	c.sendWritten(b.ETag, b.Modified)
	c.sendChecksum(body, b.Properties.ContentMD5)
	return c.reply(http.StatusCreated)
}

// writing reads what a write says of the blob and depends on.
func (c *call) writing(usualHeaders bool) (content blob.Content, when blob.Conditions, err error) {
	if when, err = c.conditions(); err != nil {
		return content, when, err
	}
	if content.Metadata, err = c.metadata(); err != nil {
		return content, when, err
	}
	content.Properties, err = c.properties(usualHeaders)
	return content, when, err
}

func (c *call) setMetadata() error {
	content, when, err := c.writing(false)
	if err != nil {
		return err
	}
	b, err := c.handler.blobs.SetMetadata(c.R.Context(), c.at, content.Metadata, when)
	if err != nil {
		return err
	}
	c.sendWritten(b.ETag, b.Modified)
	return c.reply(http.StatusOK)
}

func (c *call) setProperties() error {
	if c.R.Header.Get("x-ms-blob-content-length") != "" || c.R.Header.Get("x-ms-sequence-number-action") != "" {
		return refusal(http.StatusConflict, "InvalidBlobType", "only page blobs have a length or number to set")
	}
	content, when, err := c.writing(false)
	if err != nil {
		return err
	}
	b, err := c.handler.blobs.SetProperties(c.R.Context(), c.at, content.Properties, when)
	if err != nil {
		return err
	}
	c.sendVersion(b.ETag, b.Modified)
	return c.reply(http.StatusOK)
}

func (c *call) deleteBlob() error {
	if text := c.R.Header.Get("x-ms-delete-snapshots"); text != "" && text != "include" {
		return refusal(http.StatusBadRequest, "UnsupportedHeader", "blobs have no snapshots here that could be deleted alone")
	}
	when, err := c.conditions()
	if err != nil {
		return err
	}
	if err := c.handler.blobs.Delete(c.R.Context(), c.at, when); err != nil {
		return err
	}
	c.Header().Set("x-ms-delete-type-permanent", "true")
	return c.reply(http.StatusAccepted)
}
