package console

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// All tests share one browser, in which each page has cookies and storage of its own, and one program: to start
// and to build them for each took half of the time. Both are made by who first wants one.
var (
	startBrowser = sync.OnceValues(func() (ctx context.Context, err error) {
		address, remove, err := parts.StartChromium()
		if err != nil {
			return nil, err
		}
		removeBrowser = remove
		allocator, _ := chromedp.NewRemoteAllocator(context.Background(), "ws://"+address)
		ctx, _ = chromedp.NewContext(allocator) // they end with the browser
		return ctx, chromedp.Run(ctx)
	})
	removeBrowser func() error

	buildProgram = sync.OnceValues(func() (binary string, err error) {
		if programDir, err = os.MkdirTemp("", "eventyard-console-"); err != nil {
			return "", err
		}
		binary = filepath.Join(programDir, "eventyard")
		return binary, parts.BuildEventyard(binary, false)
	})
	programDir string
)

// removeShared removes what was made, when all tests have ended.
func removeShared() error {
	err := os.RemoveAll(programDir) // which is no error where there is none
	if removeBrowser != nil {
		err = errors.Join(err, removeBrowser())
	}
	return err
}

// newWindow opens a window of the browser with an empty page, in which nobody has signed in yet.
func newWindow(t *testing.T) context.Context {
	t.Helper()
	if err := parts.Need("chromium", "chromium"); err != nil {
		parts.Missing(t, "Chromium: %v", err)
	}
	browser := testkit.Value(startBrowser())(t)
	do := cdp.WithExecutor(browser, chromedp.FromContext(browser).Browser)
	whose := testkit.Value(target.CreateBrowserContext().Do(do))(t)
	t.Cleanup(func() { testkit.Check(t, target.DisposeBrowserContext(whose).Do(do)) })
	page := testkit.Value(target.CreateTarget("about:blank").WithBrowserContextID(whose).WithNewWindow(true).Do(do))(t)
	ctx, closePage := chromedp.NewContext(browser, chromedp.WithTargetID(page))
	t.Cleanup(closePage)
	return ctx
}

// eventyard is the program's file.
func eventyard(t *testing.T) string {
	t.Helper()
	return testkit.Value(buildProgram())(t)
}
