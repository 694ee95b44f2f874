package azureblob

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"hash/crc64"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/blob"
	"github.com/eventyard/eventyard/internal/quota"
)

// crcTable is for the polynomial of the service.
var crcTable = crc64.MakeTable(0x9a6c9329ac4bc9b5)

// minUploadRate is how many bytes a second an upload has to bring, over all.
const minUploadRate = 4 << 10

// diskTime is how long it may take to make an upload durable.
const diskTime = 2 * time.Minute

// upload is the body of a request. It ends with an error if it is not the one that its
// headers announce, before anybody could take it for whole.
type upload struct {
	c    *call
	left int64
	md5  hash.Hash
	// wantMD5 and wantCRC are nil where nothing was announced.
	wantMD5 []byte
	crc     hash.Hash64
	wantCRC []byte
	next    time.Time // when the deadline is to be moved

	began    time.Time
	received int64
}

// newUpload checks the announcements. The caller's turn to upload has come if it is not
// small; done gives it back.
func (c *call) newUpload() (_ *upload, done func(), err error) {
	u := &upload{c: c, left: c.R.ContentLength, began: time.Now()}
	switch {
	case u.left < 0:
		return nil, nil, refusal(http.StatusLengthRequired, "MissingContentLengthHeader", "the request does not say how long its body is")
	case u.left > c.Route.MaxBody:
		return nil, nil, blob.ErrTooLarge
	}
	if err := c.handler.cfg.Access.AccountQuota().Room(0, int(u.left), u.began); err != nil {
		return nil, nil, err
	}
	if u.wantMD5, err = announced(c.R, "Content-MD5", md5.Size, "InvalidMd5"); err != nil {
		return nil, nil, err
	}
	if u.wantCRC, err = announced(c.R, "x-ms-content-crc64", crc64.Size, "InvalidHeaderValue"); err != nil {
		return nil, nil, err
	}
	if u.wantMD5 != nil {
		u.md5 = md5.New()
	}
	if u.wantCRC != nil {
		u.crc = crc64.New(crcTable)
	}
	if u.left <= blob.InlineBytes { // small ones need no place
		return u, func() {}, nil
	}
	done, err = c.turn(c.handler.uploads)
	u.began = time.Now()
	return u, done, err
}

func announced(r *http.Request, name string, size int, code string) ([]byte, error) {
	text := r.Header.Get(name)
	if text == "" {
		return nil, nil
	}
	sum, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(sum) != size {
		return nil, refusal(http.StatusBadRequest, code, name+" is no checksum in base64")
	}
	return sum, nil
}

// turn waits for a place among those who do the same; done gives it back, and is safe twice.
func (c *call) turn(positions chan struct{}) (done func(), err error) {
	patience := time.NewTimer(c.handler.cfg.Patience)
	defer patience.Stop()
	select {
	case positions <- struct{}{}:
		return sync.OnceFunc(func() { <-positions }), nil
	case <-patience.C:
		return nil, errBusy
	case <-c.R.Context().Done():
		return nil, c.R.Context().Err()
	}
}

func (u *upload) Read(p []byte) (int, error) {
	// A body may take its time while it comes at all. The answer has to wait for that, and then for
	// the disk.
	if now, patience := time.Now(), u.c.handler.cfg.Patience; now.After(u.next) {
		connection := http.NewResponseController(u.c.Call)
		_ = connection.SetReadDeadline(uploadDue(u.began, now, u.received, patience))
		_ = connection.SetWriteDeadline(now.Add(patience + diskTime))
		u.next = now.Add(patience / 8)
	}
	n, err := u.c.R.Body.Read(p)
	u.left, u.received = u.left-int64(n), u.received+int64(n)
	quota.Charge(0, n, time.Now(), u.c.handler.cfg.Access.AccountQuota())
	for _, sum := range []hash.Hash{u.md5, u.crc} {
		if sum != nil {
			sum.Write(p[:n])
		}
	}
	if err == io.EOF {
		// From here on the disk counts: its time must not be taken for the client's.
		_ = http.NewResponseController(u.c.Call).SetReadDeadline(time.Now().Add(u.c.handler.cfg.Patience + diskTime))
		err = u.end()
	}
	return n, err
}

// end is what the body ends with.
func (u *upload) end() error {
	switch {
	case u.left != 0:
		return blob.ErrCutShort
	case u.wantMD5 != nil && !bytes.Equal(u.md5.Sum(nil), u.wantMD5):
		return refusal(http.StatusBadRequest, "Md5Mismatch", "the body is not the one whose MD5 was announced")
	case u.wantCRC != nil && !bytes.Equal(binary.LittleEndian.AppendUint64(nil, u.crc.Sum64()), u.wantCRC):
		return refusal(http.StatusBadRequest, "Crc64Mismatch", "the body is not the one whose CRC64 was announced")
	}
	return io.EOF
}

// uploadDue is until when more of an upload has to have come: it may pause as long as patience
// lasts, and be behind its rate by as much.
func uploadDue(began, now time.Time, received int64, patience time.Duration) time.Time {
	due, keepsUp := now.Add(patience), began.Add(patience+time.Duration(received/minUploadRate)*time.Second)
	if keepsUp.Before(due) {
		return keepsUp
	}
	return due
}

// sendChecksum answers an upload with the checksum that was verified, or the MD5.
func (c *call) sendChecksum(u *upload, sum []byte) {
	if u.wantCRC != nil {
		c.Header().Set("x-ms-content-crc64", base64.StdEncoding.EncodeToString(u.wantCRC))
	}
	if u.wantCRC == nil || u.wantMD5 != nil {
		c.Header().Set("Content-MD5", base64.StdEncoding.EncodeToString(sum))
	}
}

// download writes a body, and lets a client take its time while it takes anything. The answer
// begins with the first bytes: until then it can still be an error.
type download struct {
	c      *call
	status int
	next   time.Time
	begun  bool
	err    error // the connection's
}

func (d *download) begin() {
	if !d.begun {
		d.begun = true
		_ = d.c.reply(d.status)
	}
}

func (d *download) Write(p []byte) (n int, err error) {
	d.begin()
	if now := time.Now(); now.After(d.next) {
		_ = http.NewResponseController(d.c.Call).SetWriteDeadline(now.Add(d.c.handler.cfg.Patience))
		d.next = now.Add(d.c.handler.cfg.Patience / 8)
	}
	n, d.err = d.c.Write(p)
	return n, d.err
}
