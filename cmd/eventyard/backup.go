package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"syscall"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/backup"
	"github.com/eventyard/eventyard/internal/backup/archive"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/config/location"
	"github.com/eventyard/eventyard/server"
	"github.com/spf13/cobra"
)

const backupHelp = `Write a backup of a whole yard to a folder, while the yard serves: hubs with their events,
groups with their checkpoints, topics, subscriptions, what waits to be delivered again, dead
letters, functions, policies, blobs, and the certificates that the yard has made.

The folder is made, or is empty; nothing is ever overwritten. The backup is there when the
command says so: until then the folder is marked as unfinished, and restore refuses it.

It needs Manage to the namespace. Secrets in it are sealed with the yard's secret key, which
is not in it: keep a copy of that elsewhere. The events are not encrypted.

Events that the yard itself cannot read are named, and left out; the command ends with code 1
then, and the backup is good for the rest.`

const restoreHelp = `Make a data folder from a backup, for eventyard serve to start on, or with --engine a yard on
NATS servers. No yard is asked.

The data folder does not exist, or is empty. If the secret key of the yard was in its data
folder, as it is by default, put a copy of that file, secret.key, there first; if it came from
elsewhere, say so as to serve. A restore that was interrupted is begun again by the same
command: no yard starts on the folder before it is done.

On servers there is no yard of that name yet. The secret key is given as to serve: the file has
the new key of the yard first, and behind it that of the backup, if it is another. At the end
all events are read back and compared.

With --cluster-bundle the yard is restored to the NATS servers inside the nodes, of which none runs.
On one of the machines give the backup's FOLDER; on the others leave it out, and the command runs
their server alone until it is stopped. Data folders are new, and bundles have the secret key; if
the backup was sealed with another, give it by --backup-secrets-key-file.

The restored yard is as it was when the backup was begun, with the events up to when each
partition was read. What was delivered or handled after that is delivered or handled again.`

// backupCommands are those of `eventyard backup`, and `eventyard restore`.
type backupCommands struct{ *cli }

func (c backupCommands) command() *cobra.Command {
	var form output
	cmd := &cobra.Command{
		Use:   "backup FOLDER",
		Short: "Write a backup of a yard that is running",
		Long:  backupHelp,
		Example: `  eventyard backup /backups/$(date +%F)
  eventyard backup --server https://yard.example.com --connection-string @key.txt /backups/today
  eventyard backup verify /backups/today`,
		Args: wantArgs,
	}
	form.addTo(cmd)
	c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		return c.take(cmd.Context(), client, args[0], form)
	})
	cmd.AddCommand(c.verify())
	return cmd
}

func (c backupCommands) take(ctx context.Context, client *admin.Client, folder string, form output) error {
	if err := backup.CheckEmpty(folder); err != nil { // before the yard begins
		return occupied(err)
	}
	stream, err := client.Backup(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	progress := newProgress(c.stderr)
	summary, err := backup.Receive(ctx, folder, "eventyard "+thisBuild().Version, stream, func(read int64) {
		progress.show(func() string { return roughBytes(read) + " received" })
	})
	progress.clear()
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case errors.Is(err, backup.ErrOccupied):
		return occupied(err)
	case err != nil:
		return &advisedError{"there is no backup: " + err.Error(), afterBackup(folder)}
	}
	if err := c.printBackup(form, folder, "backed up", summary); err != nil {
		return err
	}
	if len(summary.Lost) > 0 {
		return errReported
	}
	return nil
}

// afterBackup says what to do about what a backup that failed has left behind.
func afterBackup(folder string) string {
	if errors.Is(backup.CheckEmpty(folder), backup.ErrOccupied) {
		return "remove " + folder + ", which holds what there is of it, and try again"
	}
	return "see whether " + folder + " can be made and written to, or name another folder"
}

func occupied(err error) error {
	return &advisedError{err.Error(), "name a folder that does not exist yet, such as one with the date in its name"}
}

func (c backupCommands) verify() *cobra.Command {
	var form output
	cmd := &cobra.Command{
		Use:   "verify FOLDER",
		Short: "Check that a backup is whole, and say what is in it",
		Long: `Read a backup from its beginning to its end, and check that it is whole: every record, and
the list of all parts. It changes nothing, asks no yard, and needs no secret key.`,
		Example: "  eventyard backup verify /backups/2026-11-17",
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		folder, err := backup.Open(args[0])
		if err != nil {
			return unusable(args[0], err)
		}
		defer func() { _ = folder.Close() }()
		progress := newProgress(c.stderr)
		err = folder.Verify(cmd.Context(), func(read int64) {
			progress.show(func() string {
				return fmt.Sprintf("%s of %s read", roughBytes(read), roughBytes(folder.Summary.Bytes))
			})
		})
		progress.clear()
		switch {
		case cmd.Context().Err() != nil:
			return errInterrupted
		case err != nil:
			return unusable(args[0], err)
		}
		return c.printBackup(form, args[0], "whole", folder.Summary)
	}
	form.addTo(cmd)
	return cmd
}

