package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/spf13/cobra"
)

const contextHelp = `A context is the name of a yard and of how one is let in there: its URL, the connection string,
and the authority to trust. Commands use the one that was chosen with eventyard context use, or for
one command with --context CONTEXT. --server, or the variable EVENTYARD_SERVER or
EVENTYARD_CONNECTION_STRING, is used instead of the chosen one.

Contexts are kept in a file of your configuration folder that only you can read; eventyard context
list names it. Give the connection string as @FILE to keep the key elsewhere.`

// savedContext is how one yard is reached. Empty: as without a context.
type savedContext struct {
	Server string `json:"server"`
	// ConnectionString is the text, or @FILE.
	ConnectionString string `json:"connectionString,omitempty"`
	CA               string `json:"ca,omitempty"`
}

// savedContexts is what the file has.
type savedContexts struct {
	Current  string                  `json:"current,omitempty"`
	Contexts map[string]savedContext `json:"contexts"`
}

// errNoContextFolder: the system does not say where a user's configuration is, as without HOME.
var errNoContextFolder = errors.New("there is no folder to keep contexts in")

// contextFile is where contexts are kept.
func contextFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoContextFolder, err)
	}
	return filepath.Join(dir, "eventyard", "contexts.json"), nil
}

// readContexts gives what was saved; nothing where there is no file.
func readContexts() (savedContexts, error) {
	all := savedContexts{Contexts: map[string]savedContext{}}
	file, err := contextFile()
	if err != nil {
		return all, err
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return all, err
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return all, &advisedError{"contexts cannot be read: " + jsonFault(err), "mend or remove " + file}
	}
	if all.Contexts == nil {
		all.Contexts = map[string]savedContext{}
	}
	return all, nil
}

// write replaces the file in one step: what it holds are keys, and another command may read it.
func (s savedContexts) write() error {
	file, err := contextFile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	aside, err := os.CreateTemp(filepath.Dir(file), ".contexts-*") // which only its owner can read
	if err != nil {
		return err
	}
	defer os.Remove(aside.Name()) // no matter once it has its name
	_, err = aside.Write(append(text, '\n'))
	if err = errors.Join(err, aside.Close()); err != nil {
		return err
	}
	return os.Rename(aside.Name(), file)
}

// find gives one by its name.
func (s savedContexts) find(name string) (savedContext, error) {
	one, ok := s.Contexts[name]
	if !ok {
		return one, &advisedError{fmt.Sprintf("there is no context %q", name), "eventyard context list shows those there are; eventyard context add makes one"}
	}
	return one, nil
}

// useContext takes from a context what neither flags nor variables say. A context that was not named for
// this command is used only if nothing else says where the yard is or who asks: its key is not for another.
func (c *cli) useContext(cmd *cobra.Command) error {
	flags := cmd.Flags()
	elsewhere := flags.Changed("server") || flags.Changed("connection-string") || os.Getenv(config.EnvServer) != "" || os.Getenv(config.EnvConnectionString) != ""
	if c.context == "" && elsewhere {
		return nil
	}
	if c.context != "" && flags.Changed("server") {
		return usagef(cmd, "--context and --server both say which yard is asked: give one of them")
	}
	all, err := readContexts()
	if err != nil && c.context == "" && (errors.Is(err, errNoContextFolder) || errors.Is(err, fs.ErrPermission)) {
		return nil // there are none for this user
	}
	if err != nil {
		return err
	}
	name := cmp.Or(c.context, all.Current)
	if name == "" {
		return nil
	}
	one, err := all.find(name)
	if err != nil {
		return err
	}
	c.server, c.addressed = one.Server, true
	c.connection, c.ca = cmp.Or(c.connection, one.ConnectionString), cmp.Or(c.ca, one.CA)
	return nil
}

// contextCommands are those of `eventyard context`.
type contextCommands struct{ *cli }

func (c contextCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "context", Short: "Keep the addresses and keys of yards under names", Long: contextHelp},
		c.add(), c.use(), c.list(), c.remove())
}

