package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/transport/certs"
	"github.com/eventyard/eventyard/server"
	"github.com/spf13/cobra"
)

// certCommands are those of `eventyard cert`.
type certCommands struct{ *cli }

func (c certCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "cert", Short: "Show the yard's certificates, and export its authority"},
		c.show(), c.status(), c.export())
}

// addDataFlags gives a command that looks into the data folder the flags that say which.
func addDataFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringP("config", "c", "", "`file` to read settings from (default eventyard.yaml if it is there)")
	for _, s := range config.Settings() {
		if s.Key == "data" || s.Key == "tls.certFile" || s.Key == "tls.keyFile" {
			addSettingFlag(f, s)
		}
	}
}

const certShowHelp = `Show the certificates of the listeners with TLS, as they are in the data folder. A certificate that
is not the yard's own is shown where the settings, or --tls-cert-file, name it. No yard is asked:
eventyard cert status asks one what it serves with.`

func (c certCommands) show() *cobra.Command {
	var form output
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the certificates of the listeners with TLS",
		Long:  certShowHelp,
		Example: `  eventyard cert show --data /var/lib/eventyard
  eventyard cert show --config /etc/eventyard/eventyard.yaml
  eventyard cert show --tls-cert-file /etc/eventyard/tls/fullchain.pem`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.whoseCertificate(cmd)
			if err != nil {
				return err
			}
			info, err := describeCertificates(cfg)
			if err != nil {
				return err
			}
			return c.showCertificates(form, info)
		},
	}
	form.addTo(cmd)
	addDataFlags(cmd)
	return cmd
}

// whoseCertificate says where certificates are. One that is named takes no other setting, and no key, to look at.
func (c certCommands) whoseCertificate(cmd *cobra.Command) (config.Config, error) {
	named := cmd.Flags().Lookup("tls-cert-file")
	if file := named.Value.String(); named.Changed && file != "" {
		return config.Config{TLS: config.TLS{CertFile: file, KeyFile: file}}, nil
	}
	return c.loadConfig(cmd)
}

// describeCertificates reads what is there, and makes nothing.
func describeCertificates(cfg config.Config) (certs.Info, error) {
	info, err := certs.Describe(certs.Config{
		Dir: filepath.Join(cfg.Data, server.CertificateDir), CertFile: cfg.TLS.CertFile, KeyFile: cfg.TLS.KeyFile,
	})
	if cfg.TLS.CertFile == "" && errors.Is(err, fs.ErrNotExist) {
		return certs.Info{}, &advisedError{
			"there are no certificates in " + cfg.Data + " yet",
			"a yard makes them when it first opens a listener with TLS: eventyard serve; if its data folder is another, use --data; " +
				"if its certificate is not its own, name the settings with --config, or the file with --tls-cert-file",
		}
	}
	return info, err
}

// shownCertificate is a certificate for programs to read.
type shownCertificate struct {
	Subject     string     `json:"subject"`
	Issuer      string     `json:"issuer,omitempty"`
	Names       []string   `json:"names,omitempty"`
	From        *time.Time `json:"from,omitempty"`
	Until       time.Time  `json:"until"`
	Fingerprint string     `json:"sha256"`
	File        string     `json:"file"`
}

func (c certCommands) showCertificates(form output, info certs.Info) error {
	mine := shownCertificate{info.Subject, info.Issuer, info.Names, &info.NotBefore, info.NotAfter, info.Fingerprint, absolute(info.CertFile)}
	var authority *shownCertificate
	if ca := info.CA; ca != nil {
		authority = &shownCertificate{Subject: ca.Subject, Until: ca.NotAfter, Fingerprint: ca.Fingerprint, File: absolute(ca.File)}
	}
	if form == asJSON {
		return writeJSON(c.stdout, struct {
			Certificate shownCertificate  `json:"certificate"`
			Authority   *shownCertificate `json:"authority,omitempty"`
		}{mine, authority})
	}
	mine.print(c.stdout, "certificate")
	if authority != nil {
		fmt.Fprintln(c.stdout)
		authority.print(c.stdout, "authority")
	}
	return nil
}