// unusable says what to do about a backup that cannot be used.
func unusable(folder string, err error) error {
	next := "use another backup"
	switch {
	case errors.Is(err, archive.ErrForeign):
		next = "name the folder that eventyard backup has written"
	case errors.Is(err, archive.ErrNewer):
		next = "install that version"
	case errors.Is(err, syscall.ENOTDIR):
		return &advisedError{folder + " is, or is in, a file, and a backup is a folder", "name the folder that eventyard backup has written"}
	case !errors.Is(err, archive.ErrUnfinished) && !errors.Is(err, archive.ErrDamaged):
		next = "see whether the folder can be read"
	}
	return &advisedError{folder + ": " + err.Error(), next}
}

func (c backupCommands) restore() *cobra.Command {
	var form output
	var backupKey server.Secrets
	cmd := &cobra.Command{
		Use:   "restore [FOLDER]",
		Short: "Make a data folder, or a yard on NATS servers, from a backup",
		Long:  restoreHelp,
		Example: `  mkdir -m 700 data && cp safe/secret.key data/
  eventyard restore /backups/2026-11-17 --data data
  eventyard serve --data data

  eventyard restore /backups/2026-11-17 --engine nats://n1,n2,n3 --yard shop --secrets-key-file shop.key

  eventyard restore /backups/2026-11-17 --cluster-bundle node-1.bundle --data /var/lib/eventyard
  eventyard restore --cluster-bundle node-2.bundle --data /var/lib/eventyard   # on the other machines, meanwhile`,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, err := c.loadConfig(cmd)
		if err != nil {
			return err
		}
		peer, err := peerConfig(cfg)
		if err != nil {
			return err
		}
		switch {
		case len(args) == 0 && peer.Bundle == nil:
			return usagef(cmd, "restore needs a folder: eventyard restore FOLDER")
		case peer.Bundle == nil && backupKey != (server.Secrets{}):
			return usagef(cmd, "--backup-secrets-key-file goes with --cluster-bundle: else the keys of the backup are in --secrets-key-file")
		case len(args) == 0:
			return c.takePart(cmd.Context(), cfg, peer)
		}
		return c.fill(cmd.Context(), cfg, peer, backupKey, args[0], form)
	}
	form.addTo(cmd)
	f := cmd.Flags()
	f.StringP("config", "c", "", "`file` to read settings from (default eventyard.yaml if it is there)")
	for _, s := range config.Settings() {
		if slices.Contains([]string{"data", "engine", "yard", "replicas", "hubStreams", "streamBytes", "natsUnsafe"}, s.Key) || strings.HasPrefix(s.Key, "secrets.key") || strings.HasPrefix(s.Key, "cluster.") {
			addSettingFlag(f, s)
		}
	}
	f.StringVar(&backupKey.KeyFile, "backup-secrets-key-file", "", "`file` with the secret keys of the backup, with --cluster-bundle (default: that of the bundle)")
	return cmd
}

// takePart runs this machine's server while another peer restores.
func (c backupCommands) takePart(ctx context.Context, cfg config.Config, peer server.Peer) error {
	node := oneLine(peer.Bundle.Node())
	err := server.TakePart(ctx, server.Location{DataDir: cfg.Data, Peer: peer}, thisBuild().Version, c.warnings(), func() {
		_ = c.printf("the server of %s runs: restore or copy the yard at another of its machines, and stop this with Ctrl-C when that has ended\n", node)
	})
	if err == nil {
		err = c.printf("stopped; when the yard is restored, start %s with: eventyard serve --cluster-bundle %s --data %s\n", node, cfg.Cluster.Bundle, cfg.Data)
	}
	return err
}

