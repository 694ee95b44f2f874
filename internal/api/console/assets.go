package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"path"
	"strings"

	files "github.com/eventyard/eventyard/internal/api/console/assets"
)

// assets are the files that pages refer to, compressed once. Their path has the hash of all of them,
// so that browsers may keep them for ever, and modules that import each other are always of one kind.
type assets struct {
	path  string
	files map[string]asset
}

type asset struct {
	kind         string
	plain, small []byte
}

// assetKinds are not left to the machine, which may know others.
var assetKinds = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

func readAssets() *assets {
	entries, err := files.Files.ReadDir(".")
	if err != nil {
		panic(err) // it is in the program
	}
	a, sum := &assets{files: map[string]asset{}}, sha256.New()
	for _, e := range entries {
		plain, err := files.Files.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		sum.Write(plain)
		a.files[e.Name()] = asset{kind: assetKinds[path.Ext(e.Name())], plain: plain, small: compress(plain)}
	}
	a.path = base + "assets/" + hex.EncodeToString(sum.Sum(nil)[:6])
	return a
}

func compress(plain []byte) []byte {
	var small bytes.Buffer
	w, _ := gzip.NewWriterLevel(&small, gzip.BestCompression) // a level that there is
	_, _ = w.Write(plain)                                     // to memory
	_ = w.Close()
	return small.Bytes()
}

// serve answers with a file. One of another hash is of another version of the console, which a page
// that was open meanwhile may ask for: it gets what there is, and is told not to keep it.
func (a *assets) serve(v *visit) error {
	f, ok := a.files[v.r.PathValue("file")]
	if !ok {
		return notHere(v.r)
	}
	h := v.w.Header()
	if path.Dir(v.r.URL.Path) == a.path {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Set("Content-Type", f.kind)
	h.Set("Vary", "Accept-Encoding")
	body := f.plain
	if takesGzip(v.r) {
		h.Set("Content-Encoding", "gzip")
		body = f.small
	}
	_, _ = v.w.Write(body)
	return nil
}

func takesGzip(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
}
