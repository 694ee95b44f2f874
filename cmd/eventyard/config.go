package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/transport/certs"
	"github.com/eventyard/eventyard/server"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// addConfigFlags gives a command the flags of every setting, and --config.
func addConfigFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringP("config", "c", "", "`file` to read settings from: eventyard.yaml, or the official emulator's Config.json (default eventyard.yaml if it is there)")
	for _, s := range config.Settings() {
		addSettingFlag(f, s)
	}
	completeFlags(cmd, cobra.FixedCompletions(fixedWords["sync"], cobra.ShellCompDirectiveNoFileComp), "sync")
}

func addSettingFlag(f *pflag.FlagSet, s config.Setting) {
	if !s.Bool {
		f.Var(&settingFlag{text: s.Default, kind: s.Value}, s.Flag, s.Help)
		return
	}
	f.VarPF(&settingFlag{text: s.Default, kind: "bool"}, s.Flag, "", s.Help).NoOptDefVal = "true" // what the bare flag means
}

// settingFlag holds a setting as it was written; package config reads it.
type settingFlag struct{ text, kind string }

func (f *settingFlag) String() string { return f.text }

// Set takes the flag's value.
func (f *settingFlag) Set(text string) error {
	f.text = text
	return nil
}

// Type is the word that stands for the value in help.
func (f *settingFlag) Type() string { return f.kind }

// loadConfig reads the configuration with the flags that were given, and prints what
// the user should look at.
func (c *cli) loadConfig(cmd *cobra.Command) (config.Config, error) {
	from := config.Sources{Environ: os.Environ(), Flags: map[string]string{}, ReservedNames: server.ReservedNames()}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name == "config" {
			from.File = f.Value.String()
		} else {
			from.Flags[f.Name] = f.Value.String()
		}
	})
	loaded, err := config.Load(from)
	c.warn(loaded.Warnings)
	if config.BlamesFlag(err) {
		inWordsOfFlags(err)
		err = usagef(cmd, "%w", err)
	}
	return loaded.Config, adviseNoFile(err, from.File)
}

// inWordsOfFlags rewords what is wrong with flags: their names say which setting it is.
func inWordsOfFlags(err error) {
	switch e := err.(type) {
	case *config.Problem:
		if strings.HasPrefix(e.Origin, "--") {
			e.Key, e.Reason = "", strings.Replace(e.Reason, "set allowPlaintext", "give --allow-plaintext", 1)
		}
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			inWordsOfFlags(one)
		}
	case interface{ Unwrap() error }:
		inWordsOfFlags(e.Unwrap())
	}
}

// adviseNoFile adds where a file of settings comes from to the error that there is none.
func adviseNoFile(err error, file string) error {
	var missing *fs.PathError
	if errors.As(err, &missing) && missing.Path == file && errors.Is(missing, fs.ErrNotExist) {
		return &advisedError{err.Error(), "check the path; a file to begin with is written by: eventyard config doc > eventyard.yaml"}
	}
	return err
}

func (c *cli) warn(warnings []string) {
	for _, w := range warnings {
		fmt.Fprintln(c.stderr, newPaint(c.stderr).yellow("warning:"), w)
	}
}

// configCommands are those of `eventyard config`.
type configCommands struct{ *cli }

func (c configCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "config", Short: "Explain the settings, and check a file of them"},
		c.doc(), c.check())
}

func (c configCommands) doc() *cobra.Command {
	return &cobra.Command{
		Use:     "doc",
		Short:   "Print every setting with its default, as a file to begin with",
		Example: "  eventyard config doc > eventyard.yaml",
		RunE:    func(*cobra.Command, []string) error { return config.WriteReference(c.stdout) },
	}
}

func (c configCommands) check() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check an eventyard.yaml or Config.json",
		RunE: func(_ *cobra.Command, args []string) error {
			loaded, err := config.Load(config.Sources{File: args[0], ReservedNames: server.ReservedNames()})
			c.warn(loaded.Warnings)
			for _, note := range loaded.Notes {
				fmt.Fprintln(c.stderr, newPaint(c.stderr).yellow("note:"), note)
			}
			if err == nil {
				if _, err = server.New(c.serverConfig(loaded.Config)); err != nil { // which knows more about hubs
					err = fmt.Errorf("%s: %w", args[0], cmp.Or(errors.Unwrap(err), err)) // without the words of a start
				}
			}
			if err == nil {
				err = c.checkFiles(loaded.Config)
			}
			if err == nil {
				err = checkMail(loaded.Config)
			}
			if err == nil {
				err = checkPresumed(loaded)
			}
			if err != nil {
				return adviseNoFile(err, args[0])
			}
			verdict := "is right"
			if presumed := presumedOf(loaded); presumed != "" {
				verdict = "starts a yard that has " + presumed + " already, and no other"
			}
			cfg := loaded.Config
			_, err = fmt.Fprintf(c.stdout, "%s %s: %s, %s, %s, %s and %s declared\n", args[0], verdict, counted(len(cfg.Hubs), "hub"), counted(len(cfg.Policies), "policy"),
				counted(len(cfg.Topics), "topic"), counted(len(cfg.Subscriptions), "subscription"), counted(len(cfg.Functions), "function"))
			return err
		},
	}
}