// fill makes the data folder, or the yard on servers.
func (c backupCommands) fill(ctx context.Context, cfg config.Config, peer server.Peer, backupKey server.Secrets, from string, form output) error {
	folder, err := backup.Open(from)
	if err != nil {
		return unusable(from, err)
	}
	summary := folder.Summary
	_ = folder.Close() // it was only read
	progress := newProgress(c.stderr)
	err = server.Restore(ctx, server.Restoration{
		Backup: from, DataDir: cfg.Data, Engine: cfg.EngineURL(), NATSUnsafe: cfg.NATSUnsafe, Peer: peer,
		Secrets: cmp.Or(backupKey, server.Secrets(cfg.Secrets)), Version: thisBuild().Version, Log: c.warnings(),
		Progress: func(done, total int64) {
			progress.show(func() string { return fmt.Sprintf("%s of %s restored", roughBytes(done), roughBytes(total)) })
		},
	})
	progress.clear()
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case errors.Is(err, archive.ErrDamaged), errors.Is(err, archive.ErrUnfinished):
		return unusable(from, err)
	case errors.Is(err, server.ErrNoKey) && peer.Bundle != nil:
		return &advisedError{err.Error(), "give the secret key of the yard that the backup is of by --backup-secrets-key-file"}
	case errors.Is(err, server.ErrYardOccupied) && peer.Bundle != nil:
		return &advisedError{err.Error(), "make bundles for another yard with eventyard cluster init, and use new data folders"}
	case errors.Is(err, server.ErrRestoring) && (cfg.OnServers() || peer.Bundle != nil):
		return adviseCopy(err)
	case err != nil:
		return err
	}
	if peer.Bundle != nil {
		if err := c.printBackup(form, from, "restored", summary); err != nil || form == asJSON {
			return err
		}
		return c.printf("stop the command at the other machines, and start each with its bundle, as here: eventyard serve --cluster-bundle %s --data %s\n", cfg.Cluster.Bundle, cfg.Data)
	}
	if cfg.OnServers() {
		if err := c.printBackup(form, from, "restored", summary); err != nil || form == asJSON {
			return err
		}
		return c.printf("start its nodes with: eventyard serve %s%s\n", howToServe(cfg.EngineURL()), keyAgain(cfg))
	}
	if err := c.printBackup(form, absolute(cfg.Data), "restored", summary); err != nil || form == asJSON {
		return err
	}
	return c.printf("start it with the settings that it had, and: eventyard serve --data %s%s\n", cfg.Data, keyAgain(cfg))
}

// keyAgain is what to tell serve of a secret key that is not in the data folder; nothing where it is.
func keyAgain(cfg config.Config) string {
	switch s := cfg.Secrets; {
	case s.KeyFile != "":
		return " --secrets-key-file " + s.KeyFile
	case s.KeyCommand != "" || s.Key != "":
		return ", and tell it where the secret key comes from, as this command"
	}
	return ""
}

// printBackup prints what a backup has, and what it lacks.
func (c backupCommands) printBackup(form output, folder, what string, s backup.Summary) error {
	if form == asJSON {
		return writeJSON(c.stdout, struct {
			Folder string `json:"folder"`
			backup.Summary
		}{absolute(folder), s})
	}
	fmt.Fprintf(c.stdout, "%s: %s, %s in %s, %s (%s), of %s at %s\n", what, counted(s.Events, "event"),
		counted(s.Partitions, "partition"), counted(s.Logs, "log"), counted(s.Bodies, "large blob"), roughBytes(s.Bytes), s.Namespace, showTime(s.Taken))
	if what != "restored" && len(s.SecretKeys) > 0 {
		fmt.Fprintf(c.stdout, "to restore it, the secret key is needed that is not in it: %s, by its hash; keep a copy of the yard's secret.key\n", strings.Join(s.SecretKeys, ", "))
	}
	for _, log := range s.Removed {
		fmt.Fprintf(c.stderr, "log %s was deleted meanwhile: what it belongs to is there without events\n", oneLine(log))
	}
	for _, lost := range s.Lost {
		fmt.Fprintf(c.stderr, "%s %s\n", newPaint(c.stderr).red("not in the backup:"), oneLine(lost))
	}
	return nil
}

// howToServe names a location without what lets in there.
func howToServe(at string) string {
	if !onServers(at) {
		return "--data " + at
	}
	return fmt.Sprintf("--engine '%s', with the same credentials and secret key", location.Shown(at))
}

// onServers tells a location on NATS servers from a folder.
func onServers(location string) bool {
	return strings.HasPrefix(location, "nats://") || strings.HasPrefix(location, "tls://")
}

// warnings is a log of what somebody at a terminal should know.
func (c backupCommands) warnings() *slog.Logger {
	return slog.New(slog.NewTextHandler(c.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
