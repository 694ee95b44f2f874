package azureblob

import (
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/blob"
)

const (
	// maxBlockIDBytes is for an id as it was before it was encoded.
	maxBlockIDBytes = 64
	// maxBlockListBytes is for the document that commits blocks.
	maxBlockListBytes = 1 << 20
)

func (c *call) putBlock() error {
	id := c.query.Get("blockid")
	if !isBlockID(id) {
		return invalidQuery("blockid", id)
	}
	when, err := c.conditions()
	if err != nil {
		return err
	}
	body, done, err := c.newUpload()
	if err != nil {
		return err
	}
	defer done()
	sum, err := c.handler.blobs.PutBlock(c.R.Context(), c.at, id, body, when)
	if err != nil {
		return err
	}
	c.Header().Set("x-ms-request-server-encrypted", "true")
	c.sendChecksum(body, sum)
	return c.reply(http.StatusCreated)
}

// isBlockID wants base64 of 1 to 64 bytes.
func isBlockID(id string) bool {
	plain, err := base64.StdEncoding.DecodeString(id)
	return err == nil && len(plain) > 0 && len(plain) <= maxBlockIDBytes
}

func (c *call) putBlockList() error {
	content, when, err := c.writing(false)
	if err != nil {
		return err
	}
	body, done, err := c.newUpload()
	if err != nil {
		return err
	}
	defer done()
	text, err := io.ReadAll(io.LimitReader(body, maxBlockListBytes+1))
	if err != nil {
		return err
	}
	if len(text) > maxBlockListBytes {
		return blob.ErrTooMany
	}
	list, err := parseBlockList(text)
	if err != nil {
		return err
	}
	b, err := c.handler.blobs.Commit(c.R.Context(), c.at, list, content, when)
	if err != nil {
		return err
	}
	c.sendWritten(b.ETag, b.Modified)
	return c.reply(http.StatusCreated)
}

var blockSources = map[string]blob.BlockSource{
	"Latest": blob.Latest, "Committed": blob.Committed, "Uncommitted": blob.Uncommitted,
}

// parseBlockList reads the document token by token, because the order of its elements
// counts whatever their names.
func parseBlockList(text []byte) ([]blob.BlockName, error) {
	invalid := func(what string) error {
		return refusal(http.StatusBadRequest, "InvalidXmlDocument", "the list of blocks is not well formed: "+what)
	}
	decoder := xml.NewDecoder(strings.NewReader(string(text)))
	var list []blob.BlockName
	for begun, ended := false, false; ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) && ended {
			return list, nil
		}
		if err != nil {
			return nil, invalid(err.Error())
		}
		switch t := token.(type) {
		case xml.StartElement:
			if !begun && t.Name.Local == "BlockList" {
				begun = true
				continue
			}
			if !begun || ended {
				return nil, invalid("it is no BlockList, or not one only")
			}
			name, err := blockName(decoder, t)
			if err != nil {
				return nil, err
			}
			if list = append(list, name); len(list) > blob.MaxBlocks {
				return nil, blob.ErrTooMany
			}
		case xml.EndElement:
			ended = true
		}
	}
}

func blockName(decoder *xml.Decoder, start xml.StartElement) (blob.BlockName, error) {
	source, known := blockSources[start.Name.Local]
	var id string
	if err := decoder.DecodeElement(&id, &start); err != nil || !known {
		return blob.BlockName{}, refusal(http.StatusBadRequest, "InvalidXmlNodeValue", "a list of blocks has Latest, Committed and Uncommitted only")
	}
	id = strings.TrimSpace(id)
	if !isBlockID(id) {
		return blob.BlockName{}, refusal(http.StatusBadRequest, "InvalidBlockId", fmt.Sprintf("%.96q is no id of a block", id))
	}
	return blob.BlockName{ID: id, Source: source}, nil
}

// blockListDocument is a list of blocks as clients are shown it.
type blockListDocument struct {
	XMLName     xml.Name        `xml:"BlockList"`
	Committed   *blocksDocument `xml:"CommittedBlocks"`
	Uncommitted *blocksDocument `xml:"UncommittedBlocks"`
}

type blocksDocument struct{ Block []blockDocument }

type blockDocument struct {
	Name string
	Size int64
}

func (c *call) getBlockList() error {
	when, err := c.conditions()
	if err != nil {
		return err
	}
	list, err := c.handler.blobs.Blocks(c.R.Context(), c.at, when)
	if err != nil {
		return err
	}
	var document blockListDocument
	kind := c.query.Get("blocklisttype")
	switch kind {
	case "", "committed", "uncommitted", "all":
	default:
		return invalidQuery("blocklisttype", kind)
	}
	if kind != "uncommitted" {
		document.Committed = blocksOf(list.CommittedBlocks)
	}
	if kind == "uncommitted" || kind == "all" {
		document.Uncommitted = blocksOf(list.UncommittedBlocks)
	}
	if !list.Uncommitted {
		c.sendVersion(list.ETag, list.Modified)
	}
	c.Header().Set("x-ms-blob-content-length", strconv.FormatInt(list.Bytes, 10))
	return c.replyXML(http.StatusOK, document)
}

func blocksOf(list []blob.Block) *blocksDocument {
	document := &blocksDocument{}
	for _, b := range list {
		document.Block = append(document.Block, blockDocument{b.ID, b.Bytes})
	}
	return document
}
