package main

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/spf13/cobra"
)

const blobHelp = `The yard has a blob endpoint with one account, for checkpoint stores and other clients of
Azure Blob Storage. The account has two keys of its own, which open its blobs and nothing
else; eventyard connection-string --blob prints what such clients are configured with, and
with --container a connection string that is valid for one container only.

Before the account had keys of its own, those of the root policy were valid for it. Connection
strings of that time stay valid until: eventyard blob root-keys off.`

// blobCommands are those of `eventyard blob`.
type blobCommands struct{ *cli }

func (c blobCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "blob", Short: "Show and change the blob account, replace its keys", Long: blobHelp},
		c.show(), c.create(), c.update(), c.regenerate(), c.rootKeys())
}

func (c blobCommands) show() *cobra.Command {
	var showKeys bool
	cmd := &cobra.Command{Use: "show", Short: "Show the blob account"}
	cmd.Flags().BoolVar(&showKeys, "show-keys", false, "with its keys")
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, _ []string) (admin.BlobAccount, error) {
		if showKeys {
			return client.BlobAccount(cmd.Context())
		}
		return client.BlobAccountWithoutKeys(cmd.Context())
	}, func(a admin.BlobAccount) error {
		if err := c.printf("account    %s\nendpoint   %s\ncreated    %s\nroot keys  %s\n%s",
			cmp.Or(a.Name, "-"), cmp.Or(a.Endpoint, "-"), showTime(a.Created), onOff(a.RootKeys), quotaRow(11, a.Quota.Requests, "requests", a.Quota.Bytes)); err != nil || !showKeys {
			return err
		}
		return c.printf("primary    %s\nsecondary  %s\n", a.PrimaryKey, a.SecondaryKey)
	})
}

func (c blobCommands) create() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create CONTAINER", Short: "Create a container, as checkpoint stores need one",
		Example: "  eventyard blob create checkpoints",
	}
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		connection, err := client.ConnectionString(cmd.Context(), admin.ConnectionStringQuery{Blob: true})
		if err != nil {
			return err
		}
		trusted, err := c.authorities()
		if err != nil {
			return err
		}
		options := &container.ClientOptions{ClientOptions: azcore.ClientOptions{
			Transport: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, Proxy: http.ProxyFromEnvironment}},
		}}
		made, err := container.NewClientFromConnectionString(connection, args[0], options)
		if err == nil {
			_, err = made.Create(cmd.Context(), nil)
		}
		var refused *azcore.ResponseError
		switch {
		case bloberror.HasCode(err, bloberror.ContainerAlreadyExists):
			return &advisedError{fmt.Sprintf("container %s exists already", args[0]), "a connection string for it alone: eventyard connection-string --blob --container " + args[0]}
		case errors.As(err, &refused) && refused.StatusCode == http.StatusBadRequest:
			return &advisedError{fmt.Sprintf("%q is no name of a container", args[0]), "use 3 to 63 small letters, digits and single hyphens, and begin and end with a letter or digit"}
		case err != nil:
			return err
		}
		return c.printf("created container %s; a connection string for it alone: eventyard connection-string --blob --container %s\n", args[0], args[0])
	})
}

func (c blobCommands) update() *cobra.Command {
	var request admin.BlobAccountRequest
	cmd := &cobra.Command{
		Use: "update", Short: "Change the quota of the blob account",
		Example: "  eventyard blob update --quota-requests 500 --quota-bytes 10MiB",
	}
	addDefinitionFlags(cmd, spec.BlobAccount, spec.Update, &request)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, _ []string) (admin.BlobAccount, error) {
		if request.Quota == nil {
			return admin.BlobAccount{}, usagef(cmd, "nothing to change: give --quota-requests or --quota-bytes")
		}
		account, err := client.UpdateBlobAccount(cmd.Context(), request)
		account.PrimaryKey, account.SecondaryKey = "", ""
		return account, err
	}, func(a admin.BlobAccount) error {
		return c.printf("changed the blob account\n%s", quotaRow(len("quota "), a.Quota.Requests, "requests", a.Quota.Bytes))
	})
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func (c blobCommands) regenerate() *cobra.Command {
	var key string
	cmd := &cobra.Command{Use: "regenerate", Short: "Replace one of the account's keys; the old one ends at once"}
	cmd.Flags().StringVar(&key, "key", keyName(false), "which `key`: primary or secondary")
	completeFlags(cmd, cobra.FixedCompletions([]string{keyName(false), keyName(true)}, cobra.ShellCompDirectiveNoFileComp), "key")
	yes := addYesFlag(cmd)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, _ []string) (admin.BlobAccount, error) {
		if key != keyName(false) && key != keyName(true) {
			return admin.BlobAccount{}, usagef(cmd, "--key: %q is neither primary nor secondary", key)
		}
		question := fmt.Sprintf("Replace the %s key of the blob account? Clients that use the old one, or a signature made with it, lose access.", key)
		if err := c.confirm(cmd, *yes, question); err != nil {
			return admin.BlobAccount{}, err
		}
		return client.RegenerateBlobKey(cmd.Context(), key)
	}, func(admin.BlobAccount) error {
		return c.printf("the %s key of the blob account is a new one\n", key)
	})
}

const rootKeysHelp = `Say whether the keys of the root policy open blobs. They did before the blob account had keys
of its own. Give clients that still use such a connection string another one, from
eventyard connection-string --blob, then turn this off: a checkpoint store then holds no key
that manages the yard. The setting blob.rootKeys, where it is given, overrides this at each start.`

func (c blobCommands) rootKeys() *cobra.Command {
	cmd := &cobra.Command{
		Use: "root-keys STATE", Short: "Say whether the root policy's keys open blobs", Long: rootKeysHelp,
		Example:   "  eventyard blob root-keys off",
		ValidArgs: []string{"on", "off"},
	}
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.BlobAccount, error) {
		on := args[0] == "on"
		if !on && args[0] != "off" {
			return admin.BlobAccount{}, usagef(cmd, "%q is neither on nor off", args[0])
		}
		return client.UpdateBlobAccount(cmd.Context(), admin.BlobAccountRequest{RootKeys: &on})
	}, func(a admin.BlobAccount) error {
		if a.RootKeys {
			return c.printf("the keys of the root policy open blobs\n")
		}
		return c.printf("the keys of the root policy open no blobs; the account's own do\n")
	})
}
