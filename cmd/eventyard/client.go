package main

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/server"
	"github.com/spf13/cobra"
)

// addClientFlags gives a command that asks a yard the flags that say where it is, by what
// key one is let in, and who vouches for it.
func (c *cli) addClientFlags(cmd *cobra.Command) {
	usual := os.Getenv(config.EnvServer)
	usual = cmp.Or(usual, admin.DefaultServer)
	cmd.Flags().StringVar(&c.server, "server", usual, "`URL` of the yard, also by "+config.EnvServer)
	// The variable is no default of the flag, which help would print with its key.
	cmd.Flags().StringVar(&c.connection, "connection-string", "", "`text` with the policy and key to use, or @FILE to read it from. "+
		"Others can see a command line: better by @FILE, or by "+config.EnvConnectionString+", which may be either, too. "+
		"Without it the key is used that every yard on loopback knows")
	cmd.Flags().StringVar(&c.ca, "ca", "", "`file` with the authority to trust at https, and no other, as eventyard cert export writes it, also by "+config.EnvCA)
	c.addContextFlag(cmd)
}

func (c *cli) addContextFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.context, "context", "", "`name` of the context to use; see eventyard context")
	completeFlags(cmd, offerContexts, "context")
}

// client makes the client for --server. The caller closes it.
func (c *cli) client(cmd *cobra.Command) (*admin.Client, error) {
	if err := c.useContext(cmd); err != nil {
		return nil, err
	}
	if c.server == "" && cmd.Flags().Changed("server") {
		return nil, emptyServer(cmd)
	}
	if c.connection == "" && cmd.Flags().Changed("connection-string") { // nor is one let in as somebody else
		return nil, usagef(cmd, "--connection-string is empty: give one, or @FILE, or leave it out")
	}
	connection, from, err := c.givenConnectionString()
	if err != nil {
		return nil, err
	}
	if err := c.checkAddressed(cmd, connection, from); err != nil {
		return nil, err
	}
	trusted, err := c.authorities()
	if err != nil {
		return nil, err
	}
	client, err := admin.New(admin.Config{Server: c.server, ConnectionString: connection, RootCAs: trusted})
	switch {
	case errors.Is(err, auth.ErrConnectionString):
		return nil, usagef(cmd, "%s: %w", from, err)
	case err != nil:
		return nil, usagef(cmd, "%s: %w", c.serverFrom(cmd), err)
	}
	return client, nil
}

// serverFrom is who has said where the yard is.
func (c *cli) serverFrom(cmd *cobra.Command) string {
	switch {
	case c.addressed && !cmd.Flags().Changed("server"):
		return "the server of the context"
	case !cmd.Flags().Changed("server") && os.Getenv(config.EnvServer) != "":
		return config.EnvServer
	}
	return "--server"
}

// emptyServer is for a variable that was never set: the usual address would be that of another yard.
func emptyServer(cmd *cobra.Command) error {
	return usagef(cmd, "--server is empty: write it like %s, or leave it out", admin.DefaultServer)
}

// checkAddressed refuses the connection string of a yard elsewhere where nobody said at what
// address it speaks HTTP: the usual one is this machine's, and another yard may be there.
func (c *cli) checkAddressed(cmd *cobra.Command, connection, from string) error {
	if connection == "" || c.addressed || cmd.Flags().Changed("server") || os.Getenv(config.EnvServer) != "" {
		return nil
	}
	parsed, err := auth.ParseConnectionString(connection)
	if err != nil {
		return nil // which the client tells better
	}
	endpoint, err := url.Parse(parsed.Endpoint)
	if err != nil || endpoint.Hostname() == "" || auth.IsLocalName(endpoint.Host, "") {
		return nil
	}
	return usagef(cmd, "%s is for the yard at %s, and its HTTP address is needed: give it with --server https://%s, or by %s; "+
		"if that yard is on this machine, perhaps with --server %s",
		from, endpoint.Hostname(), endpoint.Hostname(), config.EnvServer, admin.DefaultServer)
}

// given is what the flag says, or else the variable, and which of them it was. Beside a context, which is
// of one yard, variables say nothing: they may be those of another.
func (c *cli) given(flag, value, variable string) (text, from string) {
	if value != "" || c.addressed {
		return value, flag
	}
	return os.Getenv(variable), variable
}

// givenConnectionString is that of the flag or of the variable; empty where there is
// neither. What begins with @ names a file that has it.
func (c *cli) givenConnectionString() (text, from string, err error) {
	text, from = c.given("--connection-string", c.connection, config.EnvConnectionString)
	file, named := strings.CutPrefix(strings.TrimSpace(text), "@")
	if !named {
		return strings.TrimSpace(text), from, nil
	}
	content, err := os.ReadFile(file)
	text = strings.TrimSpace(string(content))
	if err == nil && text == "" {
		err = fmt.Errorf("%s is empty", file)
	}
	if err != nil {
		return "", from, &advisedError{
			from + ": " + err.Error(),
			"a yard keeps a connection string with all rights in its data folder, in the file " + server.ConnectionStringFile + " that only its owner can read",
		}
	}
	return text, from, nil
}

// authorities are those of --ca; nil where nobody said.
func (c *cli) authorities() (*x509.CertPool, error) {
	file, from := c.given("--ca", c.ca, config.EnvCA)
	if file == "" {
		return nil, nil
	}
	content, err := os.ReadFile(file)
	pool := x509.NewCertPool()
	if err == nil && !pool.AppendCertsFromPEM(content) {
		err = fmt.Errorf("%s has no certificate in it, as PEM", file)
	}
	if err != nil {
		return nil, &advisedError{from + ": " + err.Error(), "eventyard cert export FILE writes it, where the data folder of the yard is"}
	}
	return pool, nil
}
