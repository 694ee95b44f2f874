package console

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// covered is what the tests of this package have looked at and sent, by method and path: pages that were checked, and
// forms that a browser posted.
var covered = struct {
	mu    sync.Mutex
	paths map[string]bool // guarded by mu
}{paths: map[string]bool{}}

// cover takes note of an address.
func cover(method, address string) {
	u, err := url.Parse(address)
	if err != nil {
		return
	}
	covered.mu.Lock()
	defer covered.mu.Unlock()
	covered.paths[method+" "+u.EscapedPath()] = true
}

// uncheckable are routes that no browser shows as a page, or that lead away from it.
var uncheckable = map[string]string{
	"GET /":                             "leads to the console",
	"GET /console":                      "leads to the console",
	"GET /console/assets/{hash}/{file}": "is a part of pages",
	"GET /console/live":                 "is the stream of pages",
	"GET /console/activity.json":        "is saved, and not shown",
	"GET /console/signin/issuer":        "leads to an issuer, which server's tests have",
	"GET /console/signin/callback":      "comes from an issuer, likewise",
	"GET /console/hubs/{hub}/partitions/{partition}/events/{sequence}/body": "is saved, and not shown",
}

// What a route leaves open, as regexp.QuoteMeta writes it.
var (
	restOfPath = regexp.MustCompile(`\\\{\w+(\\\.){3}\\\}`)
	partOfPath = regexp.MustCompile(`\\\{\w+\\\}`)
)

// notCovered are the routes of the console that no test has come to. The table of rights is the list of all routes,
// which a test of the server keeps whole: a new page or form cannot be forgotten here.
func notCovered() (missing []string, err error) {
	table, err := os.ReadFile(filepath.Join("..", "..", "server", "testdata", "rights.txt"))
	if err != nil {
		return nil, err
	}
	covered.mu.Lock()
	defer covered.mu.Unlock()
	for _, m := range regexp.MustCompile(`(?m) console (GET|POST) (\S+)$`).FindAllStringSubmatch(string(table), -1) {
		route := m[1] + " " + m[2]
		if uncheckable[route] != "" {
			continue
		}
		like := restOfPath.ReplaceAllString(regexp.QuoteMeta(route), ".+")
		like = "^" + partOfPath.ReplaceAllString(like, "[^/]+") + "$"
		found := false
		for path := range covered.paths {
			found = found || regexp.MustCompile(like).MatchString(path)
		}
		if !found {
			missing = append(missing, route)
		}
	}
	return missing, nil
}

// V1: each page of the console is checked in a browser, and each of its forms sent, by some test of this package. It
// is known only when all have run, and where there is a browser.
func checkCovered() error {
	if flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != "" || len(covered.paths) == 0 {
		return nil
	}
	missing, err := notCovered()
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("no test has checked these pages, or sent these forms: %s\nadd a page to checkPages, or a deed", strings.Join(missing, ", "))
	}
	return err
}