func (s shownCertificate) print(w io.Writer, title string) {
	fmt.Fprintf(w, "%-12s %s\n", title, oneLine(s.Subject))
	for _, line := range []struct{ name, value string }{
		{"names", strings.Join(s.Names, ", ")}, {"issuer", s.Issuer}, {"good until", showTime(s.Until)},
		{"sha256", s.Fingerprint}, {"file", s.File},
	} {
		if line.value != "" {
			fmt.Fprintf(w, "%-12s %s\n", line.name, oneLine(line.value))
		}
	}
}

const certExportHelp = `Write the certificate of the yard's own authority, as PEM, to a file or to standard
output. Clients that trust it trust the listeners with TLS. It holds no secret.

The yard is asked that --server, --context, the variable EVENTYARD_SERVER or the context in use names.
Where none of them does, or --data or --config is given, it is read from the data folder, and no yard
is asked. A yard of several nodes has no data folder.

Nothing proves yet that it is that yard which answers: compare the fingerprint that is printed with one
from the yard's own machine, or give it with --sha256.`

func (c certCommands) export() *cobra.Command {
	var named, fingerprint string
	cmd := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Write the yard's authority, for clients to trust",
		Long:  certExportHelp,
		Example: `  eventyard cert export eventyard-ca.pem
  eventyard cert export --data /var/lib/eventyard > eventyard-ca.pem
  eventyard cert export --server https://yard.example.com eventyard-ca.pem`,
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := c.yardToAsk(cmd, named)
			if err != nil {
				return err
			}
			if from != "" {
				return c.exportFrom(cmd.Context(), from, fingerprint, args)
			}
			if fingerprint != "" {
				return usagef(cmd, "--sha256 is compared with what a yard answers: give --server, too")
			}
			cfg, err := c.loadConfig(cmd)
			if err != nil {
				return err
			}
			return c.exportAuthority(cfg, args)
		},
	}
	addDataFlags(cmd)
	cmd.Flags().StringVar(&named, "server", "", "`URL` of a yard to ask, instead of looking into a data folder, also by "+config.EnvServer)
	c.addContextFlag(cmd)
	cmd.Flags().StringVar(&fingerprint, "sha256", "", "`fingerprint` that the certificate must have")
	return cmd
}

// yardToAsk is the URL of the yard that somebody has named; empty: the data folder is meant.
func (c certCommands) yardToAsk(cmd *cobra.Command, named string) (string, error) {
	if err := c.useContext(cmd); err != nil {
		return "", err
	}
	switch given := cmd.Flags().Changed; {
	case given("server") && named == "":
		return "", emptyServer(cmd)
	case given("server"):
		return named, nil
	case !given("context") && (given("data") || given("config") || given("tls-cert-file")):
		return "", nil
	case c.addressed:
		return c.server, nil
	}
	return os.Getenv(config.EnvServer), nil
}

func (c certCommands) exportAuthority(cfg config.Config, args []string) error {
	if cfg.TLS.CertFile != "" {
		return &advisedError{"the certificate is not the yard's own but " + cfg.TLS.CertFile, "clients have to trust the authority that signed it, and not one of the yard's: give them its file; commands take it by --ca FILE or " + config.EnvCA}
	}
	info, err := describeCertificates(cfg)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(info.CA.File)
	if err != nil {
		return fmt.Errorf("read authority: %w", err)
	}
	return c.writeAuthority(content, filepath.Base(info.CA.File), args)
}

// writeAuthority writes the certificate to a file that args name, or to standard output; where it went
// from there is not known, and it is called name.
func (c certCommands) writeAuthority(content []byte, name string, args []string) (err error) {
	file := name
	if len(args) == 0 {
		_, err = c.stdout.Write(content)
	} else {
		file = absolute(args[0])
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return fmt.Errorf("write authority: %w", err)
		}
		err = c.printf("wrote %s\n", file)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.stderr, trustHelp, file)
	return nil
}

// trustHelp says how each language's clients are told to trust a file.
const trustHelp = `To trust it:
  eventyard           export EVENTYARD_CA=%[1]s
  Go, .NET, OpenSSL   export SSL_CERT_FILE=%[1]s
  Node.js             export NODE_EXTRA_CA_CERTS=%[1]s
  Python              EventHubProducerClient(..., connection_verify="%[1]s")
  Java                keytool -importcert -noprompt -cacerts -storepass changeit -alias eventyard -file %[1]s
  curl                curl --cacert %[1]s
`
