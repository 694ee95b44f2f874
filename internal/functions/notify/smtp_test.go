package notify

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/testkit"
)

// postOffice is a real mail server.
type postOffice struct {
	t          *testing.T
	addr       string
	ca         string
	mechanisms []string

	mu    sync.Mutex
	mails []delivered        // guarded by mu
	auths []string           // guarded by mu
	fail  func(int) error    // guarded by mu: what the nth mail meets; nil: nothing
	cut   func(*smtp.Conn)   // guarded by mu: what is done in the midst of a mail
	conns map[*smtp.Conn]int // guarded by mu
}

type delivered struct {
	from, to string
	raw      []byte
	tls      bool
}

type office struct {
	mode       string // starttls, tls, none
	mechanisms []string
}

func newPostOffice(t *testing.T, o office) *postOffice {
	t.Helper()
	p := &postOffice{t: t, mechanisms: o.mechanisms, conns: map[*smtp.Conn]int{}}
	config, ca := certificate(t)
	p.ca = ca
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &clerk{office: p, conn: c}, nil
	}))
	server.Domain, server.ErrorLog, server.AllowInsecureAuth = "post.example.com", log.New(io.Discard, "", 0), o.mode == plainTCP
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	p.addr = l.Addr().String()
	switch o.mode {
	case startTLS:
		server.TLSConfig = config
	case fullTLS:
		l = tls.NewListener(l, config)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		_ = server.Close()
		serving.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
	})
	return p
}

// certificate is one for 127.0.0.1 that signs itself.
func certificate(t *testing.T) (*tls.Config, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "post"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{{127, 0, 0, 1}}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	testkit.Must(t, err)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// clerk is one session.
type clerk struct {
	office   *postOffice
	conn     *smtp.Conn
	from, to string
	user     string
}

func (c *clerk) AuthMechanisms() []string { return c.office.mechanisms }

func (c *clerk) Auth(mechanism string) (sasl.Server, error) {
	check := func(user, password string) error {
		c.office.mu.Lock()
		defer c.office.mu.Unlock()
		c.office.auths = append(c.office.auths, mechanism)
		if user != "yard" || password != "open sesame" {
			return smtp.ErrAuthFailed
		}
		c.user = user
		return nil
	}
	if mechanism == "LOGIN" {
		return &loginServer{check: check}, nil
	}
	return sasl.NewPlainServer(func(_, user, password string) error { return check(user, password) }), nil
}

// loginServer is AUTH LOGIN, which go-sasl has for clients only.
type loginServer struct {
	check func(user, password string) error
	step  int
	user  string
}

func (l *loginServer) Next(response []byte) ([]byte, bool, error) {
	l.step++
	switch {
	case l.step == 1 && response == nil:
		return []byte("Username:"), false, nil
	case l.step == 2:
		l.user = string(response)
		return []byte("Password:"), false, nil
	case l.step == 3:
		return nil, true, l.check(l.user, string(response))
	}
	return nil, true, errors.New("out of step")
}

func (c *clerk) Mail(from string, _ *smtp.MailOptions) error {
	if len(c.office.mechanisms) > 0 && c.user == "" {
		return smtp.ErrAuthRequired
	}
	c.from = from
	return nil
}

func (c *clerk) Rcpt(to string, _ *smtp.RcptOptions) error {
	if strings.HasPrefix(to, "nobody@") {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	}
	c.to = to
	return nil
}

func (c *clerk) Data(r io.Reader) error {
	c.office.mu.Lock()
	cut := c.office.cut
	c.office.mu.Unlock()
	if cut != nil {
		cut(c.conn)
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	_, secure := c.conn.TLSConnectionState()
	c.office.mu.Lock()
	defer c.office.mu.Unlock()
	c.office.conns[c.conn]++
	if c.office.fail != nil {
		if err := c.office.fail(len(c.office.conns)); err != nil {
			return err
		}
	}
	c.office.mails = append(c.office.mails, delivered{c.from, c.to, raw, secure})
	return nil
}

func (c *clerk) Reset()        {}
func (c *clerk) Logout() error { return nil }

func (p *postOffice) delivered() []delivered {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.mails)
}

func (p *postOffice) settings(change ...func(*SMTP)) SMTP {
	s := SMTP{Addr: p.addr, From: "yard@example.com", CA: p.ca, Timeout: 5 * time.Second}
	for _, c := range change {
		c(&s)
	}
	return s
}

func with(mode, user, password string) func(*SMTP) {
	return func(s *SMTP) { s.TLS, s.Username, s.Password = mode, user, password }
}

// testNotice sends the test notice with settings.
func testNotice(t *testing.T, s SMTP, to string) error {
	t.Helper()
	w := newWorld(t)
	w.cfg.SMTP = s
	return w.open().Test(t.Context(), to)
}

func TestMailGoesOutTheWayThatIsSet(t *testing.T) {
	tests := []struct {
		name   string
		office office
		set    func(*SMTP)
		secure bool
		auth   string
	}{
		{"STARTTLS is the default", office{mode: startTLS}, with("", "", ""), true, ""},
		{"STARTTLS and PLAIN", office{startTLS, []string{"PLAIN"}}, with("starttls", "yard", "open sesame"), true, "PLAIN"},
		{"STARTTLS and LOGIN", office{startTLS, []string{"LOGIN"}}, with("starttls", "yard", "open sesame"), true, "LOGIN"},
		{"PLAIN is taken where both are offered", office{startTLS, []string{"LOGIN", "PLAIN"}}, with("starttls", "yard", "open sesame"), true, "PLAIN"},
		{"TLS from the first byte", office{fullTLS, []string{"PLAIN"}}, with("tls", "yard", "open sesame"), true, "PLAIN"},
		{"without TLS, if that is said", office{mode: plainTCP}, with("none", "", ""), false, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := newPostOffice(t, test.office)
			testkit.Must(t, testNotice(t, p.settings(test.set), boss))
			got := p.delivered()
			if len(got) != 1 || got[0].from != "yard@example.com" || got[0].to != "boss@example.com" || got[0].tls != test.secure {
				t.Fatalf("delivered: %+v", got)
			}
			want(t, "auth", strings.Join(p.auths, " "), test.auth)
			m := readMail(t, got[0].raw)
			want(t, "subject", m.subject, "[eventyard] Test of notices")
			testkit.That(t, strings.Contains(m.text, "nothing below has happened"), "the text is %s", m.text)
		})
	}
}

