package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/config/location"
	"github.com/eventyard/eventyard/server"
	"github.com/spf13/cobra"
)

const copyHelp = `Copy a whole yard to where there is none: from a data folder to NATS servers, or back. Events
keep their numbers and times; checkpoints, subscriptions, what waits to be delivered again,
dead letters, functions, policies, blobs and the certificate authority come along. Secrets are
sealed with the key of the target. The source is left as it is.

A location is a folder, or servers as nats://HOST:PORT,HOST:PORT?yard=NAME&replicas=3 (or tls://),
as for eventyard serve --engine. The yard of a folder is stopped first. Nodes on servers may
go on serving, and what they take in after a partition was copied is not copied: stop them to
move. At the end all events are read back and compared.

The target is a folder that does not exist or is empty, or a name that no yard has on the
servers. A copy that was interrupted or killed is continued by the same command: what is there is
compared with the source and not copied again. No yard starts on it until it is complete.

To copy to the NATS servers inside the nodes, give the bundle of this machine by --to-cluster-bundle, and
its data folder by --to. At the other machines eventyard restore --cluster-bundle FILE runs meanwhile.
To copy from there, stop the node of this machine, and give its bundle by --from-cluster-bundle and its data
folder by --from. Most of the others go on, or run eventyard restore --cluster-bundle FILE in their place.`

// copying is what the flags of copy say.
type copying struct {
	from, to             string
	fromBundle, toBundle string
	fromKey, toKey       server.Secrets
	unsafe               bool
}

func (c backupCommands) copy() *cobra.Command {
	var form output
	var given copying
	cmd := &cobra.Command{
		Use:   "copy --from LOCATION --to LOCATION",
		Short: "Copy a yard from a data folder to NATS servers, or back",
		Long:  copyHelp,
		Example: `  eventyard copy --from data --to 'nats://n1,n2,n3?yard=shop' --secrets-key-file shop.key
  eventyard copy --from 'nats://n1,n2,n3?yard=shop' --from-secrets-key-file shop.key --to data2
  eventyard copy --from /var/lib/eventyard --from-cluster-bundle node-1.bundle --to data3`,
	}
	form.addTo(cmd)
	f := cmd.Flags()
	f.StringVar(&given.from, "from", "", "`location` to copy from: a data folder, or nats://HOST:PORT?yard=NAME")
	f.StringVar(&given.to, "to", "", "`location` to copy to, which is empty: a data folder, or nats://HOST:PORT?yard=NAME")
	f.StringVar(&given.toKey.KeyFile, "secrets-key-file", "", "`file` with the secret keys of the target, or the variable EVENTYARD_SECRETS_KEY (default secret.key in a folder, which is made)")
	f.StringVar(&given.toKey.KeyCommand, "secrets-key-command", "", "`command` of the shell that prints the secret keys of the target")
	f.StringVar(&given.fromKey.KeyFile, "from-secrets-key-file", "", "`file` with the secret keys of the source, or the variable EVENTYARD_FROM_SECRETS_KEY (default secret.key in a folder; on servers those of the target)")
	f.StringVar(&given.fromKey.KeyCommand, "from-secrets-key-command", "", "`command` of the shell that prints the secret keys of the source")
	f.StringVar(&given.toBundle, "to-cluster-bundle", "", "`file` of this machine's bundle, where the target is the servers inside the nodes; --to is its data folder")
	f.StringVar(&given.fromBundle, "from-cluster-bundle", "", "`file` of this machine's bundle, where the source is the servers inside the nodes; --from is its data folder, on which no node runs")
	f.BoolVar(&given.unsafe, "nats-unsafe", false, "take NATS servers that may lose what they acknowledge: only for trying out")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if given.from == "" || given.to == "" {
			return usagef(cmd, "say where from and where to: --from LOCATION --to LOCATION")
		}
		given.withVariables(os.Getenv)
		from, err := given.location(given.from, given.fromBundle, given.fromKey)
		if err != nil {
			return err
		}
		to, err := given.location(given.to, given.toBundle, given.toKey)
		if err != nil {
			return err
		}
		return c.pass(cmd.Context(), from, to, given.howToServe(), form)
	}
	return cmd
}

