package main

import (
	"errors"
	"io/fs"

	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/server"
	"github.com/spf13/cobra"
)

const rotateSecretHelp = `Put a new secret key before the old one in the file that holds it. Access keys, signing keys,
headers and the like are encrypted with it at the next start of the yard; until then nothing
changes. Backups from before need the old line: keep it as long as you keep them.

No yard is asked. Where the key comes from a command or a variable, put a new one before the
old one there.`

// secretsCommands are those of `eventyard secrets`.
type secretsCommands struct{ *cli }

func (c secretsCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "secrets", Short: "Rotate the key that encrypts secrets in the data folder"}, c.rotate())
}

func (c secretsCommands) rotate() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rotate",
		Short:   "Make a new secret key, for the next start to encrypt all secrets with",
		Long:    rotateSecretHelp,
		Example: "  eventyard secrets rotate --data /var/lib/eventyard",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.loadConfig(cmd)
			if err != nil {
				return err
			}
			file, err := server.Secrets(cfg.Secrets).Rotate(cfg.Data)
			if errors.Is(err, fs.ErrNotExist) {
				return &advisedError{"there is no secret key in " + file + " yet",
					"a yard makes it when it first starts: eventyard serve; if its data folder is another, use --data"}
			}
			if err != nil {
				return err
			}
			return c.printf("A new key is in %s. Restart the yard: it encrypts all secrets with the new key. Then copy the file to its safe place again: backups need the new key from then on.\n", file)
		},
	}
	f := cmd.Flags()
	f.StringP("config", "c", "", "`file` to read settings from (default eventyard.yaml if it is there)")
	for _, s := range config.Settings() {
		if s.Key == "data" || s.Key == "secrets.keyFile" {
			addSettingFlag(f, s)
		}
	}
	return cmd
}