func TestMailIsRefusedRatherThanSentUnsafely(t *testing.T) {
	_, otherCA := certificate(t)
	tests := []struct {
		name   string
		office office
		set    func(*SMTP)
		says   string
	}{
		{"the server has no STARTTLS", office{mode: plainTCP}, with("", "", ""), "set notify.smtp.tls to"},
		{"the server has no STARTTLS, and there is a password", office{plainTCP, []string{"PLAIN"}}, with("", "yard", "open sesame"), "does not offer STARTTLS"},
		{"an unknown authority", office{mode: startTLS}, func(s *SMTP) { s.CA = otherCA }, "notify.smtp.caFile"},
		{"an unknown authority, from the first byte", office{mode: fullTLS}, func(s *SMTP) { s.TLS, s.CA = "tls", otherCA }, "notify.smtp.caFile"},
		{"another name", office{mode: startTLS}, func(s *SMTP) { s.Addr = strings.Replace(s.Addr, "127.0.0.1", "localhost", 1) }, "certificate"},
		{"a wrong password", office{startTLS, []string{"PLAIN"}}, with("", "yard", "WRONG"), "AUTH PLAIN"},
		{"no mechanism of ours", office{startTLS, []string{"CRAM-MD5"}}, with("", "yard", "open sesame"), "neither AUTH PLAIN nor LOGIN"},
		{"no such user", office{mode: startTLS}, nil, "no such user"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := newPostOffice(t, test.office)
			to := boss
			if test.set == nil {
				test.set, to = func(*SMTP) {}, "mailto:nobody@example.com"
			}
			err := testNotice(t, p.settings(test.set), to)
			if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "open sesame") || strings.Contains(err.Error(), "WRONG") {
				t.Errorf("got %v, want %q in it", err, test.says)
			}
			if got := p.delivered(); len(got) > 0 {
				t.Errorf("delivered: %+v", got)
			}
		})
	}
}

// Not even to this machine, and whatever was set.
func TestAPasswordIsNotSentWithoutTLS(t *testing.T) {
	p := newPostOffice(t, office{plainTCP, []string{"PLAIN"}})
	if _, err := newMailer(p.settings(with("none", "yard", "open sesame"))); err == nil || !strings.Contains(err.Error(), "notify.smtp.tls") {
		t.Errorf("the settings give %v", err)
	}
	m, err := newMailer(p.settings(with("none", "", "")))
	testkit.Must(t, err)
	m.cfg.Username, m.cfg.Password = "yard", "open sesame"
	err = m.send(t.Context(), "boss@example.com", []byte("Subject: x\r\n\r\nx\r\n"))
	if err == nil || !strings.Contains(err.Error(), "without TLS") || len(p.auths) > 0 {
		t.Errorf("got %v and %d logins", err, len(p.auths))
	}
}