// withVariables has keys come from the environment that flags do not give. On servers the source has those
// of the target by default.
func (g *copying) withVariables(variable func(string) string) {
	for name, key := range map[string]*server.Secrets{"EVENTYARD_SECRETS_KEY": &g.toKey, "EVENTYARD_FROM_SECRETS_KEY": &g.fromKey} {
		if *key == (server.Secrets{}) {
			key.Key = variable(name)
		}
	}
	if onServers(g.from) && g.fromKey == (server.Secrets{}) {
		g.fromKey = g.toKey
	}
}

// location is what the flags of one end say.
func (g *copying) location(text, bundle string, key server.Secrets) (server.Location, error) {
	if onServers(text) && bundle == "" {
		return server.Location{Engine: text, Secrets: key, NATSUnsafe: g.unsafe}, nil
	}
	if strings.Contains(text, "://") && !onServers(text) {
		return server.Location{}, &advisedError{fmt.Sprintf("%q is neither a data folder nor NATS servers", location.Shown(text)), "write a folder, or servers like nats://HOST:PORT?yard=NAME"}
	}
	peer, err := peerConfig(config.Config{Cluster: config.Cluster{Bundle: bundle}})
	return server.Location{DataDir: text, Peer: peer, Secrets: key}, err
}

// howToServe is how the copy is started.
func (g *copying) howToServe() string {
	if g.toBundle != "" {
		return fmt.Sprintf("--cluster-bundle %s --data %s, and the others with their bundles", g.toBundle, g.to)
	}
	return howToServe(g.to)
}

// pass copies, and says what was copied, and how to start it.
func (c backupCommands) pass(ctx context.Context, from, to server.Location, start string, form output) error {
	progress := newProgress(c.stderr)
	copied, err := server.Copy(ctx, server.Copying{
		From: from, To: to, Version: thisBuild().Version, Log: c.warnings(),
		Progress: func(bytes int64) {
			progress.show(func() string { return roughBytes(bytes) + " of the source read" })
		},
	})
	progress.clear()
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case err != nil:
		return adviseCopy(err)
	}
	if form == asJSON {
		err = writeJSON(c.stdout, copied)
	} else {
		err = c.printf("copied and compared: %s, %s in %s, %s\n", counted(copied.Events, "event"),
			counted(copied.Partitions, "partition"), counted(copied.Logs, "log"), counted(copied.Bodies, "large blob"))
		if err == nil && copied.Found > 0 {
			err = c.printf("%s had been copied before, and are the same\n", counted(copied.Found, "event"))
		}
		if err == nil {
			err = c.printf("start it with: eventyard serve %s\n", start)
		}
	}
	for _, lost := range copied.Lost {
		fmt.Fprintf(c.stderr, "%s %s\n", newPaint(c.stderr).red("not copied:"), oneLine(lost))
	}
	if err == nil && len(copied.Lost) > 0 {
		err = errReported
	}
	return err
}

// adviseCopy says what to do about a copy that failed.
func adviseCopy(err error) error {
	var next string
	switch {
	case errors.Is(err, server.ErrNoYard):
		next = "name the data folder of a yard, or servers with the right ?yard=NAME, by --from"
	case errors.Is(err, server.ErrForeign):
		next = "name the data folder of a yard by --from, and one that does not exist yet by --to"
	case errors.Is(err, server.ErrOccupied):
		next = "name a folder that does not exist yet by --to"
	case errors.Is(err, server.ErrYardOccupied):
		next = "name a yard that is not there yet by --to, as in nats://HOST:PORT?yard=NAME"
	case errors.Is(err, server.ErrLocked):
		next = "stop the yard that uses the folder"
	case errors.Is(err, server.ErrRestoring):
		next = "wait until that has ended; if it was interrupted, the same command as then continues it"
	default:
		return err
	}
	return &advisedError{err.Error(), next}
}
