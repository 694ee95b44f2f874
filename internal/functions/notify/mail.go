package notify

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"strings"
	"time"
)

// compose writes a notice as a mail: text and HTML that say the same.
func (m *mailer) compose(n notice, to string, now time.Time) ([]byte, error) {
	var body bytes.Buffer
	parts := multipart.NewWriter(&body)
	for _, part := range []struct {
		contentType string
		template    interface{ Execute(io.Writer, any) error }
	}{{"text/plain; charset=utf-8", textMail}, {"text/html; charset=utf-8", htmlMail}} { // the richer comes last (RFC 2046 §5.1.4)
		w, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {part.contentType}, "Content-Transfer-Encoding": {"quoted-printable"}})
		if err != nil {
			return nil, err
		}
		encoder := quotedprintable.NewWriter(w)
		if err := part.template.Execute(encoder, viewOf(n)); err != nil {
			return nil, err
		}
		if err := encoder.Close(); err != nil {
			return nil, err
		}
	}
	if err := parts.Close(); err != nil {
		return nil, err
	}
	message := m.header(n, to, now)
	fmt.Fprintf(message, "Content-Type: multipart/alternative;\r\n boundary=%q\r\n\r\n", parts.Boundary())
	message.Write(body.Bytes())
	return message.Bytes(), nil
}

// header has all but the type of the body. What others wrote is in the subject only, in a line and
// encoded.
func (m *mailer) header(n notice, to string, now time.Time) *bytes.Buffer {
	var b bytes.Buffer
	put := func(name, value string) { b.WriteString(fold(name + ": " + value)) }
	put("From", m.from.String())
	put("To", (&mail.Address{Address: to}).String())
	put("Subject", mime.QEncoding.Encode("utf-8", subjectLine(n)))
	put("Date", now.Format(time.RFC1123Z))
	put("Message-ID", m.messageID(n.id(to)))
	if n.Kind == kindEnded { // so that it stands below what it is the end of
		put("In-Reply-To", m.messageID(n.idOf(kindOpened, to)))
		put("References", m.messageID(n.idOf(kindOpened, to))+" "+m.messageID(n.idOf(kindHeld, to)))
	}
	put("Auto-Submitted", "auto-generated") // RFC 3834: nobody is to answer by machine
	put("X-Auto-Response-Suppress", "All")
	put("MIME-Version", "1.0")
	return &b
}

// subjectLine has nothing in it that looks like an encoded word (RFC 2047 §2).
func subjectLine(n notice) string {
	return strings.ReplaceAll(cut("[eventyard] "+n.headline(), 200), "=?", "= ?")
}

func (m *mailer) messageID(id string) string {
	domain := m.from.Address[strings.LastIndexByte(m.from.Address, '@')+1:]
	return "<" + id + "@" + domain + ">"
}

// fold breaks a header at blanks, so that its lines stay within 78 characters where they can (RFC
// 5322 §2.2.3).
func fold(header string) string {
	var b strings.Builder
	length := 0
	for i, word := range strings.Split(header, " ") {
		switch {
		case i == 0:
		case length+1+len(word) > 78 && i > 1: // never right behind the name
			b.WriteString("\r\n ")
			length = 1
		default:
			b.WriteByte(' ')
			length++
		}
		b.WriteString(word)
		length += len(word)
	}
	return b.String() + "\r\n"
}
