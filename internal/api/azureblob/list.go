package azureblob

import (
	"cmp"
	"encoding/base64"
	"encoding/xml"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/hubs/blob"
)

// maxLists is how many lists are made at once; more wait their turn. The store reads all
// entries in a folder for a page of it, which at 50,000 blobs takes tens or hundreds of MiB.
const maxLists = 4

// listQuery reads what of a list is wanted, and what is to be told besides.
func (c *call) listQuery() (q blob.ListQuery, include map[string]bool, err error) {
	q = blob.ListQuery{Prefix: c.query.Get("prefix"), Delimiter: c.query.Get("delimiter"), Marker: c.query.Get("marker")}
	if text := c.query.Get("maxresults"); text != "" {
		q.Max, err = strconv.Atoi(text)
		if err != nil || q.Max <= 0 {
			return q, nil, refusal(http.StatusBadRequest, "OutOfRangeQueryParameterValue", "maxresults is 1 to 5000")
		}
	}
	include = map[string]bool{}
	for _, text := range c.query["include"] {
		for word := range strings.SplitSeq(text, ",") {
			if word != "" {
				include[strings.ToLower(word)] = true
			}
		}
	}
	q.Uncommitted = include["uncommittedblobs"]
	return q, include, nil
}

// listDocument is a list as clients are shown it.
type listDocument struct {
	XMLName         xml.Name            `xml:"EnumerationResults"`
	ServiceEndpoint string              `xml:"ServiceEndpoint,attr"`
	ContainerName   string              `xml:"ContainerName,attr,omitempty"`
	Prefix          string              `xml:",omitempty"`
	Marker          string              `xml:",omitempty"`
	MaxResults      int                 `xml:",omitempty"`
	Delimiter       string              `xml:",omitempty"`
	Containers      *containersDocument `xml:",omitempty"`
	Blobs           *blobsDocument      `xml:",omitempty"`
	NextMarker      string
}

func (c *call) newList(q blob.ListQuery, next string) listDocument {
	scheme := "http"
	if c.R.TLS != nil {
		scheme = "https"
	}
	return listDocument{
		ServiceEndpoint: scheme + "://" + c.R.Host + Prefix + c.at.Account + "/", ContainerName: c.at.Container,
		Prefix: xmlText(q.Prefix), Marker: xmlText(q.Marker), MaxResults: q.Max, Delimiter: xmlText(q.Delimiter), NextMarker: next,
	}
}

type containersDocument struct{ Container []containerDocument }

type containerDocument struct {
	Name       string
	Properties struct {
		LastModified          string `xml:"Last-Modified"`
		Etag                  string
		LeaseStatus           string
		LeaseState            string
		LeaseDuration         string `xml:",omitempty"`
		HasImmutabilityPolicy bool
		HasLegalHold          bool
	}
	Metadata *metadataDocument
}

func (c *call) listContainers() error {
	q, include, err := c.listQuery()
	if err != nil {
		return err
	}
	done, err := c.turn(c.handler.lists)
	if err != nil {
		return err
	}
	defer done()
	page, next, err := c.handler.blobs.Containers(c.R.Context(), c.at.Account, q)
	done() // a client that is slow to read the list holds up nobody
	if err != nil {
		return err
	}
	list, now := &containersDocument{}, time.Now()
	for _, found := range page {
		d := containerDocument{Name: found.Name}
		d.Properties.LastModified, d.Properties.Etag = httpTime(found.Modified), found.ETag
		d.Properties.LeaseStatus, d.Properties.LeaseState, d.Properties.LeaseDuration = leaseWords(found.Lease, now)
		if include["metadata"] {
			d.Metadata = &metadataDocument{found.Metadata}
		}
		list.Container = append(list.Container, d)
	}
	document := c.newList(q, next)
	document.Containers = list
	return c.replyXML(http.StatusOK, document)
}

type blobsDocument struct {
	Blob       []blobDocument
	BlobPrefix []prefixDocument
}

type prefixDocument struct{ Name nameDocument }

type blobDocument struct {
	Name       nameDocument
	Properties propertiesDocument
	Metadata   *metadataDocument
}

// propertiesDocument has the ETag without quotes, as the service lists it.
type propertiesDocument struct {
	CreationTime       string `xml:"Creation-Time"`
	LastModified       string `xml:"Last-Modified"`
	Etag               string
	ContentLength      int64  `xml:"Content-Length"`
	ContentType        string `xml:"Content-Type"`
	ContentEncoding    string `xml:"Content-Encoding"`
	ContentLanguage    string `xml:"Content-Language"`
	ContentMD5         string `xml:"Content-MD5"`
	CacheControl       string `xml:"Cache-Control"`
	ContentDisposition string `xml:"Content-Disposition"`
	BlobType           string
	LeaseStatus        string
	LeaseState         string
	LeaseDuration      string `xml:",omitempty"`
	ServerEncrypted    bool
}

func (c *call) listBlobs() error {
	q, include, err := c.listQuery()
	if err != nil {
		return err
	}
	done, err := c.turn(c.handler.lists)
	if err != nil {
		return err
	}
	defer done()
	page, err := c.handler.blobs.List(c.R.Context(), c.at, q)
	done()
	if err != nil {
		return err
	}
	list, now := &blobsDocument{}, time.Now()
	for _, b := range page.Blobs {
		p := b.Properties
		d := blobDocument{Name: nameDocument{b.Name}, Properties: propertiesDocument{
			CreationTime: httpTime(b.Created), LastModified: httpTime(b.Modified), Etag: b.ETag, ContentLength: b.Bytes,
			ContentType: cmp.Or(p.ContentType, defaultType), ContentEncoding: p.ContentEncoding, ContentLanguage: p.ContentLanguage,
			ContentMD5: base64.StdEncoding.EncodeToString(p.ContentMD5), CacheControl: p.CacheControl,
			ContentDisposition: p.ContentDisposition, BlobType: "BlockBlob", ServerEncrypted: true,
		}}
		d.Properties.LeaseStatus, d.Properties.LeaseState, d.Properties.LeaseDuration = leaseWords(b.Lease, now)
		if include["metadata"] {
			d.Metadata = &metadataDocument{b.Metadata}
		}
		list.Blob = append(list.Blob, d)
	}
	for _, prefix := range page.Prefixes {
		list.BlobPrefix = append(list.BlobPrefix, prefixDocument{nameDocument{prefix}})
	}
	document := c.newList(q, page.Next)
	document.Blobs = list
	return c.replyXML(http.StatusOK, document)
}

// metadataDocument has an element for each name, also for one with an empty value: there
// are libraries that fail where it is missing.
type metadataDocument struct{ all map[string]string }

func (m *metadataDocument) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	if err := e.EncodeToken(start); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(m.all)) {
		if err := e.EncodeElement(m.all[name], xml.StartElement{Name: xml.Name{Local: name}}); err != nil {
			return err
		}
	}
	return e.EncodeToken(start.End())
}

// nameDocument is a blob's name, which may have characters that no document can.
type nameDocument struct{ name string }

func (n nameDocument) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	if xmlText(n.name) == n.name {
		return e.EncodeElement(n.name, start)
	}
	start.Attr = append(start.Attr, xml.Attr{Name: xml.Name{Local: "Encoded"}, Value: "true"})
	return e.EncodeElement(url.PathEscape(n.name), start)
}

// xmlText leaves out what no document can hold.
func xmlText(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd && r != utf8.RuneError || r >= 0x10000 {
			return r
		}
		return -1
	}, text)
}
