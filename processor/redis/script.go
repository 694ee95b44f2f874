package redis

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed common.lua
	commonLua string
	//go:embed claim.lua
	claimLua string
	//go:embed begin.lua
	beginLua string
	//go:embed save.lua
	saveLua string
	//go:embed put.lua
	putLua string
	//go:embed all.lua
	allLua string

	claimScript = newScript(claimLua)
	beginScript = newScript(beginLua)
	saveScript  = newScript(saveLua)
	putScript   = newScript(putLua)
	allScript   = newScript(allLua)
)

// script is run by its digest, as a server that has run it before knows it.
type script struct{ text, digest string }

func newScript(body string) script {
	text := commonLua + body
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

// on runs the script once. A server that does not know it has run nothing, and is
// given the whole text.
func (s script) on(ctx context.Context, client redis.UniversalClient, keys []string, args ...any) ([]string, error) {
	answer, err := eval(ctx, client, "evalsha", s.digest, keys, args)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		answer, err = eval(ctx, client, "eval", s.text, keys, args)
	}
	return answer, err
}

func eval(ctx context.Context, client redis.UniversalClient, name, what string, keys []string, args []any) ([]string, error) {
	words := []any{name, what, len(keys)}
	for _, key := range keys {
		words = append(words, key)
	}
	cmd := once{redis.NewCmd(ctx, append(words, args...)...)}
	if err := client.Process(ctx, cmd); err != nil {
		return nil, err
	}
	list, err := cmd.Slice()
	if err != nil {
		return nil, err
	}
	answer := make([]string, len(list))
	for i, value := range list {
		answer[i] = fmt.Sprint(value)
	}
	return answer, nil
}

// once is a command that the client does not repeat: a script that has run but whose
// answer was lost would find its own write in its way and report a conflict.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

func (o once) Clone() redis.Cmder { return once{o.Cmd.Clone().(*redis.Cmd)} }
