package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// The blob account is an entry of its own: its keys open blobs and nothing else.
const (
	accountsPrefix = "accounts/"
	blobAccount    = accountsPrefix + "blob"
)

// Account is the keys of the blob account. They are base64, as clients of storage want it.
type Account struct {
	Primary   string    `json:"primary"`
	Secondary string    `json:"secondary"`
	Created   time.Time `json:"created"`
	// RootKeys: the keys of the root policy are good for it, too. They were its only ones once, so
	// that connection strings of that time go on until an operator turns them off. In yards that
	// have had an account from their beginning they never are, unless an operator wants it.
	RootKeys bool `json:"rootKeys,omitempty"`
	// Quota bounds the requests, and the bytes that are written.
	Quota quota.Limit `json:"quota,omitzero"`
	// Renewed is why both keys were last made anew at once, as RegenerateRoot was told it.
	Renewed string `json:"renewed,omitempty"`
}

// accountRegistry keeps the blob account. It is the part of a Registry that has nothing to do with
// policies.
type accountRegistry struct {
	accounts *mirror.Table[Account]
	blobs    *quota.Meter // of the account
	log      *slog.Logger
}

func newAccounts(cfg Config) *accountRegistry {
	k := &accountRegistry{blobs: quota.NewMeter("the blob account", "requests").Among(cfg.Nodes), log: cfg.Log}
	k.accounts = mirror.New(mirror.Config[Account]{
		Store: cfg.Meta, Prefix: accountsPrefix, Name: "accounts", Decode: decodeAccount, Encode: Account.encode, Apply: k.showAccount, Made: cfg.noteAccount, Log: cfg.Log,
	})
	return k
}

// encode cannot fail: the fields are plain values.
func (a Account) encode() []byte {
	value, err := json.Marshal(a)
	if err != nil {
		panic(fmt.Sprintf("encode the blob account: %v", err))
	}
	return value
}

// decodeAccount's errors name the key, never the value.
func decodeAccount(e meta.Entry) (Account, error) {
	var a Account
	if err := json.Unmarshal(e.Value, &a); err != nil {
		return Account{}, fmt.Errorf("read blob account %s: %w", e.Key, err)
	}
	if e.Key == blobAccount && (a.Primary == "" || a.Secondary == "") {
		return Account{}, fmt.Errorf("read blob account %s: it lacks a key", e.Key)
	}
	return a, nil
}

// loadAccount reads the account, or makes it. It comes before the root policy is made, whose
// absence says that the yard is new: a start that is cut short between the two gives no rights
// away. Where an older yard has no room for it, it is made at a later start, and nobody's keys are
// good until then.
func (k *accountRegistry) loadAccount(ctx context.Context, newYard bool) error {
	if err := k.accounts.Load(ctx); err != nil {
		return err
	}
	if _, exists := k.accounts.Get(blobAccount); exists {
		return nil
	}
	made := Account{Primary: newKey(), Secondary: newKey(), Created: now(), RootKeys: !newYard}
	_, err := k.accounts.Put(ctx, mirror.Item[Account]{Key: blobAccount, Value: made})
	if errors.Is(err, meta.ErrConflict) { // another node was faster
		return k.accounts.Load(ctx)
	}
	if errors.Is(err, meta.ErrNoSpace) && !newYard { // who starts on a full disk wants to free some
		k.log.Warn("the blob account is made at a later start; until then blobs are refused to all who show an account key", "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("make the keys of the blob account: %w", err)
	}
	return nil
}

// Account gives the keys of the blob account as they are now; they are empty where there was no
// room to make it.
func (k *accountRegistry) Account() Account {
	account, _ := k.accounts.Get(blobAccount)
	return account.Value
}

// RegenerateAccount makes one of the account's keys anew. When it returns the old one is good for
// nothing, nor are signatures made with it.
func (k *accountRegistry) RegenerateAccount(ctx context.Context, key Key) (Account, error) {
	return k.changeAccount(ctx, "regenerate the "+string(key)+" key of the blob account", func(a *Account) error {
		switch key {
		case PrimaryKey:
			a.Primary = newKey()
		case SecondaryKey:
			a.Secondary = newKey()
		default:
			return fmt.Errorf("%w: key %.32q, use %s or %s", ErrInvalid, string(key), PrimaryKey, SecondaryKey)
		}
		return nil
	})
}

// LimitAccount changes the quota of the blob account.
func (k *accountRegistry) LimitAccount(ctx context.Context, how func(*quota.Limit)) (Account, error) {
	return k.changeAccount(ctx, "limit the blob account", func(a *Account) error {
		was := a.Quota
		if how(&a.Quota); a.Quota == was {
			return mirror.ErrUnchanged
		}
		return checkQuota(a.Quota)
	})
}

// AccountQuota gives the meter of the blob account.
func (k *accountRegistry) AccountQuota() *quota.Meter { return k.blobs }

func (k *accountRegistry) showAccount(updates []mirror.Update[Account]) {
	for _, u := range updates {
		if u.Key == blobAccount && u.Old.Value.Quota != u.New.Value.Quota {
			k.blobs.Set(u.New.Value.Quota, time.Now())
		}
	}
}

// AllowRootKeys says whether the keys of the root policy are good for the blob account.
func (k *accountRegistry) AllowRootKeys(ctx context.Context, allow bool) (Account, error) {
	return k.changeAccount(ctx, "allow or refuse the root policy's keys for blobs", func(a *Account) error {
		if a.RootKeys == allow {
			return mirror.ErrUnchanged
		}
		a.RootKeys = allow
		return nil
	})
}

func (k *accountRegistry) changeAccount(ctx context.Context, what string, how func(*Account) error) (Account, error) {
	changed, err := k.accounts.Change(ctx, blobAccount, how)
	if errors.Is(err, meta.ErrNotFound) {
		err = fmt.Errorf("%w: there was none to make the account: it is made at the next start", meta.ErrNoSpace)
	}
	if err != nil {
		return Account{}, fmt.Errorf("%s: %w", what, err)
	}
	k.log.Info("blob account changed", "change", what, "rootKeys", changed.Value.RootKeys)
	return changed.Value, nil
}
