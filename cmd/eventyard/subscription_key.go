package main

import (
	"fmt"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/spf13/cobra"
)

const makeKeyHelp = `Make a key to sign requests with, as Standard Webhooks does, for a receiver that refuses what is not
signed: it refuses the validation, too, until it knows the key. Give it the key first, then create the
subscription with --signing-key. No yard is asked, and nothing is kept. Into a file goes the key alone.`

// madeKey is a key that no subscription has yet.
type madeKey struct {
	// Key signs, and Check is what receivers need: the same but for ed25519.
	Key   string `json:"key"`
	Check string `json:"check"`
}

func (c subscriptionCommands) makeKey() *cobra.Command {
	var algorithm string
	var form output
	cmd := &cobra.Command{
		Use: "make-key", Short: "Make a signing key for a receiver that has to know it first", Long: makeKeyHelp,
		Example: `  eventyard subscription make-key
  eventyard subscription make-key > key.txt
  eventyard subscription create billing --topic orders --endpoint https://billing.example.com/hook --signing-key @key.txt`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			key, err := signature.New(algorithm)
			if err != nil {
				return usagef(cmd, "--sign: %w", err)
			}
			check, err := key.Public()
			if err != nil {
				return err
			}
			if form == asJSON {
				return writeJSON(c.stdout, madeKey{key.Text, check})
			}
			if !isTerminal(c.stdout) { // it goes into a file that --signing-key reads, or to a program
				if check != key.Text {
					fmt.Fprintf(c.stderr, "check with  %s\n", check)
				}
				return c.printf("%s\n", key.Text)
			}
			return c.printf("sign with   %s\ncheck with  %s\n", key.Text, check)
		},
	}
	addSignFlag(cmd, &algorithm, signature.HMAC, "hmac or ed25519")
	form.addTo(cmd)
	return cmd
}

// addSignFlag gives a command the flag that says how to sign, by the name that it has where a subscription is created.
func addSignFlag(cmd *cobra.Command, algorithm *string, usual, help string) {
	cmd.Flags().StringVar(algorithm, "sign", usual, "`algorithm`: "+help)
	takeFormer(cmd, map[string]string{"algorithm": "sign"})
	completeFlags(cmd, cobra.FixedCompletions([]string{signature.HMAC, signature.Ed25519}, cobra.ShellCompDirectiveNoFileComp), "sign")
}

func (c subscriptionCommands) rotate() *cobra.Command {
	var source sourceFlags
	var algorithm, overlap string
	cmd := &cobra.Command{Use: "regenerate SUBSCRIPTION", Aliases: []string{"rotate-key"}, Short: "Make a new signing key; the present ones stay valid for a while"}
	addSignFlag(cmd, &algorithm, "", "hmac or ed25519; that of the present key if not given, hmac if there is none")
	cmd.Flags().StringVar(&overlap, "overlap", "24h", "how long the present keys still sign, a `duration`")
	source.addTo(cmd)
	return listing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) ([]admin.SigningKey, error) {
		before, err := client.Subscription(cmd.Context(), source.which(args[0]), false)
		if err != nil {
			return nil, err
		}
		s, err := client.RotateSigningKey(cmd.Context(), source.which(args[0]), algorithm, overlap)
		if err == nil && len(before.Signing) == 0 {
			fmt.Fprintf(c.stderr, "requests to %s were not signed; from now on they are. To end that: eventyard subscription update %s --sign none\n", s.Name, s.Name)
		}
		c.notePending(s)
		return s.Signing, err
	}, "", []string{"ALGORITHM", "SIGNS UNTIL", "KEY"}, func(k admin.SigningKey) []string {
		until := "further notice"
		if k.Expires != nil {
			until = showTime(*k.Expires)
		}
		return []string{k.Algorithm, until, k.Text}
	})
}