func (c contextCommands) add() *cobra.Command {
	var one savedContext
	var use bool
	cmd := &cobra.Command{
		Use: "add CONTEXT", Short: "Save how a yard is reached",
		Example: `  eventyard context add staging --server https://yard.example.com --connection-string @staging.key --ca yard-ca.pem --use
  eventyard context add here --server http://127.0.0.1:8080`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if one.Server == "" {
				return usagef(cmd, "where is the yard? give --server URL")
			}
			one = one.absolute()
			client, err := (&cli{server: one.Server, connection: one.ConnectionString, ca: one.CA, addressed: true}).client(cmd)
			if err != nil {
				return err
			}
			client.Close()
			all, err := readContexts()
			if err != nil {
				return err
			}
			word, without := "saved", ""
			if former, there := all.Contexts[args[0]]; there {
				word = "replaced"
				if former.ConnectionString != "" && one.ConnectionString == "" {
					without = ". It had a key, and has none now: --connection-string gives it one"
				}
			}
			all.Contexts[args[0]] = one
			if use || all.Current == "" {
				all.Current = args[0]
			}
			if err := all.write(); err != nil {
				return err
			}
			return c.printf("%s context %s; commands use %s%s\n", word, args[0], all.Current, without)
		},
	}
	f := cmd.Flags()
	f.StringVar(&one.Server, "server", "", "`URL` of the yard")
	f.StringVar(&one.ConnectionString, "connection-string", "", "`text` with the policy and key to use, or @FILE to read it from each time")
	f.StringVar(&one.CA, "ca", "", "`file` with the authority to trust at https")
	f.BoolVar(&use, "use", false, "use it from now on; the first is used anyway")
	return cmd
}

// absolute names files so that they are found from every folder.
func (s savedContext) absolute() savedContext {
	if file, named := strings.CutPrefix(s.ConnectionString, "@"); named {
		s.ConnectionString = "@" + absolute(file)
	}
	if s.CA != "" {
		s.CA = absolute(s.CA)
	}
	return s
}

func (c contextCommands) use() *cobra.Command {
	return c.changing(&cobra.Command{Use: "use CONTEXT", Short: "Use a context from now on"}, func(all *savedContexts, name string) string {
		all.Current = name
		return fmt.Sprintf("commands use %s at %s\n", name, all.Contexts[name].Server)
	})
}

func (c contextCommands) remove() *cobra.Command {
	return c.changing(&cobra.Command{Use: "remove CONTEXT", Short: "Forget a context, and its key"}, func(all *savedContexts, name string) string {
		delete(all.Contexts, name)
		if all.Current != name {
			return fmt.Sprintf("removed context %s\n", name)
		}
		all.Current = ""
		return fmt.Sprintf("removed context %s; commands use none now, but %s\n", name, admin.DefaultServer)
	})
}

// changing completes a command that changes something about a context that is there.
func (c contextCommands) changing(cmd *cobra.Command, change func(all *savedContexts, name string) (done string)) *cobra.Command {
	cmd.ValidArgsFunction = offerContexts
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		all, err := readContexts()
		if err != nil {
			return err
		}
		if _, err := all.find(args[0]); err != nil {
			return err
		}
		done := change(&all, args[0])
		if err := all.write(); err != nil {
			return err
		}
		return c.printf("%s", done)
	}
	return cmd
}

// listedContext is one for people and programs to see; keys are not shown.
type listedContext struct {
	Name    string `json:"name"`
	Current bool   `json:"current"`
	Server  string `json:"server"`
	// Key says whether one is saved, or in which file it is.
	Key string `json:"key,omitempty"`
	CA  string `json:"ca,omitempty"`
}

func (c contextCommands) list() *cobra.Command {
	var form output
	cmd := &cobra.Command{Use: "list", Short: "List contexts, without their keys", RunE: func(*cobra.Command, []string) error {
		all, err := readContexts()
		if err != nil {
			return err
		}
		listed := []listedContext{}
		for _, name := range slices.Sorted(maps.Keys(all.Contexts)) {
			one := all.Contexts[name]
			key := "saved"
			if one.ConnectionString == "" || strings.HasPrefix(one.ConnectionString, "@") {
				key = one.ConnectionString
			}
			listed = append(listed, listedContext{name, name == all.Current, one.Server, key, one.CA})
		}
		if form == asJSON {
			return writeJSON(c.stdout, listed)
		}
		if file, err := contextFile(); err == nil && len(listed) > 0 {
			fmt.Fprintf(c.stderr, "kept in %s\n", file)
		}
		return printTable(c.cli, listed, "there are no contexts yet; add one with: eventyard context add CONTEXT --server URL",
			[]string{"CONTEXT", "USED", "SERVER", "KEY", "CA"}, func(one listedContext) []string {
				used := ""
				if one.Current {
					used = "*"
				}
				return []string{one.Name, used, one.Server, cmp.Or(one.Key, "-"), cmp.Or(one.CA, "-")}
			})
	}}
	form.addTo(cmd)
	return cmd
}

// offerContexts completes the name of a context.
func offerContexts(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	all, err := readContexts()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(all.Contexts)), cobra.ShellCompDirectiveNoFileComp
}
