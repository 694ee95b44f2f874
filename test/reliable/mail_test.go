//go:build linux

package reliable

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-smtp"

	"github.com/eventyard/eventyard/internal/testkit"
)

// mailServer is a real SMTP server that keeps what it is given.
type mailServer struct {
	addr string

	mu    sync.Mutex
	mails []string // guarded by mu
}

const mailbox = "ops@yard.example"

func startMail(t *testing.T) *mailServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	m := &mailServer{addr: listener.Addr().String()}
	s := smtp.NewServer(m)
	s.Domain = "mail.example"
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := s.Serve(listener); err != nil && !errors.Is(err, smtp.ErrServerClosed) {
			t.Errorf("mail server: %v", err)
		}
	}()
	t.Cleanup(func() { s.Close(); <-served })
	return m
}

// settings are those of a yard that sends its notices here.
func (m *mailServer) settings() string {
	return fmt.Sprintf("notify:\n  smtp:\n    addr: %q\n    from: yard@yard.example\n    tls: none\n  to: %q\n", m.addr, "mailto:"+mailbox)
}

// NewSession is the backend's part.
func (m *mailServer) NewSession(*smtp.Conn) (smtp.Session, error) {
	return &mailSession{server: m}, nil
}

type mailSession struct {
	server *mailServer
	to     []string
}

func (s *mailSession) Reset()                               { s.to = nil }
func (s *mailSession) Logout() error                        { return nil }
func (s *mailSession) Mail(string, *smtp.MailOptions) error { return nil }
func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = append(s.to, to)
	return nil
}

func (s *mailSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	for _, to := range s.to {
		if to == mailbox {
			s.server.mails = append(s.server.mails, string(text))
		}
	}
	return nil
}

var resumeLink = regexp.MustCompile(`https?://[^\s"'<>]+/resume/[^\s"'<>]+`)

// find looks for a mail about a function that has a link; empty: there is none yet. subjects are
// those of all mails about it.
func (m *mailServer) find(t *testing.T, function string) (link string, subjects []string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, raw := range m.mails {
		subject, text := readMail(t, raw)
		if !strings.Contains(subject+text, function) {
			continue
		}
		subjects = append(subjects, subject)
		if found := resumeLink.FindString(text); found != "" && link == "" {
			link = strings.ReplaceAll(found, "&amp;", "&")
		}
	}
	return link, subjects
}

// readMail gives the subject and all text of a mail, as a mail program would.
func readMail(t *testing.T, raw string) (subject, text string) {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		t.Fatalf("%v:\n%s", err, raw)
	}
	if subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil {
		t.Fatal(err)
	}
	text, err = readPart(m.Header.Get("Content-Type"), m.Header.Get("Content-Transfer-Encoding"), m.Body)
	if err != nil {
		t.Fatalf("%v:\n%s", err, raw)
	}
	return subject, text
}

// readPart decodes one part of a mail, and those in it.
func readPart(contentType, encoding string, body io.Reader) (string, error) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil && contentType != "" {
		return "", err
	}
	if strings.HasPrefix(kind, "multipart/") {
		return readParts(multipart.NewReader(body, params["boundary"]))
	}
	switch strings.ToLower(encoding) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	text, err := io.ReadAll(body)
	return string(text) + "\n", err
}

func readParts(parts *multipart.Reader) (all string, err error) {
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, err
		}
		text, err := readPart(part.Header.Get("Content-Type"), part.Header.Get("Content-Transfer-Encoding"), part)
		if err != nil {
			return all, err
		}
		all += text
	}
}