// Some servers repeat a line that they do not understand, and what they say is logged.
func TestAServerThatRepeatsThePasswordIsNotQuoted(t *testing.T) {
	m, err := newMailer(SMTP{Addr: "post.example.com:25", From: "yard@example.com", TLS: "tls", Username: "yard", Password: "open sesame"})
	testkit.Must(t, err)
	for _, said := range []string{"open sesame", "b3BlbiBzZXNhbWU=", "AHlhcmQAb3BlbiBzZXNhbWU="} {
		err := m.hush(inLine("AUTH", errors.New(`500 unrecognized: "AUTH PLAIN `+said+`"`)))
		if strings.Contains(err.Error(), said) || !strings.Contains(err.Error(), "500 unrecognized") {
			t.Errorf("got %v", err)
		}
	}
}

// RFC 5321 §4.1.4: a full name, or the address that we come from. Servers refuse others.
func TestWhatWeCallOurselves(t *testing.T) {
	at := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 4711, Zone: "eth0"} }
	for _, test := range []struct {
		host string
		at   net.Addr
		is   string
	}{
		{"yard.example.com", at("192.0.2.7"), "yard.example.com"}, {"3f2a91c0", at("192.0.2.7"), "[192.0.2.7]"}, {"", at("192.0.2.7"), "[192.0.2.7]"},
		{"my_yard.example.com", at("192.0.2.7"), "[192.0.2.7]"}, {"yard.example.com\r\nRSET", at("fe80::1"), "[IPv6:fe80::1]"}, {"yard", &net.UnixAddr{}, "localhost"},
	} {
		t.Run(fmt.Sprintf("%q at %v", test.host, test.at), func(t *testing.T) {
			want(t, "name", ehloName(test.host, test.at), test.is)
		})
	}
}

// The mail is taken: a server that does not say goodbye must not hold up the next.
func TestAServerThatHangsAtTheGoodbyeHasTheMail(t *testing.T) {
	bubble(t, func(t *testing.T) {
		begin := time.Now()
		m := scripted(t, []string{"220-hello\r\n220 there", "250 post", "250 ok", "250 ok", "354 go on", "250 taken"})
		testkit.Must(t, m.send(t.Context(), "boss@example.com", []byte("Subject: x\r\n\r\nx\r\n")))
		if took := time.Since(begin); took > quitTime {
			t.Errorf("it took %v", took)
		}
	})
}

// F6: mail that the server refuses for now, or that breaks off in its midst, is sent again, and is
// the same mail.
func TestMailIsSentAgainUntilTheServerTakesIt(t *testing.T) {
	p := newPostOffice(t, office{startTLS, []string{"PLAIN"}})
	p.fail = func(n int) error {
		if n <= 2 {
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "try later"}
		}
		return nil
	}
	cuts := 0
	p.cut = func(c *smtp.Conn) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if cuts++; cuts == 2 {
			_ = c.Conn().Close()
		}
	}
	w := newWorld(t, boss)
	w.cfg.SMTP = p.settings(with("", "yard", "open sesame"))
	w.cfg.Retry = []time.Duration{time.Millisecond}
	s := w.open()
	stop := w.run(s)
	w.circuits.set("resize", opened(breaker.Record{}, "i1"))
	testkit.Eventually(t, "what the server sees", func() bool { return len(p.delivered()) > 0 })
	w.circuits.set("resize", closed(w.circuits.get("resize"), "Ada"))
	testkit.Eventually(t, "what the server sees", func() bool { return len(p.delivered()) > 1 })
	stop()
	first, end := readMail(t, p.delivered()[0].raw), readMail(t, p.delivered()[1].raw)
	if cuts < 4 || !strings.Contains(first.subject, "resize has stopped") || !strings.Contains(end.subject, "resize was resumed by Ada") {
		t.Errorf("%d attempts; subjects are %q and %q", cuts, first.subject, end.subject)
	}
	want(t, "the end belongs to", end.header.Get("In-Reply-To"), first.header.Get("Message-Id"))
	links, _ := hrefs(t, first.html)
	if len(links) != 1 || !strings.Contains(first.text, "\n"+links[0]+"\n") {
		t.Fatalf("the parts have not the same link: %q\n%s", links, first.text)
	}
	testkit.Check(t, testkit.Err(readToken(s.secret, strings.TrimPrefix(links[0], yardURL+PathPrefix))))
}

