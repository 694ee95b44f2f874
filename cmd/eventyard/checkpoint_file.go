package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/processor/legacy"
	"github.com/spf13/cobra"
)

func (c checkpointCommands) export() *cobra.Command {
	return c.asking(&cobra.Command{
		Use:     "export HUB GROUP",
		Short:   "Print a group's checkpoints for import",
		Example: `  eventyard checkpoint export orders billing > billing.json`,
	}, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		list, err := client.Checkpoints(cmd.Context(), args[0], args[1])
		if err != nil {
			return err
		}
		return writeJSON(c.stdout, list)
	})
}

const importHelp = `Set a group's checkpoints to what files hold: one that export printed, or leases of the old
Event Processor Host (one JSON text per partition, as its blobs have it; .NET, Java, Python and Go). All of them are set, or none.

Partitions that are owned are refused, unless --force says otherwise.`

func (c checkpointCommands) importFile() *cobra.Command {
	var m checkpointMove
	cmd := &cobra.Command{
		Use:   "import HUB GROUP FILE...",
		Short: "Set a group's checkpoints from a file",
		Long:  importHelp,
		Example: `  eventyard checkpoint import orders billing billing.json
  eventyard checkpoint import orders billing lease-0.json lease-1.json --dry-run
  eventyard checkpoint export orders billing | eventyard checkpoint import orders billing-2 -`,
	}
	cmd.Flags().BoolVar(&m.Force, "force", false, "also where a partition is owned, and from another hub")
	cmd.Flags().BoolVar(&m.DryRun, "dry-run", false, "only show what would be done")
	m.form.addTo(cmd)
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		list, err := c.readCheckpoints(args[2:])
		if err != nil {
			return err
		}
		moved, err := client.ImportCheckpoints(cmd.Context(), args[0], args[1], list, m.MoveOptions)
		if err != nil {
			return explainMove(err, args[0], "")
		}
		return c.printMoves(&m, movePlan{move: moved})
	})
}

// readCheckpoints gathers what is in the files; - is the standard input.
func (c checkpointCommands) readCheckpoints(files []string) (admin.Checkpoints, error) {
	var all admin.Checkpoints
	for _, name := range files {
		var text []byte
		var err error
		if name == "-" {
			text, err = io.ReadAll(c.stdin)
		} else {
			text, err = os.ReadFile(name)
		}
		if err != nil {
			return all, err
		}
		if err := addCheckpoints(&all, text); err != nil {
			return all, &advisedError{fmt.Sprintf("%s: %s", name, jsonFault(err)),
				"give what eventyard checkpoint export printed, or the JSON of an Event Processor Host's leases"}
		}
	}
	if len(all.Checkpoints) == 0 {
		return all, &advisedError{"there is no checkpoint in what was given", "a host that never made one has nothing to import"}
	}
	return all, nil
}

func addCheckpoints(all *admin.Checkpoints, text []byte) error {
	var exported admin.Checkpoints
	if err := json.Unmarshal(text, &exported); err != nil {
		return err
	}
	if exported.Checkpoints != nil {
		all.Hub, all.HubCreated = exported.Hub, exported.HubCreated
		all.Checkpoints = append(all.Checkpoints, exported.Checkpoints...)
		return nil
	}
	lease, err := legacy.Parse(text)
	if err != nil {
		return err
	}
	if lease.Partition == "" {
		return fmt.Errorf("it is neither an export nor a lease: no partition is named")
	}
	if k, ok := lease.Checkpoint(lease.Partition); ok {
		imported := admin.Checkpoint{Partition: k.Partition, Offset: k.Offset}
		if k.Sequence >= 0 {
			imported.Sequence = &k.Sequence
		}
		all.Checkpoints = append(all.Checkpoints, imported)
	}
	return nil
}
