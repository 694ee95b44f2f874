package azureblob

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"maps"
	"net/http"
	"strconv"

	"github.com/eventyard/eventyard/internal/hubs/blob"
)

// maxRangeChecksum is the largest range that a checksum is made of.
const maxRangeChecksum = 4 << 20

// getBlob shows a body, or a range of it.
func (c *call) getBlob() (err error) {
	when, err := c.conditions()
	if err != nil {
		return err
	}
	part, err := rangeOf(c.R)
	if err != nil {
		return err
	}
	body, err := c.handler.blobs.Open(c.R.Context(), c.at, when)
	if err != nil {
		return err
	}
	defer body.Close()
	offset, length, err := part.within(body.Bytes)
	if err != nil {
		c.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", body.Bytes))
		return err
	}
	plain := c.Header().Clone()
	defer func() {
		if err != nil { // the body cannot be read: what was to be told of it is not
			clear(c.Header())
			maps.Copy(c.Header(), plain)
		}
	}()
	status := http.StatusOK
	c.sendBlob(body.Blob)
	if part != nil {
		status = http.StatusPartialContent
		c.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", offset, offset+length-1, body.Bytes))
		if err := c.sendRangeChecksum(body, offset, length); err != nil {
			return err
		}
	}
	c.sendMD5(body.Blob, part != nil)
	c.Header().Set("Content-Length", strconv.FormatInt(length, 10))
	to := &download{c: c, status: status}
	err = body.WriteRange(c.R.Context(), to, offset, length)
	switch {
	case err == nil:
		to.begin() // of an empty body nothing was written
		return nil
	case !to.begun:
		return err
	case to.err == nil && c.R.Context().Err() == nil:
		c.handler.cfg.Log.Error("a blob's body cannot be read to its end", "request", c.ID, "error", err)
	default:
		c.handler.cfg.Log.Debug("a blob was not sent to its end", "request", c.ID, "error", err)
	}
	panic(http.ErrAbortHandler) // so that nobody takes it for whole
}

// sendMD5 tells that of the whole body, by another name where only a part is sent.
func (c *call) sendMD5(b blob.Blob, part bool) {
	if len(b.Properties.ContentMD5) == 0 {
		return
	}
	name := "Content-MD5"
	if part {
		name = "x-ms-blob-content-md5"
	}
	c.Header().Set(name, base64.StdEncoding.EncodeToString(b.Properties.ContentMD5))
}

// sendRangeChecksum reads the range once more for it, if it is asked for.
func (c *call) sendRangeChecksum(body *blob.Body, offset, length int64) error {
	wantMD5 := c.R.Header.Get("x-ms-range-get-content-md5") == "true"
	wantCRC := c.R.Header.Get("x-ms-range-get-content-crc64") == "true"
	if !wantMD5 && !wantCRC {
		return nil
	}
	if length > maxRangeChecksum {
		return refusal(http.StatusBadRequest, "OutOfRangeInput", "a checksum is made of at most 4 MiB")
	}
	var buffer bytes.Buffer
	if err := body.WriteRange(c.R.Context(), &buffer, offset, length); err != nil {
		return err
	}
	if wantMD5 {
		sum := md5.Sum(buffer.Bytes())
		c.Header().Set("Content-MD5", base64.StdEncoding.EncodeToString(sum[:]))
	}
	if wantCRC {
		sum := binary.LittleEndian.AppendUint64(nil, crc64.Checksum(buffer.Bytes(), crcTable))
		c.Header().Set("x-ms-content-crc64", base64.StdEncoding.EncodeToString(sum))
	}
	return nil
}

// blobProperties shows all but the body.
func (c *call) blobProperties() error {
	b, err := c.stat()
	if err != nil {
		return err
	}
	c.sendBlob(b)
	c.sendMD5(b, false)
	c.Header().Set("Content-Length", strconv.FormatInt(b.Bytes, 10))
	return c.reply(http.StatusOK)
}

// blobMetadata shows the metadata alone.
func (c *call) blobMetadata() error {
	b, err := c.stat()
	if err != nil {
		return err
	}
	c.sendVersion(b.ETag, b.Modified)
	c.sendMetadata(b.Metadata)
	return c.reply(http.StatusOK)
}

func (c *call) stat() (blob.Blob, error) {
	when, err := c.conditions()
	if err != nil {
		return blob.Blob{}, err
	}
	return c.handler.blobs.Blob(c.R.Context(), c.at, when)
}

// wrongBlobType answers what is asked of append and page blobs.
func (c *call) wrongBlobType() error {
	if _, err := c.stat(); err != nil {
		return err
	}
	return refusal(http.StatusConflict, "InvalidBlobType", "this is a block blob, the only type that this yard has")
}