// A server that hangs, at any step, or talks for ever, costs no more than the time that a mail has.
func TestAServerThatHangsIsLeft(t *testing.T) {
	scripts := map[string][]string{
		"before it greets": {},
		"at EHLO":          {"220 hello"},
		"at MAIL":          {"220 hello", "250 post"},
		"in the mail":      {"220 hello", "250 post", "250 ok", "250 ok"},
		"at the end":       {"220 hello", "250 post", "250 ok", "250 ok", "354 go on"},
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := scripted(t, script)
				begin := time.Now()
				err := m.send(t.Context(), "boss@example.com", []byte("Subject: x\r\n\r\nx\r\n"))
				if took := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || took != 7*time.Second {
					t.Errorf("after %v: %v", took, err)
				}
			})
		})
	}
}

// scripted talks to a server that says these lines, one an exchange, and then nothing.
func scripted(t *testing.T, lines []string) *mailer {
	m, err := newMailer(SMTP{Addr: "post.example.com:25", From: "yard@example.com", TLS: "none", Timeout: 7 * time.Second})
	testkit.Must(t, err)
	m.dial = func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			in := bufio.NewReader(theirs)
			for i, line := range lines {
				if i > 0 {
					if _, err := in.ReadString('\n'); err != nil {
						return
					}
				}
				fmt.Fprintf(theirs, "%s\r\n", line)
			}
			_, _ = io.Copy(io.Discard, in)
		}()
		return ours, nil
	}
	return m
}

func TestAServerThatTalksForEverIsLeft(t *testing.T) {
	m := scripted(t, []string{"220-" + strings.Repeat("x", 2*maxReplyBytes)})
	if err := m.send(t.Context(), "boss@example.com", nil); err == nil || !strings.Contains(err.Error(), "says more than") || len(err.Error()) > 1000 {
		t.Errorf("got %.200v", err)
	}
}

func TestAStopEndsAMailUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		err := scripted(t, nil).send(ctx, "boss@example.com", nil)
		testkit.That(t, err != nil && time.Since(begin) == time.Second, "after %v: %v", time.Since(begin), err)
	})
}

// What is refused for good is asked seldom, what is refused for now soon.
func TestPermanentRefusalsAreRetriedLessOften(t *testing.T) {
	for line, final := range map[string]bool{"550 no such user": true, "450 mailbox busy": false} {
		err := scripted(t, []string{"220 hello", "250 post", "250 ok", line}).send(t.Context(), "boss@example.com", nil)
		var r *refusal
		testkit.That(t, errors.As(err, &r) && r.final == final, "%q gives %v", line, err)
	}
	s := &sender{cfg: Config{}.withDefaults()}
	for _, test := range []struct {
		name     string
		failures int
		err      error
		wait     time.Duration
	}{
		{"at first", 0, errors.New("x"), 5 * time.Second},
		{"after some failures", 3, errors.New("x"), 10 * time.Minute},
		{"after many failures", 99, errors.New("x"), 30 * time.Minute},
		{"a permanent refusal", 0, fmt.Errorf("wrapped: %w", &refusal{error: errors.New("x"), final: true}), 30 * time.Minute},
		{"a refusal for longer than the wait", 0, &refusal{error: errors.New("x"), after: time.Minute}, time.Minute},
		{"a refusal for less than the wait", 1, &refusal{error: errors.New("x"), after: time.Second}, 30 * time.Second},
		{"a refusal for too long", 0, &refusal{error: errors.New("x"), after: 1000 * time.Hour}, time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Equal(t, s.delay(test.failures, test.err), test.wait, "wait")
		})
	}
}

func TestSettingsOfMailAreCheckedAtTheStart(t *testing.T) {
	good := SMTP{Addr: "smtp.example.com:587", From: "yard@example.com"}
	for says, change := range map[string]func(*SMTP){
		"notify.smtp.addr": func(s *SMTP) { s.Addr = "smtp.example.com" }, "such as yard@example.com": func(s *SMTP) { s.From = "yard" },
		"use starttls, tls or none": func(s *SMTP) { s.TLS = "ssl" }, "notify.smtp.caFile": func(s *SMTP) { s.CA = "nonsense" },
	} {
		w := newWorld(t)
		w.cfg.SMTP = good
		change(&w.cfg.SMTP)
		if _, err := Open(t.Context(), w.cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q in it", err, says)
		}
	}
}
