// Package docs holds these pages for the console, which shows them out of the program: those of the
// version that runs.
package docs

import "embed"

// Files are the pages, as they are in this folder.
//
//go:embed *.md tutorials guides reference concepts internals
var Files embed.FS