// checkFiles finds what a start would refuse about files and folders that are named.
func (c configCommands) checkFiles(cfg config.Config) error {
	if err := checkFolder(cfg); err != nil {
		return err
	}
	if err := server.Secrets(cfg.Secrets).CheckFile(context.Background()); err != nil {
		return &advisedError{"secrets.keyFile: " + err.Error(), "check the path; a key is 32 random bytes as base64, in a file that others cannot read"}
	}
	return checkCertificate(cfg.TLS)
}

// checkFolder wants the folder of data to be one, or possible to make.
func checkFolder(cfg config.Config) error {
	if cfg.OnServers() {
		return nil
	}
	for path := absolute(cfg.Data); ; path = filepath.Dir(path) {
		switch info, err := os.Stat(path); {
		case err == nil && !info.IsDir():
			return &advisedError{fmt.Sprintf("data: %s: %s is a file, and a folder is wanted", cfg.Data, path), "name a folder; what is missing of it is made"}
		case err == nil || filepath.Dir(path) == path:
			return nil
		}
	}
}

// checkPresumed finds what a start would refuse about hubs and topics that policies and functions name and the file
// does not declare. Whether a yard has them is not looked up: it may be serving. One that has yet to be made has none.
func checkPresumed(loaded config.Loaded) error {
	cfg := loaded.Config
	presumed := presumedOf(loaded)
	if presumed == "" || !strings.HasPrefix(cfg.EngineURL(), "disk") {
		return nil
	}
	if files, err := os.ReadDir(cfg.Data); err == nil && len(files) > 0 {
		return nil
	}
	return &advisedError{
		fmt.Sprintf("a yard does not start with it unless it has %s, and there is no yard in %s", presumed, cfg.Data),
		"declare what is missing under hubs or topics, or correct the name",
	}
}

// presumedOf names the hubs and topics that a yard has to have already; empty where it starts without.
func presumedOf(loaded config.Loaded) string {
	var all []string
	for _, of := range []struct {
		kind  string
		names []string
	}{{"hub", loaded.Presumed}, {"topic", loaded.PresumedTopics}} {
		switch len(of.names) {
		case 0:
		case 1:
			all = append(all, of.kind+" "+of.names[0])
		default:
			all = append(all, of.kind+"s "+strings.Join(of.names, ", "))
		}
	}
	return strings.Join(all, " and ")
}

// checkMail finds what a start would refuse about mail: authorities of its server that cannot be read, and
// notices that go by mail where there is no server.
func checkMail(cfg config.Config) error {
	smtp := cfg.Notify.SMTP
	if smtp.CAFile != "" {
		pem, err := os.ReadFile(smtp.CAFile)
		if err == nil && !x509.NewCertPool().AppendCertsFromPEM(pem) {
			err = fmt.Errorf("%s has no certificate in it, as PEM", smtp.CAFile)
		}
		if err != nil {
			return fmt.Errorf("notify.smtp.caFile: %w", err)
		}
	}
	targets := cfg.Notify.Targets()
	for _, f := range cfg.Functions {
		targets = append(targets, f.Notify...)
	}
	byMail := func(target string) bool { return strings.HasPrefix(strings.ToLower(target), "mailto:") }
	if i := slices.IndexFunc(targets, byMail); i >= 0 && smtp.Addr == "" {
		return fmt.Errorf("notices to %s need a mail server: set notify.smtp.addr and notify.smtp.from", targets[i])
	}
	return nil
}

// checkCertificate reads the operator's files of the certificate, as serve does.
func checkCertificate(cfg config.TLS) error {
	if cfg.CertFile == "" && cfg.KeyFile == "" { // the yard makes its own
		if cfg.ClientCAFile == "" {
			return nil
		}
		_, err := certs.ReadAuthorities(cfg.ClientCAFile)
		return err
	}
	_, err := certs.Open(certs.Config{CertFile: cfg.CertFile, KeyFile: cfg.KeyFile, ClientCAFile: cfg.ClientCAFile, Log: slog.New(slog.DiscardHandler)})
	return err
}
